"""A cluster's objects and their changes over time, kept in a file and played again.

`files` is the format, `scrubbing` what is left out of it, `following` records a live cluster, `replaying` runs a
recording with another scheduler in virtual time.
"""
