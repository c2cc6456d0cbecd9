"""The pods that may be evicted on some nodes, in the order in which they are reprieved."""

from collections.abc import Sequence

import numpy as np

from kubestow.api.lazy import lazy
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import PodRanking
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets


class PotentialVictims:
    """The pods of lower priority on some rows. In arrays, `[turn, i]` is the pod of row `i` with this turn."""

    def __init__(self, ranking: PodRanking, rows: IntArray, number: IntArray) -> None:
        self.ranking = ranking
        self.rows = rows
        self.number = number
        """The number of potential victims on each row: these are the last ones of its ranking."""
        self.breaking: BoolArray | None = None
        """Whether evicting the pod violates a disruption budget; None: no eviction does."""

    @lazy
    def count(self) -> IntArray:
        """The number of pods on each row, of any priority."""
        count: IntArray = self.ranking.count[self.rows]
        return count

    @lazy
    def ranks(self) -> IntArray:
        """The rank of each pod on its row; `count` where a row has no pod for the turn."""
        turns = np.arange(int(self.number.max()))[:, None]
        ranks: IntArray = np.minimum(self.count - self.number + turns, self.count)
        return ranks

    @lazy
    def filled(self) -> BoolArray:
        """Whether there is a pod with the turn."""
        filled: BoolArray = self.ranks < self.count
        return filled

    @property
    def turns(self) -> int:
        return len(self.ranks)

    def pod(self, i: int, turn: int) -> PodInfo:
        return self.ranking.pods(int(self.rows[i]))[int(self.ranks[turn, i])]

    def pods_at(self, i: int, turn: int) -> Sequence[PodInfo]:
        return (self.pod(i, turn),)

    def changes_at(self, i: int, turn: int) -> Sequence[Change]:
        """Return the removal of a pod."""
        return (Change(self.pod(i, turn), int(self.rows[i]), added=False),)

    def counted_changes(self, is_counted: BoolArray) -> list[Change]:
        """Return the removals from rows whose pods are counted."""
        rows = self.rows.tolist()
        return [Change(pod, row, added=False) for i, row in enumerate(rows) if is_counted[row] for pod in self.pods(i)]

    def are_counted(self, is_counted: BoolArray) -> BoolArray:
        """Return which rows are counted."""
        counted: BoolArray = is_counted[self.rows]
        return counted

    def pods(self, i: int) -> list[PodInfo]:
        """Return the potential victims of a row, most important first."""
        pods = self.ranking.pods(int(self.rows[i]))
        return pods[len(pods) - int(self.number[i]) :]

    def only(self, which: BoolArray) -> "PotentialVictims":
        """Return the potential victims on some of the rows."""
        return PotentialVictims(self.ranking, self.rows[which], self.number[which])

    def freed(self) -> IntArray:
        """Return the sum of their requests by resource column and row."""
        return self._freed_from(self.count - self.number).T

    def amounts(self) -> IntArray:
        """Return their requests by turn, resource column and row; 0 where there is no pod."""
        following = np.minimum(self.ranks + 1, self.count)
        return (self._freed_from(self.ranks) - self._freed_from(following)).transpose(0, 2, 1)

    def priorities(self) -> IntArray:
        """Return their priorities by turn and row; undefined where there is no pod."""
        ranked = self.ranking.priority
        last = ranked.shape[1] - 1
        found: IntArray = ranked.reshape(-1).take(self.rows * (last + 1) + np.minimum(self.ranks, last))
        return found

    def _freed_from(self, ranks: IntArray) -> IntArray:
        """Return the sum of the requests of pods with these ranks and above, resource columns last."""
        freed = self.ranking.freed
        # Much faster than indexing by rows and ranks.
        found: IntArray = freed.reshape(-1, freed.shape[2]).take(self.rows * freed.shape[1] + ranks, axis=0)
        return found

    def protected_by(self, budgets: Budgets) -> "PotentialVictims":
        """Return the potential victims with those first whose eviction violates a budget."""
        if not budgets:
            return self
        breaking: BoolArray = np.zeros(self.ranks.shape, np.bool_)
        for i, number in enumerate(self.number.tolist()):
            breaking[:number, i] = budgets.broken_by(self.pods(i))
        if not breaking.any():
            return self
        # A stable sort keeps the order of importance among those that break a budget, and among the others.
        order = np.argsort(~breaking, axis=0, kind="stable")
        protected = PotentialVictims(self.ranking, self.rows, self.number)
        protected.ranks = np.take_along_axis(self.ranks, order, axis=0)
        protected.breaking = np.take_along_axis(breaking, order, axis=0)
        return protected


def potential_victims(ranking: PodRanking, rows: IntArray, priority: int) -> PotentialVictims:
    """Return the pods below a priority, most important first. Each row must be ranked, and have such a pod."""
    ranked = ranking.priority.take(rows, axis=0)[:, : int(ranking.count[rows].max())]
    # Summing columns of ranks is faster than summing short rows.
    return PotentialVictims(ranking, rows, (np.ascontiguousarray(ranked.T) < priority).sum(axis=0))
