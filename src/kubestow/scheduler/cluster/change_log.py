"""Which rows of a table have changed since when.

Every change gets the next number. Whoever remembers something about rows remembers the number of the last change with
it, and asks later which rows to look at again.
"""

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray, grown

_REMEMBERED = 4_096


class ChangeLog:
    """The changes of the rows of a table."""

    def __init__(self, capacity: int) -> None:
        self.last = 0
        """The number of the last change."""
        self.version: IntArray = np.zeros(capacity, np.int64)
        """By row, the number of its last change."""
        self._rows: list[int] = []
        """The rows of the last changes, one each, in order."""
        self._asked = (0, 0)
        self._answer: list[int] = []
        """What was said last: several ask the same before the next change."""

    def copy(self) -> "ChangeLog":
        """Return a log that goes on from the last change."""
        other = ChangeLog(0)
        other.last, other.version, other._rows = self.last, self.version.copy(), self._rows.copy()
        return other

    def grow(self, capacity: int) -> None:
        self.version = grown(self.version, capacity)

    def touch(self, row: int) -> None:
        """A row has changed."""
        self.last += 1
        self.version[row] = self.last
        self._rows.append(row)
        if len(self._rows) > 2 * _REMEMBERED:
            del self._rows[:_REMEMBERED]

    def since(self, number: int) -> list[int]:
        """The rows that have changed since, each once."""
        asked = (number, self.last)
        if asked != self._asked:
            count = self.last - number
            if count == 1:
                self._answer = self._rows[-1:]
            elif count <= len(self._rows):
                self._answer = list(dict.fromkeys(self._rows[len(self._rows) - count :]))
            else:
                self._answer = np.flatnonzero(self.version > number).tolist()
            self._asked = asked
        return self._answer
