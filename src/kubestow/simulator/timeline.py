"""The planned actions of a simulation, ordered by time; actions of the same time keep the order of planning.

A recurring action (a stream of arrivals) plans its own next run, so that a million arrivals cost no more than one.
"""

import copy
import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Timeline(Generic[T]):
    """Actions and their due times, in seconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def copied(self) -> "Timeline[T]":
        """Return a copy; actions with state are copied, too."""
        return copy.deepcopy(self)

    def add(self, seconds: float, action: T) -> bool:
        """Plan an action; return whether it is due before all others."""
        self._count += 1
        heapq.heappush(self._heap, (seconds, self._count, action))
        return self._heap[0][1] == self._count

    def __iter__(self) -> Iterator[T]:
        """Iterate over all actions in no particular order."""
        return (action for _, _, action in self._heap)

    @property
    def next_due(self) -> float | None:
        """The due time of the next action, None if there is none."""
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> T | None:
        """Remove and return the next action due by `now`, None if there is none."""
        return heapq.heappop(self._heap)[2] if self._heap and self._heap[0][0] <= now else None
