"""A mapping that keeps the most recently used values."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(Generic[K, V]):
    """A mapping that drops the least recently used values when it is full."""

    def __init__(self) -> None:
        self._values: dict[K, V] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return a value and mark it as the most recently used; None if there is none."""
        found = self._values.pop(key, None)
        if found is not None:
            self._values[key] = found
        return found

    def put(self, key: K, value: V, limit: int) -> int:
        """Store a value, keep at most `limit` values, and return how many others were dropped."""
        self._values.pop(key, None)
        dropped = 0
        while self._values and len(self._values) >= limit:
            del self._values[next(iter(self._values))]
            dropped += 1
        self._values[key] = value
        return dropped

    def drop(self, key: K) -> None:
        self._values.pop(key, None)
