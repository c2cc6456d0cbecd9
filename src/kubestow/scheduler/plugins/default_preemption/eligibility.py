"""Determines whether a pod may preempt others."""

from kubestow.api.conditions import DISRUPTION_TARGET
from kubestow.api.pod import Pod
from kubestow.api.priority import PREEMPT_NEVER, preemption_policy
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
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
    for other in cluster.nodes.pods[row].values():
        if other.priority < pod.priority and other.terminating and _is_preempted(other.pod):
            return "not eligible due to a terminating pod on the nominated node."
    return None


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
