"""Small controllers: what keeps the world in line with what objects ask for.

Each looks at one object at a time, by key, and writes what is missing; all share one queue in the server's own loop.
"""
