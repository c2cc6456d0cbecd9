"""The facts of a pod that preemption compares: priority, preemption policy, start time, whether it has ended."""

from kubestow.api.pod import POD_FAILED, POD_SUCCEEDED, Pod
from kubestow.api.timestamps import parse_time

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
PREEMPT_NEVER = "Never"


def pod_priority(pod: Pod) -> int:
    """Return the priority of a pod; 0 if it has none."""
    return pod.spec.priority or 0


def preemption_policy(pod: Pod) -> str:
    """Return PREEMPT_NEVER for a pod that must not preempt others, else PREEMPT_LOWER_PRIORITY."""
    return PREEMPT_NEVER if pod.spec.preemptionPolicy == PREEMPT_NEVER else PREEMPT_LOWER_PRIORITY


def pod_start_time(pod: Pod, now: float) -> float:
    """Return when the pod started, in seconds since the epoch; `now` if it has not."""
    return now if pod.status.startTime is None else parse_time(pod.status.startTime)


def pod_is_terminal(pod: Pod) -> bool:
    """Return whether the pod has ended, so that it uses no resources."""
    return pod.status.phase in (POD_SUCCEEDED, POD_FAILED)
