"""The pods in flight (popped and not done), and the events since the oldest of them was popped.

All pods share one list of events; each pod stores the length of the list at the time it was popped. When the oldest
pod is done, the events before the next pod was popped are dropped.
"""

from collections import Counter, OrderedDict
from typing import Any

import msgspec

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import ClusterEvent

POPPED = "PodPopped"


class RecordedEvent(msgspec.Struct, frozen=True):
    """An event, with the object before and after it."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Pods in flight, and the events that were recorded for them."""

    def __init__(self) -> None:
        self.entries: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        """Pods by UID, each with the number of events recorded before it was popped."""
        self._events: list[RecordedEvent] = []
        self._dropped = 0

    def pods(self) -> list[Pod]:
        return [pod for pod, _ in self.entries.values()]

    def add(self, pod: Pod) -> None:
        self.entries[pod.metadata.uid] = (pod, self._dropped + len(self._events))

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Record an event if a pod is in flight."""
        if self.entries:
            self._events.append(RecordedEvent(event, old, new))

    def since_popped(self, uid: str) -> list[RecordedEvent] | None:
        """Return the events since a pod was popped; None if the pod is not in flight."""
        found = self.entries.get(uid)
        return None if found is None else self._events[found[1] - self._dropped :]

    def done(self, uid: str) -> None:
        """Remove a pod, and the events that were recorded only for it."""
        if self.entries.pop(uid, None) is None:
            return
        if not self.entries:
            self._dropped += len(self._events)
            self._events.clear()
            return
        _, oldest = next(iter(self.entries.values()))
        if oldest > self._dropped:
            del self._events[: oldest - self._dropped]
            self._dropped = oldest

    def counts(self) -> Counter[str]:
        """Return the number of recorded events by label, and of pods under `POPPED`."""
        counts = Counter(recorded.event.label for recorded in self._events)
        if self.entries:
            counts[POPPED] = len(self.entries)
        return counts
