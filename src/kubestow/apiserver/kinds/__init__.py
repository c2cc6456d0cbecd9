"""The kinds served, as data: names, scope, subresources, rules, columns. A new kind takes one entry in a table here.

The schema of a kind is found by its name in the tables of schema/.
"""
