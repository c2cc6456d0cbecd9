"""Recordings: the objects of a cluster and their changes over time, in a file that can be replayed.

`files` is the file format, `scrubbing` removes secrets and names, `following` records a live cluster, `replaying` runs
a recording with another scheduler in virtual time.
"""
