"""Keeps every decision."""

from kubestow.cycle.outcome import Failed, Placed
from kubestow.model.pod import Pod


class DecisionLog:
    """Keeps what each attempt at scheduling a pod came to."""

    def __init__(self) -> None:
        self.decisions: list[tuple[str, Placed | Failed]] = []
        """(pod, outcome), in order."""

    def decided(self, pod: Pod, outcome: Placed | Failed, seconds: float) -> None:
        """An attempt has ended."""
        del seconds
        self.decisions.append((pod.key, outcome))

    def about(self, pod: str, namespace: str = "default") -> list[Placed | Failed]:
        """The outcomes of one pod's attempts."""
        return [outcome for key, outcome in self.decisions if key == f"{namespace}/{pod}"]
