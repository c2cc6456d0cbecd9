"""What was found out about rows, in columns: where evicting pods helps a pod, who must go, and what that costs.

It is true of a row until something changes there. What it was found for is one pod, or all pods that are equal to it.
"""

from collections import Counter

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, FloatArray, IdArray, IntArray, NDArray, grown
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import PodRanking
from kubestow.scheduler.plugins.default_preemption.dry_run import DryRun

# What a row is; those from CANDIDATE on are candidates.
UNTRIED, NO_VICTIMS, REFUSED, FITS_ANYWAY, CANDIDATE, BREAKING_CANDIDATE = range(6)

Kinds = NDArray[np.int8]

LOWEST_PRIORITY = -(1 << 31)
_UNEXPLAINED = 0
BUDGETS_BROKEN, HIGHEST_PRIORITY, PRIORITIES, VICTIMS, START = range(5)


class Findings:
    """By row of the table."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """For how many rows there is room."""
        self.kind: Kinds = np.zeros(capacity, np.int8)
        self.cost: FloatArray = np.empty((5, capacity), np.float64)
        """Of candidates, by column and row, as `Weighed` has it (NOT_STARTED: not yet)."""
        self._must_go: BoolArray = np.empty((0, capacity), np.bool_)
        """Of candidates, by rank of the pod and row."""
        self._reason: IdArray = np.empty(capacity, np.int32)
        """Of refused rows: the number of the words."""
        self._words: list[tuple[str, ...]] = [()]
        self._number_of: dict[tuple[str, ...], int] = {}

    def forget(self, rows: IntArray | list[int] | slice) -> None:
        """These rows have changed."""
        self.kind[rows] = UNTRIED

    def note_no_victims(self, rows: IntArray) -> None:
        """Nobody there may be evicted."""
        self.kind[rows] = NO_VICTIMS

    def note_refused(self, rows: IntArray) -> None:
        """Even with all gone that may be evicted, the pod does not fit there."""
        self.kind[rows] = REFUSED
        self._reason[rows] = _UNEXPLAINED

    def note_reasons(self, rows: IntArray, words: tuple[str, ...]) -> None:
        """Why refused rows are."""
        number = self._number_of.get(words)
        if number is None:
            number = self._number_of[words] = len(self._words)
            self._words.append(words)
        self._reason[rows] = number

    def note(self, run: DryRun) -> None:
        """Take over who must go."""
        rows, ranking, cost = run.victims.rows, run.victims.ranking, self.cost
        by_rank = run.by_rank()
        number = run.must_go.sum(axis=0)
        # Ranks go by priority, then by how long a pod runs: the first victim is the most important.
        first = by_rank.argmax(axis=0)
        cost[BUDGETS_BROKEN, rows] = 0
        cost[HIGHEST_PRIORITY, rows] = ranking.priority[rows, first]
        cost[PRIORITIES, rows] = ((run.victims.priorities() - LOWEST_PRIORITY) * run.must_go).sum(axis=0)
        cost[VICTIMS, rows] = number
        cost[START, rows] = ranking.start[rows, first]
        self.kind[rows] = np.where(number > 0, CANDIDATE, FITS_ANYWAY)
        if run.victims.breaking is not None:
            broken = (run.must_go & run.victims.breaking).sum(axis=0)
            cost[BUDGETS_BROKEN, rows] = broken
            self.kind[rows[broken > 0]] = BREAKING_CANDIDATE
        if len(self._must_go) < len(by_rank):
            self._must_go = grown(self._must_go, ranking.priority.shape[1], axis=0)
        self._must_go[: len(by_rank), rows] = by_rank

    def victims(self, row: int, ranking: PodRanking) -> tuple[PodInfo, ...]:
        """The pods that must leave a candidate, most important first."""
        ranked = ranking.pods(row)
        return ranking.latest(row, self._must_go[: len(ranked), row].nonzero()[0].tolist())

    def unexplained(self, rows: IntArray) -> IntArray:
        """Those of the rows that are refused for reasons not known yet."""
        found: IntArray = rows[(self.kind[rows] == REFUSED) & (self._reason[rows] == _UNEXPLAINED)]
        return found

    def reasons(self, rows: IntArray) -> Counter[str]:
        """Why rows are refused, with the number of rows."""
        counts: Counter[str] = Counter()
        refused = self._reason[rows[self.kind[rows] == REFUSED]]
        for words, number in zip(self._words, np.bincount(refused).tolist(), strict=False):
            for reason in words if number else ():
                counts[reason] += number
        return counts
