"""The results of a preemption search in columns: candidates, victims and costs by row.

The findings for a row are valid until the row changes. They apply to one pod, or to all pods with equal signatures.
"""

from collections import Counter

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, FloatArray, IdArray, IntArray, NDArray, grown
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import PodRanking
from kubestow.scheduler.plugins.default_preemption.dry_run import DryRun

# The kinds of rows; CANDIDATE and above are candidates.
UNTRIED, NO_VICTIMS, REJECTED, FITS_ALREADY, CANDIDATE, BREAKING_CANDIDATE = range(6)

Kinds = NDArray[np.int8]

LOWEST_PRIORITY = -(1 << 31)
_UNEXPLAINED = 0
BUDGETS_BROKEN, HIGHEST_PRIORITY, PRIORITIES, VICTIMS, START = range(5)


class Findings:
    """Findings by row of the node table."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """The number of rows allocated."""
        self.kind: Kinds = np.zeros(capacity, np.int8)
        self.cost: FloatArray = np.empty((5, capacity), np.float64)
        """The cost of candidates by criterion and row, as in `WeighedCandidates`; NOT_STARTED for pods not started."""
        self._is_victim: BoolArray = np.empty((0, capacity), np.bool_)
        """The victims of candidates, by rank of the pod and row."""
        self._units: dict[int, tuple[PodInfo, ...]] = {}
        """The victims of candidates with pods of groups, by row."""
        self._reason: IdArray = np.empty(capacity, np.int32)
        """The index into `_reason_lists`, for rejected rows."""
        self._reason_lists: list[tuple[str, ...]] = [()]
        self._number_of: dict[tuple[str, ...], int] = {}

    def discard(self, rows: IntArray | list[int] | slice) -> None:
        """Discard the findings for rows that have changed."""
        self.kind[rows] = UNTRIED

    def discard_units(self, rows: IntArray | list[int]) -> None:
        """Discard the findings for rows that have pods of groups, or had some."""
        self.discard([*self._units])
        self._units.clear()
        self.discard(rows)

    def record_units(self, row: int, victims: tuple[PodInfo, ...], cost: tuple[float, ...]) -> None:
        """Record the victims on a row with pods of groups, and their cost; none if the pod fits without evictions."""
        if not victims:
            self.kind[row] = FITS_ALREADY
            return
        self.kind[row] = BREAKING_CANDIDATE if cost[BUDGETS_BROKEN] else CANDIDATE
        self.cost[:, row] = cost
        self._units[row] = victims

    def record_no_victims(self, rows: IntArray) -> None:
        """Record rows without pods of lower priority."""
        self.kind[rows] = NO_VICTIMS

    def record_rejected(self, rows: IntArray) -> None:
        """Record rows where the pod does not fit even with all potential victims removed."""
        self.kind[rows] = REJECTED
        self._reason[rows] = _UNEXPLAINED

    def record_reasons(self, rows: IntArray, reasons: tuple[str, ...]) -> None:
        """Record the reasons of rejected rows."""
        number = self._number_of.get(reasons)
        if number is None:
            number = self._number_of[reasons] = len(self._reason_lists)
            self._reason_lists.append(reasons)
        self._reason[rows] = number

    def record(self, run: DryRun) -> None:
        """Record victims and costs of a dry run."""
        rows, ranking, cost = run.victims.rows, run.victims.ranking, self.cost
        by_rank = run.by_rank()
        number = run.is_victim.sum(axis=0)
        # Ranks are ordered by priority, then by running time: the first victim is the most important.
        first = by_rank.argmax(axis=0)
        cost[BUDGETS_BROKEN, rows] = 0
        cost[HIGHEST_PRIORITY, rows] = ranking.priority[rows, first]
        cost[PRIORITIES, rows] = ((run.victims.priorities() - LOWEST_PRIORITY) * run.is_victim).sum(axis=0)
        cost[VICTIMS, rows] = number
        cost[START, rows] = ranking.start[rows, first]
        self.kind[rows] = np.where(number > 0, CANDIDATE, FITS_ALREADY)
        if run.victims.breaking is not None:
            broken = (run.is_victim & run.victims.breaking).sum(axis=0)
            cost[BUDGETS_BROKEN, rows] = broken
            self.kind[rows[broken > 0]] = BREAKING_CANDIDATE
        if len(self._is_victim) < len(by_rank):
            self._is_victim = grown(self._is_victim, ranking.priority.shape[1], axis=0)
        self._is_victim[: len(by_rank), rows] = by_rank

    def victims(self, row: int, ranking: PodRanking) -> tuple[PodInfo, ...]:
        """Return the victims on a candidate, most important first."""
        if row in self._units:
            return self._units[row]
        ranked = ranking.pods(row)
        return ranking.latest(row, self._is_victim[: len(ranked), row].nonzero()[0].tolist())

    def unexplained(self, rows: IntArray) -> IntArray:
        """Return the rejected rows whose reasons have not been computed."""
        found: IntArray = rows[(self.kind[rows] == REJECTED) & (self._reason[rows] == _UNEXPLAINED)]
        return found

    def reasons(self, rows: IntArray) -> Counter[str]:
        """Return the number of rejected rows by reason."""
        counts: Counter[str] = Counter()
        rejected = self._reason[rows[self.kind[rows] == REJECTED]]
        for reasons, number in zip(self._reason_lists, np.bincount(rejected).tolist(), strict=False):
            for reason in reasons if number else ():
                counts[reason] += number
        return counts
