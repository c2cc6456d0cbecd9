"""A heap of queued pods from which any pod can be removed.

Removing only forgets the pod; its entry is dropped when it comes to the top. When forgotten entries outnumber the
living, the heap is rebuilt, so that it never holds more than twice what it should.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from kubestow.queue.queued_pod import QueuedPod

_SLACK = 64


class PodHeap:
    """Pods by uid, the least by `key` on top; equals in the order they came."""

    def __init__(self, key: Callable[[QueuedPod], Any]) -> None:
        self._key = key
        self._heap: list[tuple[Any, ...]] = []
        self.entries: dict[str, tuple[int, QueuedPod]] = {}
        """By uid; an entry is another one whenever its pod was pushed."""
        self._sequence = 0

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self.entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for _, queued in self.entries.values())

    def get(self, uid: str) -> QueuedPod | None:
        found = self.entries.get(uid)
        return found[1] if found else None

    def reorder(self, key: Callable[[QueuedPod], Any]) -> None:
        """From now on another key tells which pod is the least; equals stay in the order they came."""
        self._key = key
        self._heap = [_entry(key(queued), sequence, uid) for uid, (sequence, queued) in self.entries.items()]
        heapq.heapify(self._heap)

    def push(self, queued: QueuedPod) -> None:
        """Adds a pod, or gives one that is here already its new place."""
        uid = queued.pod.metadata.uid
        self._sequence = sequence = self._sequence + 1
        self.entries[uid] = (sequence, queued)
        heapq.heappush(self._heap, _entry(self._key(queued), sequence, uid))
        if len(self._heap) > 2 * len(self.entries) + _SLACK:
            self._rebuild()

    def remove(self, uid: str) -> QueuedPod | None:
        found = self.entries.pop(uid, None)
        return found[1] if found else None

    def peek(self) -> QueuedPod | None:
        while self._heap:
            *_, sequence, uid = self._heap[0]
            found = self.entries.get(uid)
            if found and found[0] == sequence:
                return found[1]
            heapq.heappop(self._heap)
        return None

    def first(self, most: int) -> list[QueuedPod]:
        """The least pods in order, at most so many, which all stay."""
        found: list[QueuedPod] = []
        heap, push, pop = self._heap, heapq.heappush, heapq.heappop
        # Whatever comes next is below something that came before.
        frontier = [(heap[0], 0)] if heap else []
        while frontier and len(found) < most:
            (*_, sequence, uid), place = pop(frontier)
            live = self.entries.get(uid)
            if live and live[0] == sequence:
                found.append(live[1])
            for below in (2 * place + 1, 2 * place + 2):
                if below < len(heap):
                    push(frontier, (heap[below], below))
        return found

    def pop(self) -> QueuedPod | None:
        while self._heap:
            *_, sequence, uid = heapq.heappop(self._heap)
            found = self.entries.get(uid)
            if found and found[0] == sequence:
                del self.entries[uid]
                return found[1]
        return None

    def _rebuild(self) -> None:
        live = self.entries
        self._heap = [entry for entry in self._heap if entry[-1] in live and live[entry[-1]][0] == entry[-2]]
        heapq.heapify(self._heap)


def _entry(key: Any, sequence: int, uid: str) -> tuple[Any, ...]:
    # Tuples in tuples take twice as long to compare, which is most of the work here.
    return (*key, sequence, uid) if isinstance(key, tuple) else (key, sequence, uid)
