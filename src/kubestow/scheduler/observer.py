"""What the scheduling loop reports to an observer, such as the recorder of decisions."""

from collections.abc import Sequence

from kubestow.scheduler.binding.binder import Attempt, Step
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.cycle.outcome import Outcome, Placed
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.queue.queued_pod import QueuedPod


class Observer:
    """Follows pods from the queue to their node; this base class ignores everything.

    The methods are called on the event loop and must neither wait nor raise.
    """

    def on_pod_moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        """Handle the arrival of a pod in a queue because of an event; `plugin` is the one whose hint returned true.

        Not called for a new pod that becomes active at once.
        """

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        """Handle the outcome of a scheduling cycle that took `seconds`. A placed pod is already assumed."""

    def on_group_decision(self, tried: TriedGroup, profile: Profile, outcome: GroupOutcome, seconds: float) -> None:
        """Handle the outcome of the cycle of a pod group, or of a tree of groups.

        `on_decision` is called next for each pod.
        """

    def on_binding_step(self, placed: Placed, step: Step) -> None:
        """Handle a finished step of a binding."""


class Observers(Observer):
    """Reports to several observers, in order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def on_pod_moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        for observer in self._observers:
            observer.on_pod_moved(queued, queue, event, plugin)

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        for observer in self._observers:
            observer.on_decision(attempt, outcome, seconds)

    def on_group_decision(self, tried: TriedGroup, profile: Profile, outcome: GroupOutcome, seconds: float) -> None:
        for observer in self._observers:
            observer.on_group_decision(tried, profile, outcome, seconds)

    def on_binding_step(self, placed: Placed, step: Step) -> None:
        for observer in self._observers:
            observer.on_binding_step(placed, step)


def combined(*observers: Observer) -> Observer:
    """Return one observer that reports to all given ones, without those that ignore everything."""
    active = [observer for observer in observers if type(observer) is not Observer]
    return active[0] if len(active) == 1 else Observers(active)
