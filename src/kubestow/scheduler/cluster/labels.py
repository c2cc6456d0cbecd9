"""Node labels as columns of value IDs.

A column exists for each label key that was requested; `ids[row]` is the ID of the row's value, 0 where the node lacks
the label (and where there is no node). The ID of a value that no node has any more is reused for the next new value,
so that columns do not grow while nodes are replaced.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from kubestow.scheduler.cluster.arrays import CountArray, IdArray, grown

ABSENT = 0


class LabelColumn:
    """The values of one label key over all rows."""

    __slots__ = ("_free", "_members", "id_of", "ids", "labelled", "values")

    def __init__(self, capacity: int) -> None:
        self.ids: IdArray = np.zeros(capacity, np.int32)
        self.id_of: dict[str, int] = {}
        """The IDs of the values that some row has."""
        self.values: list[str] = [""]
        """The values by ID."""
        self.labelled = 0
        """Number of rows that have the label."""
        self._members: CountArray = np.zeros(8, np.int32)
        self._free: list[int] = []

    @property
    def members(self) -> CountArray:
        """The number of rows by value ID; rows without the label are not counted."""
        return self._members[: len(self.values)]

    def set(self, row: int, value: str | None) -> None:
        old, new = int(self.ids[row]), ABSENT if value is None else self._id_for(value)
        if old == new:
            return
        self.ids[row] = new
        if new != ABSENT:
            self._members[new] += 1
            self.labelled += 1
        if old != ABSENT:
            self._members[old] -= 1
            self.labelled -= 1
            if not self._members[old]:
                del self.id_of[self.values[old]]
                self._free.append(old)

    def _id_for(self, value: str) -> int:
        found = self.id_of.get(value)
        if found is not None:
            return found
        if self._free:
            found = self._free.pop()
            self.values[found] = value
        else:
            found = len(self.values)
            self.values.append(value)
            if found >= len(self._members):
                self._members = grown(self._members, 2 * len(self._members))
        self.id_of[value] = found
        return found


class LabelColumns:
    """All label columns of a table; a column is created at its first use."""

    def __init__(self, labels_by_row: Callable[[], Iterable[tuple[int, Mapping[str, str]]]]) -> None:
        self._labels_by_row = labels_by_row
        self._columns: dict[str, LabelColumn] = {}
        self._capacity = 0

    def column(self, key: str) -> LabelColumn:
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = LabelColumn(self._capacity)
            for row, labels in self._labels_by_row():
                found.set(row, labels.get(key))
        return found

    def set_row(self, row: int, labels: Mapping[str, str]) -> None:
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self._columns.values():
            column.ids = grown(column.ids, capacity)
