"""The interface to the results of plugins with `sign`."""

from typing import Protocol

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cycle.evaluation import Evaluation


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
