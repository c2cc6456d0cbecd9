"""Which nodes are looked at closer, and which of them costs least."""

import numpy as np

from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.arrays import FloatArray, IntArray, is_any_set
from kubestow.scheduler.cluster.ranking import NOT_STARTED
from kubestow.scheduler.framework.results import Victims
from kubestow.scheduler.plugins.default_preemption.findings import CANDIDATE, LOWEST_PRIORITY, START, Kinds


def first_candidates(kinds: Kinds, wanted: int) -> tuple[IntArray, bool]:
    """The positions of the first candidates, as many as wanted; and whether they are enough.

    One of them must break no disruption budget. If all do, the next that does not comes on top of them.
    """
    candidates = (kinds >= CANDIDATE).nonzero()[0]
    first = candidates[:wanted]
    if len(first) < wanted:
        return first, False
    if is_any_set(kinds[first] == CANDIDATE):
        return first, True
    later = candidates[wanted:]
    sparing = later[kinds[later] == CANDIDATE][:1]
    return np.concatenate((first, sparing)), len(sparing) > 0


def cost_of(victims: Victims) -> tuple[float, ...]:
    """What evicting pods costs, as `Findings.cost` has it."""
    highest = max(pod.priority for pod in victims.pods)
    return (
        victims.budgets_broken,
        highest,
        sum(pod.priority - LOWEST_PRIORITY for pod in victims.pods),
        len(victims.pods),
        min(pod_start_time(pod.pod, NOT_STARTED) for pod in victims.pods if pod.priority == highest),
    )


def least_costly(cost: FloatArray, now: float) -> int:
    """Where evicting the victims costs least, what comes first counting first; of equals the first."""
    start, cost = cost[START], cost.copy()
    # Later is better, and who has not started yet is as good as started now.
    cost[START] = -np.where(start == NOT_STARTED, now, start)
    # The methods `min` and `all` are these, with more on the way.
    least = cost == np.minimum.reduce(cost, axis=1, keepdims=True)
    in_all = np.logical_and.reduce(least)
    best = int(in_all.argmax())
    if in_all[best]:
        return best
    left = np.flatnonzero(least[0])
    for column in cost[1:]:
        values = column[left]
        left = left[values == values.min()]
    return int(left[0])
