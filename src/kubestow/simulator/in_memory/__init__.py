"""The whole scheduler without an API server, on a cluster in memory and in virtual time.

Simulations, `kubestow capacity` and `kubestow explain` are built on this package, and `kubestow.testing` offers it to
plugin authors.

Promise: no code here sleeps, and the same seed gives the same run.
"""
