"""What was used last is kept."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(Generic[K, V]):
    """A mapping that drops what was not used for the longest time when there is no room."""

    def __init__(self) -> None:
        self._values: dict[K, V] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """What is known; it was used just now."""
        found = self._values.pop(key, None)
        if found is not None:
            self._values[key] = found
        return found

    def put(self, key: K, value: V, room: int) -> int:
        """Keep a value where there is room for so many; returns how many others had to go."""
        self._values.pop(key, None)
        dropped = 0
        while self._values and len(self._values) >= room:
            del self._values[next(iter(self._values))]
            dropped += 1
        self._values[key] = value
        return dropped

    def drop(self, key: K) -> None:
        self._values.pop(key, None)
