"""Pods that are nominated to nodes, where room is being made for them: what they will add to each row.

Kept by priority, since a pod must leave room only for those that are at least as important. The sums follow each
nomination, so that a cycle asks what is nominated at no cost per nominated pod. A row where that changes has changed:
what was remembered about it is found out again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.pods import PodInfo


class RowSums:
    """What pods request, added up by row; rows without a name of their own."""

    __slots__ = ("non_zero", "pod_count", "pods", "requested", "resource_index")

    def __init__(
        self, resource_index: Mapping[str, int], requested: IntArray, non_zero: IntArray, pod_count: IntArray
    ) -> None:
        self.resource_index = resource_index
        self.requested = requested
        self.non_zero = non_zero
        self.pod_count = pod_count
        self.pods = 0
        """How many pods were added."""

    def account(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod is on a row (1), or no longer (-1)."""
        requests = pod.requests
        for name, amount in requests.amounts.items():
            column = self.resource_index.get(name)
            # A resource without a column is offered by no node; nothing reads its sum.
            if column is not None and column < len(self.requested):
                self.requested[column, row] += sign * amount
        self.non_zero[0, row] += sign * requests.non_zero_cpu
        self.non_zero[1, row] += sign * requests.non_zero_memory
        self.pod_count[row] += sign
        self.pods += sign

    def account_copies(self, pod: PodInfo, counts: IntArray) -> None:
        """So many pods like this one are on each row."""
        requests = pod.requests
        for name, amount in requests.amounts.items():
            column = self.resource_index.get(name)
            if column is not None and column < len(self.requested):
                self.requested[column, : len(counts)] += amount * counts
        self.non_zero[0, : len(counts)] += requests.non_zero_cpu * counts
        self.non_zero[1, : len(counts)] += requests.non_zero_memory * counts
        self.pod_count[: len(counts)] += counts


class Nomination(NamedTuple):
    """A pod that is nominated to the node of a row."""

    row: int
    pod: PodInfo


def _no_sums(table: NodeTable) -> RowSums:
    shape = table.requested.shape
    capacity = table.capacity
    return RowSums(
        table.resource_index, np.zeros(shape, np.int64), np.zeros((2, capacity), np.int64), np.zeros(capacity, np.int64)
    )


class NominatedPods:
    """All nominated pods, by row of a table."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.layout = table.layout
        self._sums: dict[int, RowSums] = {}
        self.pods: dict[int, dict[str, PodInfo]] = {}
        self._nominations: dict[str, Nomination] = {}

    def add(self, node: str, pod: PodInfo) -> None:
        """A pod is nominated to a node; one that has no row does not matter, nor does a pod that makes no sense."""
        row = self.table.row_of.get(node)
        if row is None or not pod.makes_sense:
            return
        self._nominations[pod.uid] = Nomination(row, pod)
        self.pods.setdefault(row, {})[pod.uid] = pod
        self.table.changes.touch(row)
        sums = self._sums.get(pod.priority)
        if sums is None:
            sums = self._sums[pod.priority] = _no_sums(self.table)
        sums.account(row, pod, 1)

    def remove(self, uid: str) -> None:
        """A pod is no longer nominated."""
        nomination = self._nominations.pop(uid, None)
        if nomination is None:
            return
        row, pod = nomination
        self.table.changes.touch(row)
        pods = self.pods[row]
        del pods[uid]
        if not pods:
            del self.pods[row]
        self._sums[pod.priority].account(row, pod, -1)
        if not self._nominations:
            self._sums.clear()

    def replace(self, node: str, pod: PodInfo) -> None:
        """A pod that is nominated to a node has another version; most often, nothing that matters here has changed."""
        before = self._nominations.get(pod.uid)
        is_same_spec = before is not None and pod.pod.spec == before.pod.pod.spec
        if before is None or not (is_same_spec and pod.makes_sense and pod.is_like(before.pod)):
            self.remove(pod.uid)
            self.add(node, pod)
            return
        pods = self.pods[before.row]
        del pods[pod.uid]
        pods[pod.uid] = pod
        self._nominations[pod.uid] = Nomination(before.row, pod)

    def row_of(self, uid: str) -> int | None:
        """The row that a pod is nominated to."""
        found = self._nominations.get(uid)
        return None if found is None else found.row

    def beside(self, pod: PodInfo) -> "NominatedBeside | None":
        """The others that a pod must leave room for; None if there are none."""
        own = self._nominations.get(pod.uid)
        if own is not None and own.pod.priority < pod.priority:
            own = None
        sums = [of for priority, of in self._sums.items() if priority >= pod.priority and of.pods]
        if not sums or (own is not None and len(sums) == sums[0].pods == 1):
            return None
        return NominatedBeside(pod, sums, self, own)


class NominatedBeside:
    """The pods that are nominated beside one pod and are at least as important."""

    def __init__(self, pod: PodInfo, sums: Sequence[RowSums], of: NominatedPods, own: Nomination | None) -> None:
        self._pod = pod
        self._sums = sums
        self._of = of
        self._own = own

    def are_on(self, rows: IntArray) -> BoolArray:
        """On which of these rows pods are nominated."""
        number = self._sums[0].pod_count[rows]
        for of in self._sums[1:]:
            number += of.pod_count[rows]
        if self._own is not None:
            number[rows == self._own.row] -= 1
        return number > 0

    def pods(self, row: int) -> Sequence[PodInfo]:
        """The pods nominated to a row, in the order they were nominated."""
        least, own = self._pod.priority, self._pod.uid
        return [pod for uid, pod in self._of.pods.get(row, _NOBODY).items() if pod.priority >= least and uid != own]

    def add_to(self, sums: RowSums, rows: IntArray) -> None:
        """Add what they request to sums of these rows."""
        for of in self._sums:
            sums.requested += of.requested.take(rows, axis=1)
            sums.non_zero += of.non_zero.take(rows, axis=1)
            sums.pod_count += of.pod_count[rows]
        if self._own is not None:
            for position in (rows == self._own.row).nonzero()[0].tolist():
                sums.account(position, self._own.pod, -1)


_NOBODY: Mapping[str, PodInfo] = {}
