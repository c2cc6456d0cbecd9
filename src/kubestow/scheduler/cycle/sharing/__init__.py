"""Lets equal pods share the results of plugins. This docstring describes the whole mechanism.

**Which pods are equal.** A plugin's `sign` returns the properties of a pod that its answers about a row depend on. The
answers of all plugins are the `Signature` of the pod. Plugins without `sign`, and those that return None, are called
for every pod, so the outcome is always that of a full evaluation. A property test compares both.

**What is shared.** Plugins with `sign` are in three groups: those that read only the node, those that read the pods on
it, and those that read only the sums of these pods' requests. PreFilter and PreScore turn a group into
`PreparedPlugins` for a pod. Results for rows come from a `RowResults`. There are three kinds, which can be stacked:

- `DirectResults` calls the plugins for the requested rows;
- `CachedResults` stores the results for all rows, and calls the plugins again for rows that have changed
  (`cluster.change_log`);
- `PrefetchedResults` computes the results of several upcoming pods in the same array operations, each on the rows where
  its search is expected to start. It serves pods of many sizes, whose results cannot be cached.

    pod with a known signature        CachedResults(pods, sums) on CachedResults(nodes)
    pod with a new signature          DirectResults(pods, sums) on CachedResults(nodes)
    ... with more of them upcoming    PrefetchedResults(sums) on DirectResults(pods) on CachedResults(nodes)

`CachedResults(nodes)` is shared by all pods that are equal for the plugins of its group, whatever they request. All
caches are an `Lru`. A signature is cached when it occurs for the second time, or if the next pod in the queue has it.

**When nothing is shared.** If a PreFilter rejects the pod or narrows the nodes, or a plugin with `sign` fails, the pod
gets a full evaluation. That reuses the PreFilter answers of the first try, so PreFilter runs once per cycle.

`Sharing` selects the results for a pod; the cycle uses them as a `SharedEvaluation`.
"""

from kubestow.scheduler.cycle.sharing.prefetched import Upcoming
from kubestow.scheduler.cycle.sharing.shared_evaluation import SharedEvaluation
from kubestow.scheduler.cycle.sharing.sharing import Sharing

__all__ = ["SharedEvaluation", "Sharing", "Upcoming"]
