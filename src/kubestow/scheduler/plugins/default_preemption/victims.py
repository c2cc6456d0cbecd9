"""Who may be evicted on some nodes, in the order in which it is tried to let them stay."""

import numpy as np

from kubestow.api.lazy import lazy
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import PodRanking
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets


class PotentialVictims:
    """The pods of lower priority on some rows. `[turn, i]` is about the pod of row `i` that has this turn."""

    def __init__(self, ranking: PodRanking, rows: IntArray, number: IntArray) -> None:
        self.ranking = ranking
        self.rows = rows
        self.number = number
        """How many there are on each row: the last so many of its ranking."""
        self.breaking: BoolArray | None = None
        """Whether evicting the pod breaks a disruption budget; None: nobody's eviction does."""

    @lazy
    def count(self) -> IntArray:
        """How many pods each row has, whatever their priority."""
        count: IntArray = self.ranking.count[self.rows]
        return count

    @lazy
    def ranks(self) -> IntArray:
        """The pods, by their rank on the row; `count` where there is none, as rows have different numbers of them."""
        turns = np.arange(int(self.number.max()))[:, None]
        ranks: IntArray = np.minimum(self.count - self.number + turns, self.count)
        return ranks

    @lazy
    def filled(self) -> BoolArray:
        """Whether there is a pod for the turn."""
        filled: BoolArray = self.ranks < self.count
        return filled

    @property
    def turns(self) -> int:
        return len(self.ranks)

    def pod(self, i: int, turn: int) -> PodInfo:
        return self.ranking.pods(int(self.rows[i]))[int(self.ranks[turn, i])]

    def pods(self, i: int) -> list[PodInfo]:
        """The pods of a row, most important first."""
        pods = self.ranking.pods(int(self.rows[i]))
        return pods[len(pods) - int(self.number[i]) :]

    def only(self, which: BoolArray) -> "PotentialVictims":
        """Some of the rows."""
        return PotentialVictims(self.ranking, self.rows[which], self.number[which])

    def freed(self) -> IntArray:
        """By resource column and row, what all of them request."""
        return self._freed_from(self.count - self.number).T

    def amounts(self) -> IntArray:
        """By turn, resource column and row, what the pods request; 0 where there is none."""
        following = np.minimum(self.ranks + 1, self.count)
        return (self._freed_from(self.ranks) - self._freed_from(following)).transpose(0, 2, 1)

    def priorities(self) -> IntArray:
        """By turn and row; any where there is no pod."""
        ranked = self.ranking.priority
        last = ranked.shape[1] - 1
        found: IntArray = ranked.reshape(-1).take(self.rows * (last + 1) + np.minimum(self.ranks, last))
        return found

    def _freed_from(self, ranks: IntArray) -> IntArray:
        """What the pods from these ranks on request, resource columns last."""
        freed = self.ranking.freed
        # Far faster than an index of rows and one of ranks.
        found: IntArray = freed.reshape(-1, freed.shape[2]).take(self.rows * freed.shape[1] + ranks, axis=0)
        return found

    def protected_by(self, budgets: Budgets) -> "PotentialVictims":
        """Those whose eviction breaks a budget come first."""
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
    """The pods below a priority on rows that were ranked and have some, most important first."""
    ranked = ranking.priority.take(rows, axis=0)[:, : int(ranking.count[rows].max())]
    # Columns of ranks are added up faster than short rows.
    return PotentialVictims(ranking, rows, (np.ascontiguousarray(ranked.T) < priority).sum(axis=0))
