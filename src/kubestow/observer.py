"""What the scheduling loop reports to an observer, such as the recorder of decisions."""

from collections.abc import Sequence
from typing import Protocol

from kubestow.binding.binder import Attempt, Step
from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.outcome import Outcome, Placed
from kubestow.framework.placements import TriedGroup
from kubestow.framework.profile import Profile
from kubestow.queue.queued_pod import QueuedPod


class Observer(Protocol):
    """Follows pods from the queue to their node. Called on the event loop; must not wait and must not raise."""

    def moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        """A pod came to a queue because of an event; `plugin` is the one whose hint said that the event may help.

        Not called for a new pod that becomes active at once.
        """

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        """A scheduling cycle took `seconds` and came to an outcome. A pod that was placed is assumed by now."""

    def group_decided(
        self, tried: TriedGroup, profile: Profile, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        """The cycle of a pod group is over; `scheduled` of its pods had a node before. `decided` follows for each."""

    def step(self, placed: Placed, step: Step) -> None:
        """A step of a binding is over."""


class NoObserver:
    """Ignores everything."""

    def moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        pass

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        pass

    def group_decided(
        self, tried: TriedGroup, profile: Profile, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        pass

    def step(self, placed: Placed, step: Step) -> None:
        pass


class Observers:
    """Reports to several observers, in order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        for observer in self._observers:
            observer.moved(queued, queue, event, plugin)

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        for observer in self._observers:
            observer.decided(attempt, outcome, seconds)

    def group_decided(
        self, tried: TriedGroup, profile: Profile, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        for observer in self._observers:
            observer.group_decided(tried, profile, outcome, scheduled, seconds)

    def step(self, placed: Placed, step: Step) -> None:
        for observer in self._observers:
            observer.step(placed, step)


def observers(*some: Observer) -> Observer:
    """Return one observer that stands for several; those that ignore everything are left out."""
    present = [observer for observer in some if type(observer) is not NoObserver]
    return present[0] if len(present) == 1 else Observers(present) if present else NoObserver()
