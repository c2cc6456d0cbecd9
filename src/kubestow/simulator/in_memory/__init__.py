"""The whole scheduler without an API server, on a cluster in memory and in virtual time.

Simulations and `kubestow capacity` are built on this package, and `kubestow.testing` offers it to plugin authors.
`kubestow explain` uses `insight.explain.world` instead.

Promise: no code here sleeps, and the same seed gives the same run.
"""
