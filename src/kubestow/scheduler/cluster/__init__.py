"""The state of the cluster, updated incrementally so that a scheduling decision takes microseconds.

One row per node in NumPy columns (`nodes`), counts of pods by selector and by carried affinity term (`counts`), host
ports and images by row (`ports`, `images`), and listers for all other objects (`listers`). `state.Cluster` keeps them
consistent: each event changes a few cells, nothing is rebuilt. `whatif` copies some rows, so that pods can be added or
removed without changing the cluster. `events` and `changes` derive the cluster events that requeue waiting pods.

Promise: no I/O, no clock, no randomness; used from the caller's thread only.
"""
