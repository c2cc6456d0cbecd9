"""Numbers that a plugin keeps for each node, as columns that are read like those of the node table.

A change of the numbers of a node is recorded as a change of its row, so that results that are shared by equal pods are
computed again for this row. Numbers of an unknown node are kept until the node is added.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, FloatArray, IntArray, NDArray, Rows, grown
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.view import NodeView

N = TypeVar("N", int, float)

Values = Mapping[Hashable, N]
"""The numbers of a node, by the key of their column."""


class NodeColumns(Generic[N]):
    """Columns of one plugin, by keys that it chooses; a node may lack a number in some of them."""

    def __init__(self, table: NodeTable, dtype: type[N], default: N = 0) -> None:
        """`default` is the number that a node has in a column if none was set."""
        self._table = table
        self._default: N = default
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._by_node: dict[str, Values[N]] = {}
        self._column_of: dict[Hashable, int] = {}
        self._values: NDArray[Any] = np.empty((0, table.capacity), self._dtype)
        """The numbers by column and row."""
        self._present: BoolArray = np.zeros((0, table.capacity), np.bool_)
        """Which of them were set."""
        self._names: list[str] = []
        """The nodes of the rows, as of the latest `layout` of the table."""
        self._layout = -1
        self.writes = 0
        """Number of calls that set numbers."""

    def set(self, node: str, values: Values[N]) -> None:
        """Replace all numbers of a node; an empty mapping removes them. Equal numbers change nothing.

        Raises ValueError for what the columns cannot hold, without changing anything.
        """
        self.writes += 1
        if self._by_node.get(node, {}) == values:
            return
        try:
            np.fromiter(values.values(), self._dtype, len(values))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"node_columns: a number of node {node} does not fit {self._dtype}: {error}") from None
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

    @overload
    def get(
        self: "NodeColumns[int]", key: Hashable, view: NodeView, rows: Rows, default: int | None = ...
    ) -> IntArray: ...
    @overload
    def get(
        self: "NodeColumns[float]", key: Hashable, view: NodeView, rows: Rows, default: float | None = ...
    ) -> FloatArray: ...
    def get(self, key: Hashable, view: NodeView, rows: Rows, default: float | None = None) -> NDArray[Any]:
        """Return a new array with the numbers of some rows of a view.

        `default` replaces the default of the columns for rows without a number.
        """
        found: NDArray[Any] = self.stack((key,), view, rows)[0]
        if default is None or default == self._default:
            return found
        column = self._column_of.get(key)
        if column is None:
            return np.full(len(found), default, self._dtype)
        return np.where(self._present[column, view.source_rows()[rows]], found, self._dtype.type(default))

    @overload
    def stack(self: "NodeColumns[int]", keys: Sequence[Hashable], view: NodeView, rows: Rows) -> IntArray: ...
    @overload
    def stack(self: "NodeColumns[float]", keys: Sequence[Hashable], view: NodeView, rows: Rows) -> FloatArray: ...
    def stack(self, keys: Sequence[Hashable], view: NodeView, rows: Rows) -> NDArray[Any]:
        """Return the numbers of several columns at once, as a new array with a line per key."""
        if self._layout != self._table.layout:
            self._follow_rows()
        source = view.source_rows()[rows]
        found: NDArray[Any] = np.empty((len(keys), len(source)), self._dtype)
        for line, key in enumerate(keys):
            column = self._column_of.get(key)
            found[line] = self._default if column is None else self._values[column].take(source)
        return found

    def _follow_rows(self) -> None:
        """Write the rows that belong to other nodes than before."""
        table = self._table
        if self._values.shape[1] < table.capacity:
            self._resize(len(self._values))
        known = len(self._names)
        for row, name in enumerate(table.names):
            if row >= known or self._names[row] != name:
                self._write(row, name)
        self._names, self._layout = table.names.copy(), table.layout

    def _write(self, row: int, node: str) -> None:
        self._values[:, row], self._present[:, row] = self._default, False
        for key, value in self._by_node.get(node, {}).items():
            column = self._column_of.get(key)
            if column is None:
                column = self._column_of[key] = len(self._column_of)
                if column == len(self._values):
                    self._resize(2 * column + 1)
            self._values[column, row], self._present[column, row] = value, True

    def _resize(self, columns: int) -> None:
        """Make room for columns, and for all rows of the table."""
        size = self._table.capacity
        self._present = grown(grown(self._present, size), columns, axis=0)
        self._values = np.where(self._present, grown(grown(self._values, size), columns, axis=0), self._default)
