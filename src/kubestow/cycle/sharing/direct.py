"""Rows judged, and those that pass scored, as they are asked about."""

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.journal import Layers
from kubestow.cycle.sharing.ready import Ready
from kubestow.cycle.sharing.results import RowResults
from kubestow.cycle.trace import Scored


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
        totals, is_traced = self._below.totals(evaluation, rows), evaluation.is_traced
        if self._ready.scores:
            parts: list[IntArray] | None = [] if is_traced else None
            totals += self._ready.score(evaluation, rows, None, parts)
            if parts is not None:
                evaluation.tell(self._ready.told(parts))
        for scoring in self._ready.normalizing:
            raw = scoring.judge(evaluation, rows)
            weighted = scoring.normalized(evaluation, rows, raw)
            totals += weighted
            if is_traced:
                evaluation.tell([Scored(scoring.hook.name, scoring.weight, raw, weighted)])
        return totals

    @property
    def layers(self) -> Layers | None:
        return self._below.layers
