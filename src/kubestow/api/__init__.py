"""Kubernetes objects as the scheduler reads them, and the rules that depend on an object alone.

Every object is a frozen msgspec Struct with the API's own field names and only the fields that are used; JSON is
decoded straight into it (see `codec`). Promise: no I/O, no clock, no randomness, no imports from other packages of
the project.
"""
