"""What plugins that sign say of rows, wherever it comes from."""

from typing import Protocol

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cycle.evaluation import Evaluation


class RowResults(Protocol):
    """Whether rows will do, and how good they are."""

    def catch_up(self, evaluation: Evaluation) -> None:
        """Follow what has changed; to be called before rows are asked about."""

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        """Which rows pass: an array of its own, which the asker may go on with."""
        ...

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        """The scores of rows that pass, apart from what all have in common: likewise."""
        ...
