"""Explains scheduling with the scheduler's own engine: the node of a pod, why not other nodes, and what would help.

`World` is a cluster made from objects, with the profiles of a configuration and a stopped clock. `DryRun` evaluates
every node for a pod there and returns a decision. A suggestion is a `changes.Change`; `would_fit` tries those of
`obstacles` (constraints), `amounts` (requests), `cluster_changes` and `domain_blockers`, in this order. `shared_labels`
and `label_keys` handle labels that several constraints use, `together` combines changes, `group_would_fit` is for
groups and `against` for `--against`.
Promise: nothing is written to the cluster, and every change of a world is undone after the trial.
"""
