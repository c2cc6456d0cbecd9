"""The pods of each row by importance, in columns: the order of preemption, and the resources that it would free.

A row is ranked when it is read after a change; without preemption, no row is ever ranked.
"""

from collections.abc import Iterable

import numpy as np

from kubestow.api.timestamps import parse_time
from kubestow.scheduler.cluster.arrays import BoolArray, FloatArray, IntArray, grown
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.pods import PodInfo

NOT_STARTED = float("inf")
_NO_PRIORITY = np.iinfo(np.int64).max
"""The priority where there is no pod: higher than that of any pod."""


class PodRanking:
    """Pods by row and rank. Rank 0 is the most important: of the highest priority, and of those the longest running."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._pods: list[list[PodInfo]] = []
        self._listed: list[list[PodInfo] | None] = []
        """The pods of each row in order of arrival, when it was last ranked."""
        self._version: IntArray = np.zeros(0, np.int64)
        self.count: IntArray = np.zeros(0, np.int64)
        """Number of pods by row."""
        self.lowest: IntArray = np.zeros(0, np.int64)
        """The lowest priority by row."""
        self.priority: IntArray = np.zeros((0, 0), np.int64)
        """The priority by row and rank."""
        self.start: FloatArray = np.zeros((0, 0), np.float64)
        """The start time of the pod by row and rank; NOT_STARTED if it has none."""
        self.freed: IntArray = np.zeros((0, 1, 0), np.int64)
        """By row, rank and resource column, the requests of all pods from this rank on; there is one extra rank."""

    def refresh(self, rows: IntArray) -> None:
        """Rank the pods of these rows; must be called before any of them is read."""
        self._grow(rows)
        for row in rows[self._version[rows] != self._table.changes.version[rows]].tolist():
            pods = list(self._table.pods[row].values())
            # Rows also change with their nodes and nominations.
            if pods != self._listed[row]:
                self._listed[row] = pods
                self._rank(row, pods)
            self._version[row] = self._table.changes.version[row]

    def known_above(self, rows: IntArray, priority: int) -> BoolArray:
        """Return which rows are known, without ranking any, to have no pod below a priority."""
        if len(self._version) < self._table.size:
            return np.zeros(len(rows), np.bool_)
        above: BoolArray = (self.lowest[rows] >= priority) & (self._version[rows] == self._table.changes.version[rows])
        return above

    def pods(self, row: int) -> list[PodInfo]:
        """Return the pods of a row by rank, as of the last `refresh`."""
        return self._pods[row]

    def latest(self, row: int, ranks: Iterable[int]) -> tuple[PodInfo, ...]:
        """Return the latest versions of the pods of some ranks; not every new version changes the row."""
        ranked, known = self._pods[row], self._table.pods[row]
        return tuple([known[ranked[rank].uid] for rank in ranks])

    def _grow(self, rows: IntArray) -> None:
        table = self._table
        if len(self._pods) < table.size:
            self._pods.extend([] for _ in range(table.capacity - len(self._pods)))
            self._listed.extend(None for _ in range(table.capacity - len(self._listed)))
            known = len(self._version)
            self._version = grown(self._version, table.capacity)
            self._version[known:] = -1
            self.count = grown(self.count, table.capacity)
            self.lowest = grown(self.lowest, table.capacity)
            self.priority = grown(self.priority, table.capacity, axis=0)
            self.priority[known:] = _NO_PRIORITY
            self.start = grown(self.start, table.capacity, axis=0)
            self.freed = grown(self.freed, table.capacity, axis=0)
        ranks = int(table.pod_count[rows].max(initial=0))
        known = self.priority.shape[1]
        if known < ranks:
            ranks = max(ranks, 2 * known)
            self.priority = grown(self.priority, ranks, axis=1)
            self.priority[:, known:] = _NO_PRIORITY
            self.start = grown(self.start, ranks, axis=1)
            self.freed = grown(self.freed, ranks + 1, axis=1)
        if self.freed.shape[2] < len(table.requested):
            self.freed = grown(self.freed, len(table.requested), axis=2)

    def _rank(self, row: int, listed: list[PodInfo]) -> None:
        # The number keeps equally important pods in order of arrival, and prevents that pods are compared.
        keys = [
            (-pod.priority, NOT_STARTED if (start := pod.pod.status.startTime) is None else parse_time(start), number)
            for number, pod in enumerate(listed)
        ]
        keys.sort()
        self._pods[row] = pods = [listed[number] for _, _, number in keys]
        count = len(pods)
        if count < self.count[row]:
            self.priority[row, count:] = _NO_PRIORITY
        self.count[row] = count
        self.lowest[row] = pods[-1].priority if pods else _NO_PRIORITY
        self.priority[row, :count] = [pod.priority for pod in pods]
        self.start[row, :count] = [start for _, start, _ in keys]
        columns, width = self._table.resource_index, self.freed.shape[2]
        # From the lowest rank up, and as one flat list: numpy converts that in half the time of nested lists.
        freed = [0] * width
        sums = freed.copy()
        for pod in reversed(pods):
            for name, amount in pod.requests.amounts.items():
                freed[-1 - columns[name]] += amount
            sums += freed
        self.freed[row].reshape(-1)[(count + 1) * width - 1 :: -1] = sums
