"""Putting the parts together: the only package that knows everybody, one module a subsystem.

Promise: it only makes and connects; what decides or does something lives in the package named after it.
"""
