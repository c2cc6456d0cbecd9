"""Node labels as columns of value ids.

A column exists for each label key that something asked for; `ids[row]` is the id of the row's value, 0 where the node
lacks the label. Ids are never reused, so counts by id stay valid.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from kubestow.cluster.arrays import IdArray, grown

ABSENT = 0


class LabelColumn:
    """The values of one label key over all rows."""

    __slots__ = ("id_of", "ids", "values")

    def __init__(self, capacity: int) -> None:
        self.ids: IdArray = np.zeros(capacity, np.int32)
        self.id_of: dict[str, int] = {}
        self.values: list[str] = [""]

    def set(self, row: int, value: str | None) -> None:
        self.ids[row] = ABSENT if value is None else self.intern(value)

    def intern(self, value: str) -> int:
        found = self.id_of.get(value)
        if found is None:
            found = self.id_of[value] = len(self.values)
            self.values.append(value)
        return found


class LabelColumns:
    """All label columns of a table; a column is made when first asked for."""

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
