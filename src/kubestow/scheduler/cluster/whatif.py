"""Simulated changes: some nodes with pods added to, or removed from, them.

A copy of some rows of a table, on which pods can be added and removed and plugins run unchanged. The source table is
never changed. Columns that depend on the node alone are read from the table on demand.
"""

from collections.abc import Sequence

import numpy as np

from kubestow.api.lazy import lazy
from kubestow.api.node import Node
from kubestow.scheduler.cluster.arrays import BoolArray, IdArray, IntArray
from kubestow.scheduler.cluster.nodes import MEMORY, Capacities, NodeTable, capacities_of
from kubestow.scheduler.cluster.nominated import CompetingNominations, RowSums
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ports import PortIndex


class WhatIf:
    """A copy of some rows; row `i` here is row `rows[i]` of the table."""

    def __init__(self, table: NodeTable, rows: IntArray, nominated: CompetingNominations | None = None) -> None:
        self._table = table
        self._rows = rows
        self._nominated = nominated
        self.size = len(rows)
        self.resource_index = table.resource_index
        self.requested: IntArray = table.requested.take(rows, axis=1)
        self.non_zero: IntArray = table.non_zero.take(rows, axis=1)
        self.pod_count: IntArray = table.pod_count[rows]
        self.taint_sets = table.taint_sets
        self._sums = RowSums(table.resource_index, self.requested, self.non_zero, self.pod_count)
        if nominated is not None:
            nominated.add_to(self._sums, rows)

    @lazy
    def names(self) -> list[str]:
        return [self._table.names[row] for row in self._rows]

    @lazy
    def nodes(self) -> list[Node | None]:
        return [self._table.nodes[row] for row in self._rows]

    @lazy
    def pods(self) -> list[dict[str, PodInfo]]:
        copies = [dict(self._table.pods[row]) for row in self._rows]
        if self._nominated is not None:
            for pods, row in zip(copies, self._rows.tolist(), strict=True):
                pods.update((pod.uid, pod) for pod in self._nominated.pods(row))
        return copies

    @lazy
    def live(self) -> BoolArray:
        return self._table.live[self._rows]

    @lazy
    def allocatable(self) -> IntArray:
        return self._table.allocatable.take(self._rows, axis=1)

    @lazy
    def capacities(self) -> Capacities:
        return capacities_of(self.allocatable[: MEMORY + 1])

    @lazy
    def allowed_pods(self) -> IntArray:
        return self._table.allowed_pods[self._rows]

    @lazy
    def unschedulable(self) -> BoolArray:
        return self._table.unschedulable[self._rows]

    @lazy
    def taint_set(self) -> IdArray:
        return self._table.taint_set[self._rows]

    @lazy
    def ports(self) -> PortIndex:
        index = PortIndex()
        for row, pods in enumerate(self.pods):
            for pod in pods.values():
                if pod.ports:
                    index.add(row, pod, 1)
        return index

    def label_ids(self, key: str) -> IdArray:
        return self._table.label_ids(key)[self._rows]

    def label_id(self, key: str, value: str) -> int:
        return self._table.label_id(key, value)

    def label_values(self, key: str) -> Sequence[str]:
        return self._table.label_values(key)

    def source_rows(self) -> IntArray:
        return self._rows

    def only(self, positions: IntArray) -> "WhatIf":
        """Return some of the rows, in their order, as they are now; call it before anything changes."""
        if len(positions) == self.size:
            return self
        part = WhatIf(self._table, self._rows[positions], self._nominated)
        part.requested[:] = self.requested.take(positions, axis=1)
        part.non_zero[:] = self.non_zero.take(positions, axis=1)
        part.pod_count[:] = self.pod_count[positions]
        if "pods" in self.__dict__:
            part.pods = [self.pods[position] for position in positions.tolist()]
        return part

    def add_pod(self, row: int, pod: PodInfo) -> None:
        self.pods[row][pod.uid] = pod
        self._account(row, pod, 1)

    def add_copies(self, pod: PodInfo, counts: IntArray) -> None:
        """Add a number of equal pods to each row, to the sums only."""
        self._sums.account_copies(pod, counts)

    def remove_pod(self, row: int, pod: PodInfo) -> None:
        del self.pods[row][pod.uid]
        self._account(row, pod, -1)

    def _account(self, row: int, pod: PodInfo, sign: int) -> None:
        self._sums.account(row, pod, sign)
        if pod.ports and "ports" in self.__dict__:
            self.ports.add(row, pod, sign)


def what_if(table: NodeTable, rows: Sequence[int] | IntArray, nominated: CompetingNominations | None = None) -> WhatIf:
    """Copy some rows of a table, with the pods that are nominated there added."""
    return WhatIf(table, np.asarray(rows, np.int64), nominated)
