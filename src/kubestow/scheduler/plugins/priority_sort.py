"""PrioritySort: orders the queue by priority, then by waiting time, longest first."""

from typing import Any

from kubestow.api.pod import Pod
from kubestow.api.priority import pod_priority
from kubestow.scheduler.framework.handle import Handle


class PrioritySort:
    """Orders the queue by priority and waiting time."""

    name = "PrioritySort"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def sort_key(self, pod: Pod, waiting_since: float) -> tuple[int, float]:
        return -pod_priority(pod), waiting_since
