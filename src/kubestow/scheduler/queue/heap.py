"""A heap of queued pods from which any pod can be removed.

Removing a pod leaves its heap entry, which is dropped when it reaches the top. The heap is rebuilt when it holds more
stale entries than live ones, so its size is at most about twice the number of pods.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from kubestow.scheduler.queue.queued_pod import QueuedPod

_SLACK = 64


class PodHeap:
    """Pods by UID, the one with the smallest `key` on top; equal keys in the order of insertion."""

    def __init__(self, key: Callable[[QueuedPod], Any]) -> None:
        self._key = key
        self._heap: list[tuple[Any, ...]] = []
        self.entries: dict[str, tuple[int, QueuedPod]] = {}
        """Entries by UID; pushing a pod creates a new entry object."""
        self._sequence = 0
        self._has_old_keys = False

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
        """Sort by another key from now on; pods with equal keys keep their order of insertion."""
        self._key = key
        self._has_old_keys = False
        self._heap = [_entry(key(queued), sequence, uid) for uid, (sequence, queued) in self.entries.items()]
        heapq.heapify(self._heap)

    def invalidate_keys(self) -> None:
        """Compute all keys again before the next pod is read."""
        self._has_old_keys = True

    def _current(self) -> list[tuple[Any, ...]]:
        if self._has_old_keys:
            self.reorder(self._key)
        return self._heap

    def push(self, queued: QueuedPod) -> None:
        """Add a pod, or move a pod of the heap to its new position."""
        uid = queued.uid
        self._sequence = sequence = self._sequence + 1
        self.entries[uid] = (sequence, queued)
        heapq.heappush(self._heap, _entry(self._key(queued), sequence, uid))
        if len(self._heap) > 2 * len(self.entries) + _SLACK:
            self._rebuild()

    def remove(self, uid: str) -> QueuedPod | None:
        found = self.entries.pop(uid, None)
        return found[1] if found else None

    def peek(self) -> QueuedPod | None:
        """Return the first pod without removing it."""
        heap = self._current()
        while heap:
            *_, sequence, uid = heap[0]
            found = self.entries.get(uid)
            if found and found[0] == sequence:
                return found[1]
            heapq.heappop(heap)
        return None

    def first(self, limit: int) -> list[QueuedPod]:
        """Return at most `limit` first pods in order, without removing them."""
        found: list[QueuedPod] = []
        heap, push, pop = self._current(), heapq.heappush, heapq.heappop
        # The next smallest entry is a child of an entry that was already visited.
        frontier = [(heap[0], 0)] if heap else []
        while frontier and len(found) < limit:
            (*_, sequence, uid), place = pop(frontier)
            live = self.entries.get(uid)
            if live and live[0] == sequence:
                found.append(live[1])
            for child in (2 * place + 1, 2 * place + 2):
                if child < len(heap):
                    push(frontier, (heap[child], child))
        return found

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod; None if the heap is empty."""
        heap = self._current()
        while heap:
            *_, sequence, uid = heapq.heappop(heap)
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
    # A flat tuple: comparing nested tuples takes twice as long, and comparisons are most of the work of a heap.
    return (*key, sequence, uid) if isinstance(key, tuple) else (key, sequence, uid)
