"""Pods that are nominated to nodes, where preemption frees resources for them: their requests by row.

Sums are kept by priority, since a pod must leave capacity only for nominated pods that are at least as important. They
are updated by each nomination, so that a cycle reads them at no cost per nominated pod. A nomination counts as a change
of its row: results cached for the row are computed again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.pods import PodInfo


class RowSums:
    """The sums of pod requests by row."""

    __slots__ = ("non_zero", "pod_count", "pods", "requested", "resource_index")

    def __init__(
        self, resource_index: Mapping[str, int], requested: IntArray, non_zero: IntArray, pod_count: IntArray
    ) -> None:
        self.resource_index = resource_index
        self.requested = requested
        self.non_zero = non_zero
        self.pod_count = pod_count
        self.pods = 0
        """Number of pods that were added."""

    def account(self, row: int, pod: PodInfo, sign: int) -> None:
        """Add a pod to a row (1), or remove it (-1)."""
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
        """Add a number of equal pods to each row."""
        requests = pod.requests
        for name, amount in requests.amounts.items():
            column = self.resource_index.get(name)
            if column is not None and column < len(self.requested):
                self.requested[column, : len(counts)] += amount * counts
        self.non_zero[0, : len(counts)] += requests.non_zero_cpu * counts
        self.non_zero[1, : len(counts)] += requests.non_zero_memory * counts
        self.pod_count[: len(counts)] += counts


class Nomination(NamedTuple):
    """A pod and the row of the node that it is nominated to."""

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
        """Add a pod that is nominated to a node; ignored if the node has no row or the pod is invalid."""
        row = self.table.row_of.get(node)
        if row is None or not pod.is_valid:
            return
        self._nominations[pod.uid] = Nomination(row, pod)
        self.pods.setdefault(row, {})[pod.uid] = pod
        self.table.changes.touch(row)
        sums = self._sums.get(pod.priority)
        if sums is None:
            sums = self._sums[pod.priority] = _no_sums(self.table)
        sums.account(row, pod, 1)

    def remove(self, uid: str) -> None:
        """Remove the nomination of a pod."""
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
        """Replace a nominated pod by another version; cheap if nothing that matters for sums has changed."""
        before = self._nominations.get(pod.uid)
        is_same_spec = before is not None and pod.pod.spec == before.pod.pod.spec
        if before is None or not (is_same_spec and pod.is_valid and pod.is_equivalent_to(before.pod)):
            self.remove(pod.uid)
            self.add(node, pod)
            return
        pods = self.pods[before.row]
        del pods[pod.uid]
        pods[pod.uid] = pod
        self._nominations[pod.uid] = Nomination(before.row, pod)

    def row_of(self, uid: str) -> int | None:
        """Return the row that a pod is nominated to."""
        found = self._nominations.get(uid)
        return None if found is None else found.row

    def competing_with(self, pod: PodInfo) -> "CompetingNominations | None":
        """Return the other nominated pods that a pod must leave capacity for; None if there are none."""
        own = self._nominations.get(pod.uid)
        if own is not None and own.pod.priority < pod.priority:
            own = None
        sums = [one for priority, one in self._sums.items() if priority >= pod.priority and one.pods]
        if not sums or (own is not None and len(sums) == sums[0].pods == 1):
            return None
        return CompetingNominations(pod, sums, self, own)


class CompetingNominations:
    """The pods that are nominated besides a pod, and at least as important."""

    def __init__(self, pod: PodInfo, sums: Sequence[RowSums], nominated: NominatedPods, own: Nomination | None) -> None:
        self._pod = pod
        self._sums = sums
        self._nominated = nominated
        self._own = own

    def are_on(self, rows: IntArray) -> BoolArray:
        """Return which of these rows have nominated pods."""
        number = self._sums[0].pod_count[rows]
        for sums in self._sums[1:]:
            number += sums.pod_count[rows]
        if self._own is not None:
            number[rows == self._own.row] -= 1
        return number > 0

    def pods(self, row: int) -> Sequence[PodInfo]:
        """Return the pods nominated to a row, in order of nomination."""
        least, own = self._pod.priority, self._pod.uid
        nominated = self._nominated.pods.get(row, _NO_PODS)
        return [pod for uid, pod in nominated.items() if pod.priority >= least and uid != own]

    def add_to(self, sums: RowSums, rows: IntArray) -> None:
        """Add their requests to sums of these rows."""
        for own_sums in self._sums:
            sums.requested += own_sums.requested.take(rows, axis=1)
            sums.non_zero += own_sums.non_zero.take(rows, axis=1)
            sums.pod_count += own_sums.pod_count[rows]
        if self._own is not None:
            for position in (rows == self._own.row).nonzero()[0].tolist():
                sums.account(position, self._own.pod, -1)


_NO_PODS: Mapping[str, PodInfo] = {}
