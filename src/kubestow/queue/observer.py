"""What the queue tells whoever measures it. Gauges are not told: ask the queue for its lengths and counts."""

from typing import Protocol

from kubestow.model.pod import Pod


class QueueObserver(Protocol):
    def pod_entered(self, queue: str, event: str) -> None:
        """A pod came into `active`, `backoff` or `unschedulable` because of an event."""

    def hint_ran(self, plugin: str, event: str, result: str, seconds: float) -> None:
        """A hint said `Queue` or `QueueSkip`, or raised (`Error`)."""

    def hint_failed(self, plugin: str, event: str, pod: Pod, error: Exception) -> None:
        """A hint raised; the pod is tried again as if it had said yes."""

    def sort_failed(self, plugin: str, pod: Pod, error: BaseException) -> None:
        """A queue sort plugin could not tell a pod's place; it goes after the others."""


class SilentObserver:
    """Measures nothing."""

    def pod_entered(self, queue: str, event: str) -> None:
        pass

    def hint_ran(self, plugin: str, event: str, result: str, seconds: float) -> None:
        pass

    def hint_failed(self, plugin: str, event: str, pod: Pod, error: Exception) -> None:
        pass

    def sort_failed(self, plugin: str, pod: Pod, error: BaseException) -> None:
        pass
