"""Why rows were refused, in little room: a number for each row, of as few bits as will do, and the words once."""

from collections.abc import Iterator, Sequence

import numpy as np

from kubestow.cluster.arrays import NDArray
from kubestow.framework.results import Rejection
from kubestow.framework.verdicts import Told, Verdicts

_REFUSALS_BYTES = 200
_WORD_BYTES = 200
_BITS = 8
"""In a byte."""
_MOST_KNOWN = 64


class Refusals:
    """What the filters said of rows."""

    __slots__ = ("_count", "_planes", "_words", "holders")

    def __init__(self, planes: Sequence[bytes], words: Sequence[Rejection], count: int) -> None:
        """`planes` are the bits of all rows' numbers, lowest first; 0: the row is not refused."""
        self._planes = planes
        self._words = words
        self._count = count
        self.holders = 0
        """How many records have it."""

    @property
    def size(self) -> int:
        """In bytes, about."""
        return _REFUSALS_BYTES + sum(map(len, self._planes)) + _WORD_BYTES * len(self._words)

    def of(self, row: int) -> Rejection | None:
        """The refusal of a row; None: it passed, or was not judged."""
        byte, bit = divmod(row, _BITS)
        bits = (plane[byte] >> bit & 1 if byte < len(plane) else 0 for plane in self._planes)
        number = sum(set_bit << weight for weight, set_bit in enumerate(bits))
        return self._words[number - 1] if number else None

    def __len__(self) -> int:
        """How many rows were judged."""
        return self._count

    def __iter__(self) -> Iterator[tuple[int, Rejection]]:
        """Every row that was refused, and why."""
        numbers: NDArray[np.int64] = np.zeros(_BITS * max(map(len, self._planes), default=0), np.int64)
        for weight, plane in enumerate(self._planes):
            numbers |= np.unpackbits(np.frombuffer(plane, np.uint8), bitorder="little").astype(np.int64) << weight
        rows = np.flatnonzero(numbers)
        return zip(rows.tolist(), (self._words[number - 1] for number in numbers[rows].tolist()), strict=True)


class RefusalsKnown:
    """Keeps the last few, so that pods that are refused alike have the same."""

    def __init__(self) -> None:
        self._last: tuple[object, Refusals] | None = None
        self._known: dict[object, Refusals] = {}
        """By what they say."""

    def of(self, verdicts: Verdicts | Told) -> Refusals:
        """What verdicts say now; raises PluginError where a plugin has no words for it."""
        kinds = verdicts.kinds()
        if self._last is not None and self._last[0] is kinds:
            # Nothing has changed since the pod before.
            return self._last[1]
        words = tuple([rejection for rejection, _ in kinds])
        key = (_planes(verdicts.rows, kinds), words, len(verdicts.rows))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = Refusals(*key)
        self._last = (kinds, found)
        return found


def _planes(rows: NDArray[np.int64], kinds: Sequence[tuple[Rejection, NDArray[np.int64]]]) -> tuple[bytes, ...]:
    """`rows` are in ascending order."""
    size = int(rows[-1]) + 1 if len(rows) else 0
    if len(kinds) == 1:
        one: NDArray[np.bool_] = np.zeros(size, np.bool_)
        _, positions = kinds[0]
        one[rows if len(positions) == len(rows) else rows[positions]] = True
        return (np.packbits(one, bitorder="little").tobytes(),)
    numbers: NDArray[np.uint16] = np.zeros(size, np.uint16)
    for number, (_, positions) in enumerate(kinds, 1):
        numbers[rows[positions]] = number
    return tuple(
        [
            np.packbits((numbers >> weight & 1).astype(np.bool_), bitorder="little").tobytes()
            for weight in range(len(kinds).bit_length())
        ]
    )
