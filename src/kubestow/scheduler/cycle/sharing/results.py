"""The interface to the results of plugins with `sign`, and results that are computed when they are requested."""

from typing import Protocol

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.sharing.prepared import PreparedPlugins


class RowResults(Protocol):
    """Which rows are feasible, and their scores."""

    def catch_up(self, evaluation: Evaluation) -> None:
        """Apply the changes of rows since the last call; to be called before the other methods."""

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        """Return which of the rows pass, as an array that the caller may modify."""
        ...

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        """Return the total scores of feasible rows, as an array that the caller may modify.

        Only the differences between rows are meaningful: a score that all rows share may be left out.
        """
        ...


class DirectResults:
    """The results of prepared plugins, combined with other results."""

    def __init__(self, plugins: PreparedPlugins, below: RowResults) -> None:
        self._plugins = plugins
        self._below = below

    def catch_up(self, evaluation: Evaluation) -> None:
        self._below.catch_up(evaluation)

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        passing = self._below.passing(evaluation, rows)
        self._plugins.refuse(evaluation, passing, rows)
        return passing

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        totals = self._below.totals(evaluation, rows)
        if self._plugins.scores:
            totals += self._plugins.score(evaluation, rows)
        for scoring in self._plugins.normalizing:
            totals += scoring.normalized(evaluation, rows, scoring.raw(evaluation, rows))
        return totals
