"""Why rows were refused, in little room: one small number a row, and the words once."""

from collections.abc import Iterator

import numpy as np

from kubestow.cluster.arrays import NDArray
from kubestow.framework.results import Rejection
from kubestow.framework.verdicts import Told, Verdicts

_PASSED = 0
_WORD_BYTES = 200
_MOST_KNOWN = 64


class Refusals:
    """What the filters said of rows."""

    __slots__ = ("_numbers", "_rows", "_words", "holders")

    def __init__(self, rows: NDArray[np.int32], numbers: NDArray[np.uint16], words: tuple[Rejection, ...]) -> None:
        self._rows = rows
        self._numbers = numbers
        self._words = words
        self.holders = 0
        """How many records have it."""

    def says(self, rows: NDArray[np.int32], numbers: NDArray[np.uint16], words: tuple[Rejection, ...]) -> bool:
        """Whether it is the same."""
        return np.array_equal(self._rows, rows) and np.array_equal(self._numbers, numbers) and self._words == words

    @property
    def size(self) -> int:
        """In bytes, about."""
        return self._rows.nbytes + self._numbers.nbytes + _WORD_BYTES * len(self._words)

    def of(self, row: int) -> Rejection | None:
        """The refusal of a row; None: it passed, or was not judged."""
        position = int(np.searchsorted(self._rows, row))
        if position == len(self._rows) or self._rows[position] != row:
            return None
        number = int(self._numbers[position])
        return None if number == _PASSED else self._words[number - 1]

    def __len__(self) -> int:
        """How many rows were judged."""
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[int, Rejection | None]]:
        """Every row with its refusal; None: it passed."""
        words = (None, *self._words)
        return zip(self._rows.tolist(), (words[number] for number in self._numbers.tolist()), strict=True)


class RefusalsKnown:
    """Keeps the last few, so that pods that are refused alike have the same."""

    def __init__(self) -> None:
        self._last: tuple[object, Refusals] | None = None
        self._known: dict[int, Refusals] = {}
        """By a hash of what they say."""

    def of(self, verdicts: Verdicts | Told) -> Refusals:
        """What verdicts say now; raises PluginError where a plugin has no words for it."""
        kinds = verdicts.kinds()
        if self._last is not None and self._last[0] is kinds:
            # Nothing has changed since the pod before.
            return self._last[1]
        numbers = np.full(len(verdicts.rows), _PASSED, np.uint16)
        for number, (_, positions) in enumerate(kinds, 1):
            numbers[positions] = number
        rows, words = verdicts.rows.astype(np.int32), tuple(rejection for rejection, _ in kinds)
        key = hash((rows.tobytes(), numbers.tobytes(), words))
        found = self._known.get(key)
        if found is None or not found.says(rows, numbers, words):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = Refusals(rows, numbers, words)
        self._last = (kinds, found)
        return found
