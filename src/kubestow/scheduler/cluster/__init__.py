"""What is known of the cluster, kept so that a decision costs microseconds.

One row per node in NumPy columns (`nodes`), counts of pods by selector and by carried affinity term (`counts`), host
ports and images by row (`ports`, `images`), and listers for everything else (`listers`). `state.Cluster` keeps them in
step: each event changes a few cells, nothing is ever rebuilt. `whatif` copies some rows, so that pods can be added or
removed without touching the cluster. `events` and `changes` say what a change of an object may mean for waiting pods.

Promise: no I/O, no clock, no randomness; the caller's thread only.
"""
