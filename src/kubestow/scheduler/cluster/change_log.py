"""When each row of a table last changed.

Every change gets the next number. A cache over rows stores the number of the last change that it includes, and later
queries the rows that have changed since.
"""

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray, grown

_KEPT_CHANGES = 4_096


class ChangeLog:
    """The changes of the rows of a table."""

    def __init__(self, capacity: int) -> None:
        self.last = 0
        """The number of the last change."""
        self.version: IntArray = np.zeros(capacity, np.int64)
        """By row, the number of its last change."""
        self._rows: list[int] = []
        """The rows of the latest changes, one each, in order."""
        self._last_query = (0, 0)
        self._last_result: list[int] = []
        """Several callers run the same query between two changes."""

    def copy(self) -> "ChangeLog":
        """Return a log that continues from the last change."""
        other = ChangeLog(0)
        other.last, other.version, other._rows = self.last, self.version.copy(), self._rows.copy()
        return other

    def grow(self, capacity: int) -> None:
        self.version = grown(self.version, capacity)

    def touch(self, row: int) -> None:
        """Record a change of a row."""
        self.last += 1
        self.version[row] = self.last
        self._rows.append(row)
        if len(self._rows) > 2 * _KEPT_CHANGES:
            del self._rows[:_KEPT_CHANGES]

    def since(self, number: int) -> list[int]:
        """Return the rows that have changed since a change number, each once."""
        query = (number, self.last)
        if query != self._last_query:
            count = self.last - number
            if count == 1:
                self._last_result = self._rows[-1:]
            elif count <= len(self._rows):
                self._last_result = list(dict.fromkeys(self._rows[len(self._rows) - count :]))
            else:
                self._last_result = np.flatnonzero(self.version > number).tolist()
            self._last_query = query
        return self._last_result
