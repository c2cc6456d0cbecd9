"""Pods that are the same to the scheduler share its work. This page is all there is to know about it.

**Who is the same.** A plugin says with `sign` what, of a pod, its answers about a row depend on. The parts of all
plugins are the pod's `signature`. Plugins that do not sign, or decline to, are asked anew for every pod, so the outcome
is always that of a full evaluation: a test lets random stories happen with sharing and without, and compares.

**What is shared.** The plugins that sign are in three `groups`: those that look at a node alone, those that look at
the pods on it, and those that look at what these pods add up to. A group is made `ready` for a pod by its PreFilter and
PreScore. What ready plugins say of rows comes from `RowResults`, of which there are three kinds that stand on one
another:

- `Direct` asks the plugins about the rows it is asked about;
- `Cached` remembers what they said, and asks again about rows that have changed since (`cluster.change_log`);
- `Prefetched` was asked ahead, for several pods in the same operations on arrays, each on the rows where its search is
  expected to start (pods of many sizes have little to remember in common).

    pod like others before it     Cached(pods, sums) on Cached(nodes)
    pod like no other             Direct(pods, sums) on Cached(nodes)
    ... with others to come       Prefetched(sums) on Direct(pods) on Cached(nodes)

`Cached(nodes)` is shared by all pods that are the same to the plugins of its group, whatever they request. Everything
that is remembered is in an `Lru`; what is seen once is remembered only when it comes again.

**When it is not.** If a PreFilter refuses the pod or narrows the nodes, or a plugin that signs fails, only a full
evaluation can tell what becomes of the pod. It starts from the PreFilter answers that are known already: PreFilter runs
once a cycle.

`Sharing` puts this together for a pod, `SharedEvaluation` is what the cycle asks.
"""

from kubestow.cycle.sharing.prefetched import Upcoming
from kubestow.cycle.sharing.sharing import Sharing

__all__ = ["Sharing", "Upcoming"]
