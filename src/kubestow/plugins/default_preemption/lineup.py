"""Who may be evicted on some nodes, in the order in which it is tried to let them stay."""

from typing import NamedTuple

import numpy as np

from kubestow.cluster.arrays import BoolArray, FloatArray, IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.ranking import PodRanking
from kubestow.plugins.default_preemption.budgets import Budgets


class Lineup(NamedTuple):
    """The pods of lower priority on some rows. `[i, turn]` is about the pod of row `i` that has this turn."""

    ranking: PodRanking
    rows: IntArray
    ranks: IntArray
    """The pods, by their rank on the row."""
    filled: BoolArray
    """Whether there is a pod for the turn; rows have different numbers of them."""
    breaking: BoolArray
    """Whether evicting the pod breaks a disruption budget."""

    @property
    def turns(self) -> int:
        return int(self.ranks.shape[1])

    def pod(self, i: int, turn: int) -> PodInfo:
        return self.ranking.pods(int(self.rows[i]))[int(self.ranks[i, turn])]

    def pods(self, i: int) -> list[PodInfo]:
        """The pods of a row, most important first."""
        ranks = np.sort(self.ranks[i, self.filled[i]])
        pods = self.ranking.pods(int(self.rows[i]))
        return [pods[rank] for rank in ranks]

    def only(self, which: BoolArray | IntArray) -> "Lineup":
        """Some of the rows."""
        return Lineup(self.ranking, self.rows[which], self.ranks[which], self.filled[which], self.breaking[which])

    def amounts(self) -> IntArray:
        """By turn, resource column and row, what the pods request; 0 where there is none."""
        amounts = self.ranking.amounts[self.rows[:, None], self.ranks]
        amounts[~self.filled] = 0
        return np.ascontiguousarray(amounts.transpose(1, 2, 0))

    def priorities(self, i: IntArray, ranks: IntArray) -> IntArray:
        return self.ranking.priority[self.rows[i], ranks]

    def starts(self, i: IntArray, ranks: IntArray) -> FloatArray:
        return self.ranking.start[self.rows[i], ranks]


def line_up(ranking: PodRanking, rows: IntArray, priority: int, budgets: Budgets) -> Lineup:
    """The pods below a priority on rows that were ranked and have some; those breaking budgets first."""
    count = ranking.count[rows]
    below = ranking.priority[rows, : int(count.max())] < priority
    number = np.count_nonzero(below, axis=1)
    turns = np.arange(int(number.max()))
    filled = turns < number[:, None]
    ranks = np.where(filled, (count - number)[:, None] + turns, 0)
    breaking = np.zeros(ranks.shape, np.bool_)
    if budgets:
        for i, row in enumerate(rows.tolist()):
            broken = budgets.broken_by(ranking.pods(row)[int(count[i] - number[i]) :])
            if any(broken):
                breaking[i, : number[i]] = broken
        # A stable sort keeps the order of importance among those that break a budget, and among the others.
        order = np.argsort(~breaking, axis=1, kind="stable") if breaking.any() else None
        if order is not None:
            ranks, filled, breaking = (np.take_along_axis(of, order, axis=1) for of in (ranks, filled, breaking))
    return Lineup(ranking, rows, ranks, filled, breaking)
