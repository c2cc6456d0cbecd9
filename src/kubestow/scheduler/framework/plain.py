"""Plugins written node by node, adapted to the vector form.

```python
class OnlyEvenNodes:
    name = "OnlyEvenNodes"

    def filter(self, state, pod, node) -> str | None:   # the reason why not, or None
        return None if int(node.name[-1]) % 2 == 0 else "node is odd"

    def score(self, state, pod, node) -> int:            # 0..100
        return len(node.pods)
```

`state` is the return value of the plugin's `pre_filter` (for `score`, of its `pre_score` if it has one); `node` is a
`NodeRow`.
"""

from collections.abc import Collection, Mapping
from operator import index
from types import MappingProxyType
from typing import Any

import numpy as np

from kubestow.api.node import Node
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_numbers
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.contract import WrongAnswerError
from kubestow.scheduler.framework.results import Reasons, Rejection, Rejections, unschedulable


class NodeRow:
    """One node, for plugins in plain form."""

    __slots__ = ("_row", "_view", "labels", "name", "node")

    def __init__(self, view: NodeView, row: int, node: Node) -> None:
        self._view = view
        self._row = row
        self.node = node
        self.name: str = node.metadata.name
        self.labels: Mapping[str, str] = MappingProxyType(node.metadata.labels)

    @property
    def pods(self) -> Collection[PodInfo]:
        return self._view.pods[self._row].values()

    def allocatable(self, resource: str) -> int:
        """Return the capacity of the node: thousandths of a CPU, whole units of everything else."""
        return self._amount(self._view.allocatable, resource)

    def requested(self, resource: str) -> int:
        """Return the sum of the requests of its pods, in the same units."""
        return self._amount(self._view.requested, resource)

    def _amount(self, columns: IntArray, resource: str) -> int:
        if resource == "pods":
            pods = self._view.allowed_pods if columns is self._view.allocatable else self._view.pod_count
            return int(pods[self._row])
        column = self._view.resource_index.get(resource)
        return 0 if column is None else int(columns[column, self._row])


class _NodeRows:
    """The `NodeRow` of each row; those of the cluster's table are reused while the node does not change."""

    def __init__(self) -> None:
        self._table: NodeView | None = None
        self._nodes: list[NodeRow | None] = []

    def nodes(self, view: NodeView, rows: IntArray) -> list[NodeRow]:
        """Return the `NodeRow` of each row, all of which have a node."""
        if isinstance(view, NodeTable):
            if self._table is not view:
                self._table, self._nodes = view, []
            self._nodes += [None] * (view.size - len(self._nodes))
            known = self._nodes
        else:
            known = [None] * view.size
        objects = view.nodes
        found = []
        for row in rows.tolist():
            shown, node = known[row], objects[row]
            assert node is not None
            if shown is None or shown.node is not node:
                shown = known[row] = NodeRow(view, row, node)
            found.append(shown)
        return found


def filter_rows_of(plugin: Any) -> Any:
    """Return the vector form of a plain `filter`."""
    node_rows = _NodeRows()

    def filter_rows(state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections:
        reasons, numbers = Reasons(), row_numbers(rows)
        kinds: IntArray = np.zeros(len(numbers), np.int64)
        live = np.flatnonzero(view.live[numbers])
        call = plugin.filter
        answers = [call(state, pod, node) for node in node_rows.nodes(view, numbers[live])]
        for position, answer in zip(live.tolist(), answers, strict=True):
            if answer is not None:
                kinds[position] = reasons.number(_rejection(answer))
        return Rejections(kinds, reasons.words)

    return filter_rows


def _rejection(answer: Any) -> Rejection:
    rejection = unschedulable(answer) if isinstance(answer, str) else answer
    if not isinstance(rejection, Rejection):
        raise WrongAnswerError(f"must return a reason (str), a Rejection or None, not {type(answer).__name__}")
    return rejection


def score_rows_of(plugin: Any) -> Any:
    """Return the vector form of a plain `score`."""
    node_rows = _NodeRows()

    def score_rows(state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        numbers = row_numbers(rows)
        scores: IntArray = np.zeros(len(numbers), np.int64)
        live = np.flatnonzero(view.live[numbers])
        call = plugin.score
        answers = [call(state, pod, node) for node in node_rows.nodes(view, numbers[live])]
        if not all(type(answer) is int for answer in answers):
            answers = [_whole(answer) for answer in answers]
        scores[live] = answers
        return scores

    return score_rows


def _whole(score: Any) -> int:
    try:
        return index(score)
    except TypeError:
        raise WrongAnswerError(f"must return a whole number (int), not {type(score).__name__}") from None
