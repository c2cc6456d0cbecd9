"""Numbers that a plugin keeps for each node, as columns that are read like those of the node table.

A change of the numbers of a node is recorded as a change of its row, so that results that are shared by equal pods are
computed again for this row. Numbers of an unknown node are kept until the node is added.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, NDArray, Rows, grown
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.view import NodeView

N = TypeVar("N", int, float)

Values = Mapping[Hashable, N]
"""The numbers of a node, by the key of their column."""


class NodeColumns(Generic[N]):
    """Columns of one plugin, by keys that it chooses; a node may lack a number in some of them."""

    def __init__(self, table: NodeTable, dtype: type[N]) -> None:
        self._table = table
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._by_node: dict[str, Values[N]] = {}
        self._columns: dict[Hashable, tuple[NDArray[Any], BoolArray]] = {}
        """By key, the numbers by row, and which rows have one."""
        self._names: list[str] = []
        """The nodes of the rows, as of the latest `layout` of the table."""
        self._layout = -1
        self.writes = 0
        """Number of calls that set numbers."""

    def set(self, node: str, values: Values[N]) -> None:
        """Replace all numbers of a node; an empty mapping removes them. Equal numbers change nothing."""
        self.writes += 1
        if self._by_node.get(node, {}) == values:
            return
        if values:
            self._by_node[node] = dict(values)
        else:
            self._by_node.pop(node, None)
        row = self._table.row_of.get(node)
        if row is None:
            return
        if row < len(self._names):
            self._write(row, node)
        self._table.touch_node(row)

    def replace_all(self, values_by_node: Mapping[str, Values[N]]) -> None:
        """Replace the numbers of all nodes; nodes that are not mentioned lose theirs."""
        for node in self._by_node.keys() - values_by_node.keys():
            self.set(node, {})
        for node, values in values_by_node.items():
            self.set(node, values)

    def values_of(self, node: str) -> Values[N]:
        """Return the numbers of a node by key."""
        return self._by_node.get(node, {})

    def get(self, key: Hashable, view: NodeView, rows: Rows, default: N = 0) -> NDArray[Any]:
        """Return a new array with the numbers of some rows of a view; `default` for rows without one."""
        if self._layout != self._table.layout:
            self._follow_rows()
        found = self._columns.get(key)
        source = view.source_rows()[rows]
        if found is None:
            return np.full(len(source), default, self._dtype)
        values, present = found
        return np.where(present[source], values[source], self._dtype.type(default))

    def _follow_rows(self) -> None:
        """Write the rows that belong to other nodes than before."""
        table = self._table
        for key, (values, present) in self._columns.items():
            if len(values) < table.capacity:
                self._columns[key] = grown(values, table.capacity), grown(present, table.capacity)
        known = len(self._names)
        for row, name in enumerate(table.names):
            if row >= known or self._names[row] != name:
                self._write(row, name)
        self._names, self._layout = table.names.copy(), table.layout

    def _write(self, row: int, node: str) -> None:
        for _, present in self._columns.values():
            present[row] = False
        for key, value in self._by_node.get(node, {}).items():
            found = self._columns.get(key)
            if found is None:
                capacity = self._table.capacity
                found = self._columns[key] = np.zeros(capacity, self._dtype), np.zeros(capacity, np.bool_)
            values, present = found
            values[row], present[row] = value, True
