"""The node table: a row per node, a NumPy column per property.

A row is allocated when a node, or a pod bound to a node that is not known yet, first names it; `live` is True if the
node itself exists. A row is freed when neither the node nor pods remain. `changes` records when each row last changed,
and `node_changes` when the node itself did.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.api.node import Node, Taint
from kubestow.api.requests import CPU as CPU_NAME
from kubestow.api.requests import EPHEMERAL_STORAGE as EPHEMERAL_STORAGE_NAME
from kubestow.api.requests import MEMORY as MEMORY_NAME
from kubestow.api.requests import PODS
from kubestow.scheduler.cluster.arrays import BoolArray, FloatArray, IdArray, IntArray, grown
from kubestow.scheduler.cluster.change_log import ChangeLog
from kubestow.scheduler.cluster.labels import LabelColumns
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ports import PortIndex

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
FIXED_RESOURCES = (CPU_NAME, MEMORY_NAME, EPHEMERAL_STORAGE_NAME)

_FIRST_CAPACITY = 64
COLUMNS = ("live", "allocatable", "requested", "non_zero", "pod_count", "allowed_pods", "unschedulable", "taint_set")
"""The attributes of a table that are arrays, indexed by row."""


EXACT_IN_FLOAT = 1 << 45


class Capacities(NamedTuple):
    """The CPU and memory capacity of all rows of a view, as floats for arithmetic.

    Below EXACT_IN_FLOAT (35 TB of memory), floats are exact enough, and twice as fast as integers.
    """

    floats: FloatArray | None
    """`[r, i]` is the capacity of resource `r` on row `i`; None if a value is too large."""
    are_everywhere: bool
    """Whether every row has both resources."""


def capacities_of(allocatable: IntArray) -> Capacities:
    """Return the capacities for the columns of CPU and memory."""
    is_exact = int(allocatable.max(initial=0)) < EXACT_IN_FLOAT
    floats = allocatable.astype(np.float64) if is_exact else None
    return Capacities(floats, int(allocatable.min(initial=1)) > 0)


class TaintSets:
    """Distinct lists of taints: a list is evaluated once, not once per node."""

    def __init__(self) -> None:
        self.taints: list[tuple[Taint, ...]] = [()]
        self._id_of: dict[tuple[Taint, ...], int] = {(): 0}

    def copy(self) -> "TaintSets":
        """Return an independent copy with the same IDs."""
        other = TaintSets()
        other.taints, other._id_of = self.taints.copy(), self._id_of.copy()
        return other

    @property
    def are_all_empty(self) -> bool:
        """Whether no node ever had a taint."""
        return len(self.taints) == 1

    def intern(self, taints: tuple[Taint, ...]) -> int:
        found = self._id_of.get(taints)
        if found is None:
            found = self._id_of[taints] = len(self.taints)
            self.taints.append(taints)
        return found


class NodeTable:
    """All nodes, in columns. Index columns with `[: size]` or with row numbers."""

    def __init__(self) -> None:
        capacity = _FIRST_CAPACITY
        self.size = 0
        self.count = 0
        """Number of live nodes."""
        self.layout = 0
        """Incremented when a row or a resource column is added or removed."""
        self.row_of: dict[str, int] = {}
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.pods: list[dict[str, PodInfo]] = []
        self.live: BoolArray = np.zeros(capacity, np.bool_)
        self.resource_index: dict[str, int] = {name: i for i, name in enumerate(FIXED_RESOURCES)}
        self.allocatable: IntArray = np.zeros((len(FIXED_RESOURCES), capacity), np.int64)
        self.requested: IntArray = np.zeros((len(FIXED_RESOURCES), capacity), np.int64)
        self.non_zero: IntArray = np.zeros((2, capacity), np.int64)
        """CPU and memory requested, with defaults for containers that request none; used for scoring."""
        self.pod_count: IntArray = np.zeros(capacity, np.int64)
        self.allowed_pods: IntArray = np.zeros(capacity, np.int64)
        self.unschedulable: BoolArray = np.zeros(capacity, np.bool_)
        self.taint_set: IdArray = np.zeros(capacity, np.int32)
        self.taint_sets = TaintSets()
        self.ports = PortIndex()
        self.changes = ChangeLog(capacity)
        self.node_changes = ChangeLog(capacity)
        """The changes of nodes themselves, as opposed to the pods on them."""
        self.labels = LabelColumns(self._labels_by_row)
        self.labels.grow(capacity)
        self._free: dict[int, None] = {}
        """The unused rows; the last one is allocated first."""
        self._capacities: tuple[tuple[int, int], Capacities] | None = None
        self._numbers: IntArray = np.arange(0)

    def copy(self) -> "NodeTable":
        """Return an independent copy with the same rows; label columns are rebuilt on demand."""
        other = NodeTable()
        other.size, other.count, other.layout = self.size, self.count, self.layout
        other.row_of, other.names, other.nodes = self.row_of.copy(), self.names.copy(), self.nodes.copy()
        other.pods = [pods.copy() for pods in self.pods]
        for column in COLUMNS:
            setattr(other, column, getattr(self, column).copy())
        other.resource_index, other.taint_sets = self.resource_index.copy(), self.taint_sets.copy()
        other.ports, other._free = self.ports.copy(), self._free.copy()
        other.changes, other.node_changes = self.changes.copy(), self.node_changes.copy()
        other.labels.grow(self.capacity)
        return other

    @property
    def capacities(self) -> Capacities:
        """The CPU and memory capacity of all rows, as floats."""
        # A row may be allocated before its node is added.
        key = (self.node_changes.last, self.size)
        if self._capacities is None or self._capacities[0] != key:
            self._capacities = (key, capacities_of(self.allocatable[: MEMORY + 1, : self.size]))
        return self._capacities[1]

    @property
    def capacity(self) -> int:
        return len(self.live)

    def _labels_by_row(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        for row, node in enumerate(self.nodes):
            if node is not None:
                yield row, node.metadata.labels

    # Labels

    def label_ids(self, key: str) -> IdArray:
        return self.labels.column(key).ids

    def label_id(self, key: str, value: str) -> int:
        return self.labels.column(key).id_of.get(value, -1)

    def label_values(self, key: str) -> Sequence[str]:
        return self.labels.column(key).values

    # Rows

    def source_rows(self) -> IntArray:
        if len(self._numbers) < self.size:
            self._numbers = np.arange(self.capacity)
            self._numbers.setflags(write=False)
        return self._numbers[: self.size]

    def row_for(self, name: str, at: int | None = None) -> int:
        """Return the row of a node by name; allocate a free row, or the free row `at`, if it has none."""
        row = self.row_of.get(name)
        if row is not None:
            return row
        if at is None and self._free:
            row, _ = self._free.popitem()
        else:
            row = self.size if at is None else at
            while self.size <= row:
                self._add_row()
            del self._free[row]
        self.names[row] = name
        self.row_of[name] = row
        self.layout += 1
        return row

    def _add_row(self) -> None:
        if self.size >= self.capacity:
            self._grow(2 * self.capacity)
        self.names.append("")
        self.nodes.append(None)
        self.pods.append({})
        self._free[self.size] = None
        self.size += 1

    def _grow(self, capacity: int) -> None:
        for column in COLUMNS:
            setattr(self, column, grown(getattr(self, column), capacity))
        self.changes.grow(capacity)
        self.node_changes.grow(capacity)
        self.labels.grow(capacity)

    def touch_node(self, row: int) -> None:
        """Record a change of a node itself: results about it that do not depend on its pods are invalid, too."""
        self.changes.touch(row)
        self.node_changes.touch(row)

    def _release_if_empty(self, row: int) -> None:
        if self.nodes[row] is None and not self.pods[row]:
            del self.row_of[self.names[row]]
            self.names[row] = ""
            self._free[row] = None
            self.layout += 1

    # Nodes

    def set_node(self, row: int, node: Node, allocatable: dict[str, int]) -> None:
        """Add or replace the node of a row."""
        if self.nodes[row] is None:
            self.count += 1
        self.nodes[row] = node
        self.live[row] = True
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_set[row] = self.taint_sets.intern(node.spec.taints)
        self.labels.set_row(row, node.metadata.labels)
        self.allowed_pods[row] = allocatable.pop(PODS, 0)
        self.allocatable[:, row] = 0
        for name, amount in allocatable.items():
            column = self.resource_column(name)
            self.allocatable[column, row] = amount
        self.touch_node(row)

    def clear_node(self, row: int) -> None:
        """Remove the node of a row; pods stay until they are removed themselves."""
        self.nodes[row] = None
        self.live[row] = False
        self.unschedulable[row] = False
        self.taint_set[row] = 0
        self.labels.set_row(row, {})
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        self.count -= 1
        self.touch_node(row)
        self._release_if_empty(row)

    def resource_column(self, name: str) -> int:
        """Return the column of a resource; adds a column for a new resource."""
        found = self.resource_index.get(name)
        if found is None:
            found = self.resource_index[name] = len(self.resource_index)
            self.layout += 1
            self.allocatable = grown(self.allocatable, found + 1, axis=0)
            self.requested = grown(self.requested, found + 1, axis=0)
        return found

    # Pods

    def add_pod(self, row: int, pod: PodInfo) -> None:
        self.pods[row][pod.uid] = pod
        self._account(row, pod, 1)

    def replace_pod(self, row: int, pod: PodInfo) -> None:
        """Replace a pod by a version with equal requests; the caller touches the row if it must be evaluated again."""
        self.pods[row][pod.uid] = pod

    def sort_pods(self, row: int, key: Callable[[PodInfo], int]) -> None:
        """Sort the pods on a row by a key, in ascending order."""
        self.pods[row] = {pod.uid: pod for pod in sorted(self.pods[row].values(), key=key)}

    def remove_pod(self, row: int, pod: PodInfo) -> None:
        del self.pods[row][pod.uid]
        self._account(row, pod, -1)
        self._release_if_empty(row)

    def _account(self, row: int, pod: PodInfo, sign: int) -> None:
        requests = pod.requests
        for name, amount in requests.amounts.items():
            column = self.resource_index.get(name)
            if column is None:
                column = self.resource_column(name)
            self.requested[column, row] += sign * amount
        self.non_zero[0, row] += sign * requests.non_zero_cpu
        self.non_zero[1, row] += sign * requests.non_zero_memory
        self.pod_count[row] = self.pod_count.item(row) + sign
        if pod.ports:
            self.ports.add(row, pod, sign)
        self.changes.touch(row)
