"""Pods that were popped and are not done, and the events since the oldest of them was popped.

Events are kept in one list for all pods; each pod remembers how long the list was when it was popped. When the oldest
pod is done, what happened before the next one was popped is dropped.
"""

from collections import Counter, OrderedDict
from typing import Any

import msgspec

from kubestow.cluster.events import ClusterEvent
from kubestow.model.pod import Pod

POPPED = "PodPopped"


class Happened(msgspec.Struct, frozen=True):
    """An event, with the object before and after it."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    def __init__(self) -> None:
        self.entries: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        """By uid, with how many events there had been."""
        self._events: list[Happened] = []
        self._dropped = 0

    def pods(self) -> list[Pod]:
        return [pod for pod, _ in self.entries.values()]

    def add(self, pod: Pod) -> None:
        self.entries[pod.metadata.uid] = (pod, self._dropped + len(self._events))

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keeps an event for as long as a pod is in flight that may want to know."""
        if self.entries:
            self._events.append(Happened(event, old, new))

    def since_popped(self, uid: str) -> list[Happened] | None:
        """What happened since the pod was popped; None for a pod that is not in flight."""
        found = self.entries.get(uid)
        return None if found is None else self._events[found[1] - self._dropped :]

    def done(self, uid: str) -> None:
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
        """How many entries are kept, by event; pods themselves count as `POPPED`."""
        counts = Counter(happened.event.label for happened in self._events)
        if self.entries:
            counts[POPPED] = len(self.entries)
        return counts
