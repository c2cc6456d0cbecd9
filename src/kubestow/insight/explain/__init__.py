"""Explains scheduling with the scheduler's own engine: the node of a pod, why not other nodes, and what would help.

`World` is a cluster made from objects, with the profiles of a configuration and a stopped clock. `DryRun` evaluates
every node for a pod there and returns a decision. `would_fit_if` tries changes of the pod and the world.

Promise: nothing is written to the cluster, and every change of a world is undone after the trial.
"""
