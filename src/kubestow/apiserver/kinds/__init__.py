"""The kinds served, as data: names, scope, subresources, rules, columns. A new kind takes an entry here.

Its schema is a block in schema/tables/; its field numbers for protobuf bodies are in schema/protobuf.txt.
Promise: no I/O here besides reading these files.
"""
