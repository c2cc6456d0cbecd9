"""Selects the candidates of a search, and the candidate with the least cost, which is the result."""

import numpy as np

from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.arrays import FloatArray, IntArray, is_any_set
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import NOT_STARTED
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Code, PostFilterResult, Victims, WeighedCandidates
from kubestow.scheduler.plugins.default_preemption.findings import CANDIDATE, LOWEST_PRIORITY, START, Kinds


def first_candidates(kinds: Kinds, wanted: int) -> tuple[IntArray, bool]:
    """Return the positions of the first `wanted` candidates, and whether they suffice.

    At least one candidate must not violate a disruption budget. If all do, the next one that does not is added.
    """
    candidates = (kinds >= CANDIDATE).nonzero()[0]
    first = candidates[:wanted]
    if len(first) < wanted:
        return first, False
    if is_any_set(kinds[first] == CANDIDATE):
        return first, True
    later = candidates[wanted:]
    non_breaking = later[kinds[later] == CANDIDATE][:1]
    return np.concatenate((first, non_breaking)), len(non_breaking) > 0


def cost_of(victims: Victims) -> tuple[float, ...]:
    """Return the cost of evicting pods, in the order of `Findings.cost`."""
    highest = max(pod.priority for pod in victims.pods)
    return (
        victims.budgets_broken,
        highest,
        sum(pod.priority - LOWEST_PRIORITY for pod in victims.pods),
        len(victims.pods),
        min(pod_start_time(pod.pod, NOT_STARTED) for pod in victims.pods if pod.priority == highest),
    )


def least_costly(cost: FloatArray, now: float) -> int:
    """Return the index of the least cost, compared row by row; the first of equal ones."""
    start, cost = cost[START], cost.copy()
    # A later start is better; a pod that has not started counts as started now.
    cost[START] = -np.where(start == NOT_STARTED, now, start)
    # The methods `min` and `all` are slower wrappers of these.
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


def preempt(handle: Handle, pod: PodInfo, node: str, victims: Victims, weighed: WeighedCandidates) -> PostFilterResult:
    """Return the result that nominates a node for a pod, and evicts its victims there."""
    if victims.budgets_broken:
        handle.metrics.preemption_budget_violations.add(victims.budgets_broken, "pod")
    return PostFilterResult(
        Code.SUCCESS,
        f"preemption: found a potential placement for pod on node {node}, preempting {len(victims.pods)} victims",
        nominated_node=node,
        victims=victims.pods,
        to_unnominate=tuple(one for one in handle.nominator.nominated_on(node) if one.priority < pod.priority),
        weighed=weighed,
    )
