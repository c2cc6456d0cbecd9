"""DefaultPreemption: makes room for a pod by evicting less important ones.

`plugin` is the plugin; `eligibility` says whether the pod may preempt at all, `making_room` who is to go if it may:
`search` goes through the nodes where that could help and tries each: `victims` has the pods that may be evicted there,
with the help of `budgets`, `trials` the what-ifs without them, `dry_run` finds the fewest that must go. What was found
is in `findings`, and `memory` keeps it for pods that are equal; `choice` picks the node where evicting costs least.

Promise: nothing is evicted here; who is to go, and where, is the plugin's answer.
"""

from kubestow.scheduler.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
