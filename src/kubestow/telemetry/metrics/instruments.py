"""Counters, gauges and histograms.

prometheus_client takes 0.5 to 2 microseconds for each observation, most of it locks and lookups. Here everything runs
on one thread, so a value is a number in a dict, by the tuple of its label values, and an observation is a number
appended to an array, whose values are counted in batches: 0.2 microseconds, labels included. Labels are declared, and
their values passed, in alphabetical order, the order in which they are written.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Key = tuple[str, ...]
"""Label values."""
Source = Callable[[], Mapping[Key, float]]
"""Returns the numbers of a metric, by label values. Called when metrics are scraped."""

STABLE, BETA, ALPHA = "STABLE", "BETA", "ALPHA"
NO_LEVEL = ""
"""The stability level of metrics that are not part of Kubernetes itself."""
UNEXPECTED = "unexpected"
"""Replaces label values that are not allowed."""


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds that grow by a factor, multiplied step by step so that they round as in kube-scheduler."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


class Distribution(msgspec.Struct, frozen=True):
    """The values of a histogram: the number in each bucket and above the last one, and their sum."""

    counts: list[int]
    total: float


class Family(ABC):
    """A metric with all its label values."""

    kind = ""

    def __init__(self, name: str, level: str, text: str, labels: str = "") -> None:
        self.name = name
        self.level = level
        self.text = f"[{level}] {text}" if level else text
        self.deprecated = ""
        """The version of Kubernetes that deprecated it."""
        self.labels: Key = tuple(labels.split())
        if list(self.labels) != sorted(self.labels):
            raise ValueError(f"labels of {name} must be in alphabetical order, not {labels}")
        self.allowed: dict[str, frozenset[str]] = {}
        """By label, the only values that are shown unchanged."""

    @property
    def declaration(self) -> tuple[object, ...]:
        """The arguments of the constructor that two metrics of the same name must share."""
        return (self.text, self.labels)

    def deprecate(self, version: str) -> None:
        """Mark it as deprecated by a version of Kubernetes."""
        self.deprecated = version
        self.text = self.text.replace("] ", f"] (Deprecated since {version}) ", 1)

    def replace_disallowed(self, key: Key) -> Key:
        """Return the label values with those that are not allowed replaced."""
        if not self.allowed:
            return key
        return tuple(
            value if label not in self.allowed or value in self.allowed[label] else UNEXPECTED
            for label, value in zip(self.labels, key, strict=True)
        )

    def replaced(self, key: Key) -> int:
        """Return the number of label values that are not allowed."""
        return sum(value != shown for value, shown in zip(key, self.replace_disallowed(key), strict=True))

    @abstractmethod
    def unexpected(self) -> float:
        """Return how often a label value was not allowed."""


class Numbers(Family):
    """A metric whose values are single numbers."""

    def __init__(self, name: str, level: str, text: str, labels: str = "") -> None:
        super().__init__(name, level, text, labels)
        self._values: dict[Key, float] = {} if self.labels else {(): 0}
        self._sources: list[Source] = []

    def watch(self, source: Source) -> None:
        """Call `source` at each read, and add its numbers by label values."""
        self._sources.append(source)

    def read(self) -> dict[Key, float]:
        """Return the numbers by label values."""
        merged: dict[Key, float] = {}
        for key, value in self._numbers():
            shown = self.replace_disallowed(key)
            merged[shown] = merged.get(shown, 0) + value
        return merged

    def _numbers(self) -> Iterator[tuple[Key, float]]:
        for values in (self._values, *(source() for source in self._sources)):
            yield from values.items()


class Counter(Numbers):
    """A number that only grows."""

    kind = "counter"

    def inc(self, *key: str) -> None:
        """Add one."""
        values = self._values
        values[key] = values.get(key, 0) + 1

    def add(self, count: float, *key: str) -> None:
        """Add a number."""
        self._values[key] = self._values.get(key, 0) + count

    def unexpected(self) -> float:
        return sum(value * self.replaced(key) for key, value in self._numbers()) if self.allowed else 0


class Gauge(Numbers):
    """A number that rises and falls."""

    kind = "gauge"

    def __init__(self, name: str, level: str, text: str, labels: str = "") -> None:
        super().__init__(name, level, text, labels)
        self._tracked: dict[Key, Callable[[], float]] = {}
        self._replaced: set[Key] = set()
        """All label values seen so far that are not allowed."""
        self.watch(lambda: {key: read() for key, read in self._tracked.items()})

    def set(self, value: float, *key: str) -> None:
        self._values[key] = value

    def track(self, read: Callable[[], float], *key: str) -> None:
        """Call `read` at each read for the number with these label values."""
        self._values.pop(key, None)
        self._tracked[key] = read

    def untrack(self, *key: str) -> None:
        """Show the number with these label values no more."""
        self._tracked.pop(key, None)

    def unexpected(self) -> float:
        # Once each: the changes of a number that is read at its source cannot be counted.
        if self.allowed:
            self._replaced.update(key for key, _ in self._numbers() if self.replace_disallowed(key) != key)
        return sum(map(self.replaced, self._replaced))


MAX_RECENT = 256
"""Maximum number of values that are not counted yet."""


class Observations:
    """Values with the same label values; the latest are kept in an array and counted in batches, which is cheaper.

    A caller with several values may append them to `recent`, and calls `count` when it has MAX_RECENT.
    """

    __slots__ = ("_bounds", "counts", "recent", "total")

    def __init__(self, bounds: "NDArray[np.float64]") -> None:
        self._bounds = bounds
        self.counts: NDArray[np.int64] = np.zeros(len(bounds) + 1, np.int64)
        self.total = 0.0
        self.recent = array("d")

    def add(self, value: float) -> None:
        """Add a value."""
        self.recent.append(value)
        if len(self.recent) >= MAX_RECENT:
            self.count()

    def count(self) -> "Observations":
        """Count the recent values."""
        recent = self.recent
        if recent:
            values = np.array(recent)
            self.counts += np.bincount(self._bounds.searchsorted(values), minlength=len(self.counts))
            self.total += float(values.sum())
            del recent[:]
        return self


class Histogram(Family):
    """Counts values by size. A value equal to a bound belongs to the bucket below it."""

    kind = "histogram"

    def __init__(self, name: str, level: str, text: str, bounds: Iterable[float], labels: str = "") -> None:
        super().__init__(name, level, text, labels)
        self.bounds = tuple(bounds)
        self._bounds: NDArray[np.float64] = np.array(self.bounds)
        self._observations: dict[Key, Observations] = {}
        self._recent: dict[Key, array[float]] = {}
        """The values that are not counted yet, by label values."""
        if not self.labels:
            self._first(())

    @property
    def declaration(self) -> tuple[object, ...]:
        return (*super().declaration, self.bounds)

    def observe(self, value: float, *key: str) -> None:
        """Add a value."""
        try:
            recent = self._recent[key]
        except KeyError:
            recent = self._first(key)
        recent.append(value)
        if len(recent) >= MAX_RECENT:
            self._observations[key].count()

    def of(self, *key: str) -> Observations:
        """Return the observations with these label values."""
        if key not in self._observations:
            self._first(key)
        return self._observations[key]

    def _first(self, key: Key) -> "array[float]":
        made = self._observations[key] = Observations(self._bounds)
        self._recent[key] = made.recent
        return made.recent

    def read(self) -> dict[Key, Distribution]:
        """Return the observed values by label values."""
        merged: dict[Key, Distribution] = {}
        for key, found in self._observations.items():
            shown, counts, total = self.replace_disallowed(key), found.count().counts.tolist(), found.total
            before = merged.get(shown)
            if before is not None:
                counts = [one + other for one, other in zip(before.counts, counts, strict=True)]
                total += before.total
            merged[shown] = Distribution(counts, total)
        return merged

    def unexpected(self) -> float:
        if not self.allowed:
            return 0
        return sum(int(found.count().counts.sum()) * self.replaced(key) for key, found in self._observations.items())
