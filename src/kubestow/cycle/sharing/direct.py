"""Rows judged, and those that pass scored, as they are asked about."""

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.sharing.ready import Ready
from kubestow.cycle.sharing.results import RowResults


class Direct:
    """What ready plugins say, on top of other results."""

    def __init__(self, ready: Ready, below: RowResults) -> None:
        self._ready = ready
        self._below = below

    def catch_up(self, evaluation: Evaluation) -> None:
        self._below.catch_up(evaluation)

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        passing = self._below.passing(evaluation, rows)
        self._ready.refuse(evaluation, passing, rows)
        return passing

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        totals = self._below.totals(evaluation, rows)
        if self._ready.scores:
            totals += self._ready.score(evaluation, rows)
        for scoring in self._ready.normalizing:
            totals += scoring.normalized(evaluation, rows, scoring.judge(evaluation, rows))
        return totals
