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
        self._pods: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        self._events: list[Happened] = []
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def pods(self) -> list[Pod]:
        return [pod for pod, _ in self._pods.values()]

    def add(self, pod: Pod) -> None:
        self._pods[pod.metadata.uid] = (pod, self._dropped + len(self._events))

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keeps an event for as long as a pod is in flight that may want to know."""
        if self._pods:
            self._events.append(Happened(event, old, new))

    def since_popped(self, uid: str) -> list[Happened] | None:
        """What happened since the pod was popped; None for a pod that is not in flight."""
        found = self._pods.get(uid)
        return None if found is None else self._events[found[1] - self._dropped :]

    def done(self, uid: str) -> None:
        if self._pods.pop(uid, None) is None:
            return
        if not self._pods:
            self._dropped += len(self._events)
            self._events.clear()
            return
        _, oldest = next(iter(self._pods.values()))
        if oldest > self._dropped:
            del self._events[: oldest - self._dropped]
            self._dropped = oldest

    def counts(self) -> Counter[str]:
        """How many entries are kept, by event; pods themselves count as `POPPED`."""
        counts = Counter(happened.event.label for happened in self._events)
        if self._pods:
            counts[POPPED] = len(self._pods)
        return counts
