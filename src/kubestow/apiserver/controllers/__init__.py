"""Controllers: each compares the state of the cluster with the specs of objects, and writes the difference.

All share one queue of keys. Promise: no I/O and no waiting; state and time come from the store and its clock.
"""
