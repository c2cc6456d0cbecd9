"""What is planned: actions in order of their time, those of one moment in the order in which they were planned.

An action that goes on (a stream of arrivals) plans its next turn itself, so that a million arrivals cost what one does.
"""

import copy
import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Timeline(Generic[T]):
    """Actions and when they are due, in seconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def copied(self) -> "Timeline[T]":
        """The same plans; actions with a state have it to themselves."""
        return copy.deepcopy(self)

    def add(self, seconds: float, action: T) -> bool:
        """Plan an action; whether it is due before all others."""
        self._count += 1
        heapq.heappush(self._heap, (seconds, self._count, action))
        return self._heap[0][1] == self._count

    def __iter__(self) -> Iterator[T]:
        """All actions, in no particular order."""
        return (action for _, _, action in self._heap)

    @property
    def next_due(self) -> float | None:
        """When the next action is due."""
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> T | None:
        """The next action that is due by now."""
        return heapq.heappop(self._heap)[2] if self._heap and self._heap[0][0] <= now else None
