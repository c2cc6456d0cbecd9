"""Putting the parts together: the only package that knows everybody, one module a subsystem."""
