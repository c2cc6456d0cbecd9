"""The scheduler without an API server: whole, on a cluster in memory and in virtual time; or a plugin by itself.

What a simulation, `kubestow capacity` and `kubestow explain` stand on, and what `kubestow.testing` offers to people who
write plugins.

Promise: nothing here sleeps, and the same seed gives the same run.
"""
