"""DefaultPreemption: finds pods of lower priority to evict, so that a pod fits on a node.

`plugin` has the extension points; `eligibility` checks whether a pod may preempt others, `evaluator` finds the node and
the victims. `search` goes through the nodes where eviction may help: `victims` has the pods that may be evicted there,
`budgets` the disruption budgets, `trials` the what-if views without these pods, and `dry_run` finds the minimum set of
victims. `findings` holds the results, `findings_cache` keeps them for equal pods, and `choice` selects the candidate
with the least cost. `group_victims` finds the pods that may be evicted for a pod group.

Promise: nothing is evicted here. The plugin returns the node and the victims; `scheduler.binding.evictions` deletes
them.
"""

from kubestow.scheduler.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
