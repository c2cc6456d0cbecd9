"""Observers that measure nothing: one keeps what went wrong, the other every decision too."""

from typing import Any

from kubestow.cycle.outcome import Failed, Placed
from kubestow.framework.results import PluginError
from kubestow.model.pod import Pod


class QuietObserver:
    """Satisfies every observer of the core."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        """Failed calls and refused objects, in words."""

    def plugin_called(self, point: str, plugin: str, status: str, seconds: float) -> None:
        pass

    def point_ran(self, profile: str, point: str, status: str, seconds: float) -> None:
        pass

    def plugin_failed(self, error: PluginError) -> None:
        self.failures.append(str(error))

    def pod_entered(self, queue: str, event: str) -> None:
        pass

    def hint_ran(self, plugin: str, event: str, result: str, seconds: float) -> None:
        pass

    def hint_failed(self, plugin: str, event: str, pod: Pod, error: Exception) -> None:
        self.failures.append(f"hint of {plugin} on {event} for {pod.key}: {error}")

    def sort_failed(self, plugin: str, pod: Pod, error: BaseException) -> None:
        self.failures.append(f"place of {pod.key} by {plugin}: {error}")

    def event_handled(self, label: str, seconds: float) -> None:
        pass

    def object_refused(self, obj: Any, error: Exception) -> None:
        self.failures.append(f"{type(obj).__name__} {obj.metadata.name}: {error}")

    def hint_looked_up(self, profile: str, found: bool, seconds: float) -> None:
        pass

    def batch_tried(self, profile: str, result: str) -> None:
        pass

    def results_stored(self, profile: str, seconds: float) -> None:
        pass

    def batch_flushed(self, profile: str, reason: str) -> None:
        pass

    def attempt_finished(self, profile: str, result: str, seconds: float) -> None:
        pass

    def algorithm_finished(self, seconds: float) -> None:
        pass

    def pod_scheduled(self, attempts: int, seconds: float, was_flushed: bool) -> None:
        pass

    def decided(self, pod: Pod, outcome: Placed | Failed, seconds: float) -> None:
        pass

    def permit_waited(self, status: str, seconds: float) -> None:
        pass

    def preemption(self, victims: int) -> None:
        pass

    def preemption_finished(self, result: str, seconds: float) -> None:
        pass

    def preemption_failed(self, pod: Pod, error: Exception) -> None:
        self.failures.append(f"preemption for {pod.key}: {error}")

    def api_call_finished(self, call: str, result: str, seconds: float) -> None:
        pass

    def api_call_failed(self, call: str, pod: Pod, error: Exception) -> None:
        self.failures.append(f"{call} of {pod.key}: {error}")


class DecisionLog(QuietObserver):
    """Keeps what each attempt at scheduling a pod came to."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[tuple[str, Placed | Failed]] = []
        """(pod, outcome), in order."""

    def decided(self, pod: Pod, outcome: Placed | Failed, seconds: float) -> None:
        del seconds
        self.decisions.append((pod.key, outcome))

    def about(self, pod: str, namespace: str = "default") -> list[Placed | Failed]:
        """The outcomes of one pod's attempts."""
        return [outcome for key, outcome in self.decisions if key == f"{namespace}/{pod}"]
