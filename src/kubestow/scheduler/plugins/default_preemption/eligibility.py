"""Determines whether a pod may preempt others."""

from collections.abc import Callable

from kubestow.api.conditions import DISRUPTION_TARGET
from kubestow.api.priority import PREEMPT_NEVER, preemption_policy
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.plugin import FailedEvaluation
from kubestow.scheduler.framework.results import Code

_PREEMPTED = "PreemptionByScheduler"

Awaits = Callable[[PodInfo, PodInfo], bool]
"""(pod, other) -> whether the pod waits for the end of another one, which is being deleted on its nominated node."""


def awaits_preempted(pod: PodInfo, other: PodInfo) -> bool:
    """Return whether another pod was evicted in favor of pods such as this one."""
    return _is_preempted(other, pod.priority)


def ineligibility_reason(
    pod: PodInfo, cluster: Cluster, cycle: FailedEvaluation, awaits: Awaits = awaits_preempted
) -> str | None:
    """Return why the pod must not preempt others now; None if it may."""
    if preemption_policy(pod.pod) == PREEMPT_NEVER:
        return "not eligible due to preemptionPolicy=Never."
    row = cluster.nodes.row_of.get(pod.pod.status.nominatedNodeName)
    if row is None or not cluster.nodes.live[row] or _code(cycle, row) is Code.UNRESOLVABLE:
        # The pod has no nominated node, or one where eviction does not help.
        return None
    if any(other.terminating and awaits(pod, other) for other in cluster.nodes.pods[row].values()):
        return "not eligible due to a terminating pod on the nominated node."
    return None


def is_ongoing(group: TriedGroup, cluster: Cluster) -> bool:
    """Return whether victims of an earlier preemption by a group have not ended yet."""
    priority = 0 if group.group is None else group.group.priority
    nodes = {pod.pod.status.nominatedNodeName for pod in group.pods}
    rows = (cluster.nodes.row_of.get(node) for node in nodes)
    others = (other for row in rows if row is not None for other in cluster.nodes.pods[row].values())
    return any(other.terminating and _is_preempted(other, priority) for other in others)


def _code(cycle: FailedEvaluation, row: int) -> Code:
    """Return the code with which a node was rejected."""
    if cycle.rejected is not None:
        return cycle.rejected.code
    verdicts = cycle.verdicts
    position = None if verdicts is None else verdicts.position_of(row)
    if verdicts is None or position is None:
        return Code.UNRESOLVABLE
    rejected = verdicts.rejection(position)
    return Code.SUCCESS if rejected is None else rejected.code


def _is_preempted(pod: PodInfo, priority: int) -> bool:
    """Return whether a pod below a priority was evicted by preemption."""
    if pod.priority < priority:
        for condition in pod.pod.status.conditions:
            if condition.type == DISRUPTION_TARGET:
                return condition.status == "True" and condition.reason == _PREEMPTED
    return False
