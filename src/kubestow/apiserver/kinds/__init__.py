"""The kinds served, as data: names, scope, subresources, rules, columns. Adding a kind takes one entry in a table.

The schema of a kind is looked up by its name in the tables of schema/. Promise: no I/O here besides reading them.
"""
