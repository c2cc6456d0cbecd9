"""The backoff of pods after a failed attempt, and the two queues of pods that are backing off.

The backoff starts at the end of the attempt and doubles with each rejection, from the initial to the longest backoff.
Errors are counted separately, from zero after each rejection. The backoff after errors protects the API server; the
backoff after rejections avoids useless cycles.

Expiry times are rounded down to whole seconds, and pods of the same second are ordered like active ones. Pods may be
popped from here when no pod is active; without rounding, milliseconds would take precedence over priority. A pod is
backing off until its second is over. Pods that failed with an error are never popped early.
"""

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from kubestow.api.pod import Pod
from kubestow.scheduler.queue.heap import PodHeap
from kubestow.scheduler.queue.queued_pod import QueuedPod

_LONGEST_DOUBLING = 62
_NO_BACKOFF = -math.inf


class Backoff:
    """The pods that are backing off."""

    def __init__(self, initial: float, longest: float, whole_seconds: bool, order: Callable[[Pod, float], Any]) -> None:
        self._initial = initial
        self._longest = longest
        self._whole_seconds = whole_seconds
        self.rejected = PodHeap(self._key(order))
        self.errors = PodHeap(self.expiry)

    def reconfigure(self, initial: float, longest: float, order: Callable[[Pod, float], Any]) -> None:
        """Set other durations and another order, also for the pods that are backing off."""
        self._initial = initial
        self._longest = longest
        for queued in self:
            queued.backoff_expiry = None
        self.rejected.reorder(self._key(order))
        self.errors.reorder(self.expiry)

    def _key(self, order: Callable[[Pod, float], Any]) -> Callable[[QueuedPod], Any]:
        if not self._whole_seconds:
            return self.expiry
        return lambda queued: (self.expiry(queued), order(queued.pod, queued.timestamp))

    def expiry(self, queued: QueuedPod) -> float:
        """Return when the pod's backoff ends; computed once per attempt."""
        count = queued.consecutive_errors or queued.unschedulable_count
        if not count or not self._longest:
            return _NO_BACKOFF
        if queued.backoff_expiry is None:
            doublings = min(count - 1, _LONGEST_DOUBLING)
            seconds = min(self._initial * 2.0**doublings, self._longest * queued.backoff_factor)
            queued.backoff_expiry = self._rounded(queued.timestamp + seconds)
        return queued.backoff_expiry

    def is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        return self.expiry(queued) >= self._rounded(now)

    def add(self, queued: QueuedPod) -> None:
        (self.rejected if queued.rejectors else self.errors).push(queued)

    def update(self, queued: QueuedPod) -> None:
        """Move a pod to its new position after it has changed."""
        (self.rejected if queued.uid in self.rejected else self.errors).push(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        heap = self.rejected if uid in self.rejected.entries else self.errors
        return heap.remove(uid) if uid in heap.entries else None

    def get(self, uid: str) -> QueuedPod | None:
        return self.rejected.get(uid) or self.errors.get(uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self.rejected or uid in self.errors

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain(self.rejected, self.errors)

    def __len__(self) -> int:
        return len(self.rejected) + len(self.errors)

    def pop_completed(self, now: float) -> Iterator[QueuedPod]:
        """Remove and yield the pods whose backoff is over."""
        for heap in (self.rejected, self.errors):
            while (queued := heap.peek()) and not self.is_backing_off(queued, now):
                heap.pop()
                yield queued

    def next_completion(self) -> float | None:
        """Return the earliest time at which `pop_completed` yields a pod; None if no pod is backing off."""
        expiries = [self.expiry(queued) for heap in (self.rejected, self.errors) if (queued := heap.peek())]
        if not expiries:
            return None
        earliest = min(expiries)
        return earliest + 1.0 if self._whole_seconds else math.nextafter(earliest, math.inf)

    def _rounded(self, time: float) -> float:
        return float(math.floor(time)) if self._whole_seconds else time
