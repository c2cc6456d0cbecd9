"""Who may be evicted on some nodes, in the order in which it is tried to let them stay."""

from typing import NamedTuple

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.ranking import PodRanking
from kubestow.plugins.default_preemption.budgets import Budgets


class Lineup(NamedTuple):
    """The pods of lower priority on some rows. `[i, turn]` is about the pod of row `i` that has this turn."""

    ranking: PodRanking
    rows: IntArray
    number: IntArray
    """How many there are on each row: the last so many of its ranking."""
    ranks: IntArray
    """The pods, by their rank on the row."""
    filled: BoolArray
    """Whether there is a pod for the turn; rows have different numbers of them."""
    breaking: BoolArray | None = None
    """Whether evicting the pod breaks a disruption budget; None: nobody's eviction does."""

    @property
    def turns(self) -> int:
        return int(self.ranks.shape[1])

    def pod(self, i: int, turn: int) -> PodInfo:
        return self.ranking.pods(int(self.rows[i]))[int(self.ranks[i, turn])]

    def pods(self, i: int) -> list[PodInfo]:
        """The pods of a row, most important first."""
        pods = self.ranking.pods(int(self.rows[i]))
        return pods[len(pods) - int(self.number[i]) :]

    def only(self, which: BoolArray | IntArray) -> "Lineup":
        """Some of the rows."""
        breaking = None if self.breaking is None else self.breaking[which]
        return Lineup(
            self.ranking, self.rows[which], self.number[which], self.ranks[which], self.filled[which], breaking
        )

    def freed(self) -> IntArray:
        """By resource column and row, what all of them request."""
        freed: IntArray = self.ranking.freed[self.rows, self.ranking.count[self.rows] - self.number]
        return freed.T

    def amounts(self) -> IntArray:
        """By turn, resource column and row, what the pods request; 0 where there is none."""
        freed, rows = self.ranking.freed, self.rows[:, None]
        amounts = freed[rows, self.ranks] - freed[rows, self.ranks + 1]
        amounts[~self.filled] = 0
        return np.ascontiguousarray(amounts.transpose(1, 2, 0))

    def protected_by(self, budgets: Budgets) -> "Lineup":
        """Those whose eviction breaks a budget come first."""
        if not budgets:
            return self
        breaking: BoolArray = np.zeros(self.ranks.shape, np.bool_)
        for i, number in enumerate(self.number.tolist()):
            breaking[i, :number] = budgets.broken_by(self.pods(i))
        if not breaking.any():
            return self
        # A stable sort keeps the order of importance among those that break a budget, and among the others.
        order = np.argsort(~breaking, axis=1, kind="stable")
        return self._replace(
            ranks=np.take_along_axis(self.ranks, order, axis=1),
            filled=np.take_along_axis(self.filled, order, axis=1),
            breaking=np.take_along_axis(breaking, order, axis=1),
        )


def line_up(ranking: PodRanking, rows: IntArray, priority: int) -> Lineup:
    """The pods below a priority on rows that were ranked and have some, most important first."""
    count = ranking.count[rows]
    number = np.count_nonzero(ranking.priority[rows, : int(count.max())] < priority, axis=1)
    turns = np.arange(int(number.max()))
    filled = turns < number[:, None]
    ranks = np.where(filled, (count - number)[:, None] + turns, 0)
    return Lineup(ranking, rows, number, ranks, filled)
