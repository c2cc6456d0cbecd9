"""How a pod stands to others: its priority, whether it may displace them, since when it runs, whether it is over."""

from kubestow.api.pod import POD_FAILED, POD_SUCCEEDED, Pod
from kubestow.api.timestamps import parse_time

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
PREEMPT_NEVER = "Never"


def pod_priority(pod: Pod) -> int:
    """The pod's priority; 0 where none was given."""
    return pod.spec.priority or 0


def preemption_policy(pod: Pod) -> str:
    """PREEMPT_NEVER for a pod that must not displace others."""
    return PREEMPT_NEVER if pod.spec.preemptionPolicy == PREEMPT_NEVER else PREEMPT_LOWER_PRIORITY


def pod_start_time(pod: Pod, now: float) -> float:
    """Since when the pod runs, in seconds since the epoch; a pod that has not started counts as starting now."""
    return now if pod.status.startTime is None else parse_time(pod.status.startTime)


def pod_is_terminal(pod: Pod) -> bool:
    """Whether the pod has run to its end, so that it takes up no room."""
    return pod.status.phase in (POD_SUCCEEDED, POD_FAILED)
