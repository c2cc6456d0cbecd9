"""Determines whether a pod may preempt others."""

from kubestow.api.conditions import DISRUPTION_TARGET
from kubestow.api.pod import Pod
from kubestow.api.priority import PREEMPT_NEVER, preemption_policy
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.plugin import FailedEvaluation
from kubestow.scheduler.framework.results import Code

_PREEMPTED = "PreemptionByScheduler"


def ineligibility_reason(pod: PodInfo, cluster: Cluster, cycle: FailedEvaluation) -> str | None:
    """Return why the pod must not preempt others now; None if it may."""
    if preemption_policy(pod.pod) == PREEMPT_NEVER:
        return "not eligible due to preemptionPolicy=Never."
    row = cluster.nodes.row_of.get(pod.pod.status.nominatedNodeName)
    if row is None or not cluster.nodes.live[row] or _code(cycle, row) is Code.UNRESOLVABLE:
        # The pod has no nominated node, or one where eviction does not help.
        return None
    if _has_victims(cluster, row, pod.priority):
        return "not eligible due to a terminating pod on the nominated node."
    return None


def is_ongoing(group: TriedGroup, cluster: Cluster) -> bool:
    """Return whether victims of an earlier preemption by a group have not ended yet."""
    priority = 0 if group.group is None else group.group.priority
    nodes = {pod.pod.status.nominatedNodeName for pod in group.pods}
    rows = (cluster.nodes.row_of.get(node) for node in nodes)
    return any(row is not None and _has_victims(cluster, row, priority) for row in rows)


def _has_victims(cluster: Cluster, row: int, priority: int) -> bool:
    """Return whether pods below a priority are being evicted on a row."""
    return any(
        other.priority < priority and other.terminating and _is_preempted(other.pod)
        for other in cluster.nodes.pods[row].values()
    )


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


def _is_preempted(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == DISRUPTION_TARGET:
            return condition.status == "True" and condition.reason == _PREEMPTED
    return False
