"""The fewest pods that must leave a node: all that may, then as many back as fit, the most important first."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, is_any_set
from kubestow.scheduler.framework.verdicts import Verdicts
from kubestow.scheduler.plugins.default_preemption.trials import Trial
from kubestow.scheduler.plugins.default_preemption.victims import PotentialVictims


class FirstLook:
    """What the filters say of the rows of potential victims once all who may be evicted are gone."""

    def __init__(self, victims: PotentialVictims, trials: Iterable[Trial]) -> None:
        self._size = len(victims.rows)
        self._answers: Sequence[tuple[IntArray, Verdicts]] = [answer for trial in trials for answer in trial.judge()]

    def refused(self, save_by: Collection[str] = ()) -> BoolArray:
        """By row, whether the pod does not fit even then; what some plugins say may be left out."""
        refused = np.zeros(self._size, np.bool_)
        for of, verdicts in self._answers:
            if not save_by:
                refused[of] |= ~verdicts.passing
            elif not verdicts.passing.all():
                for rejection, positions in verdicts.kinds():
                    if any(plugin not in save_by for plugin in rejection.plugins):
                        refused[of[positions]] = True
        return refused

    def reasons(self) -> Iterator[tuple[tuple[str, ...], IntArray]]:
        """Why rows are refused; of several trials the first refusal counts."""
        unexplained = np.ones(self._size, np.bool_)
        for of, verdicts in self._answers:
            for rejection, positions in verdicts.kinds():
                refused = of[positions]
                yield rejection.reasons, refused[unexplained[refused]]
            unexplained[of[~verdicts.passing]] = False


class DryRun(msgspec.Struct, frozen=True):
    """What was found for the rows of potential victims on which the pod fits once all are gone."""

    victims: PotentialVictims
    must_go: BoolArray
    """By turn and row, which of the pods cannot stay."""

    def by_rank(self) -> BoolArray:
        """The same by rank and row."""
        by_rank = np.zeros((int(self.victims.count.max()) + 1, len(self.victims.rows)), np.bool_)
        # Turns without a pod end up in the last of the ranks, which is nobody's.
        np.put_along_axis(by_rank, self.victims.ranks, self.must_go, axis=0)
        return by_rank[:-1]


def reprieve(victims: PotentialVictims, trials: Sequence[Trial]) -> DryRun:
    """Let pods come back, in all rows in step; those that take the room away leave again."""
    must_go = np.zeros(victims.filled.shape, np.bool_)
    for turn, refused in enumerate(must_go):
        for trial in trials:
            trial.reprieve(turn)
            refused[trial.of] |= ~trial.still_passing()
        refused &= victims.filled[turn]
        if is_any_set(refused):
            for trial in trials:
                trial.remove(turn, refused)
    return DryRun(victims, must_go)
