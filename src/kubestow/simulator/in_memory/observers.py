"""An observer for the harness."""

from kubestow.scheduler.binding.binder import Attempt
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed
from kubestow.scheduler.observer import Observer


class DecisionLog(Observer):
    """Keeps the outcome of each scheduling attempt."""

    def __init__(self) -> None:
        self.decisions: list[tuple[str, Placed | Failed]] = []
        """`(pod, outcome)`, in order."""

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        del seconds
        self.decisions.append((attempt.queued.pod.key, outcome))

    def about(self, pod: str, namespace: str = "default") -> list[Placed | Failed]:
        """Return the outcomes of one pod's attempts."""
        return [outcome for key, outcome in self.decisions if key == f"{namespace}/{pod}"]
