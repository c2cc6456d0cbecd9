"""The minimum set of victims on a node: remove all potential victims, then add back those that fit, by importance."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, is_any_set
from kubestow.scheduler.framework.verdicts import Verdicts
from kubestow.scheduler.plugins.default_preemption.trials import Potential, Trial
from kubestow.scheduler.plugins.default_preemption.victims import PotentialVictims


class InitialVerdicts:
    """The verdicts of the filters on rows with all potential victims removed."""

    def __init__(self, victims: Potential, trials: Iterable[Trial]) -> None:
        self._size = len(victims.rows)
        self._verdicts: Sequence[tuple[IntArray, Verdicts]] = [pair for trial in trials for pair in trial.verdicts()]

    def rejected(self, ignoring: Collection[str] = ()) -> BoolArray:
        """Return by row whether the pod does not fit; rejections by the plugins in `ignoring` do not count."""
        rejected = np.zeros(self._size, np.bool_)
        for of, verdicts in self._verdicts:
            if not ignoring:
                rejected[of] |= ~verdicts.passing
            elif not verdicts.passing.all():
                for rejection, positions in verdicts.kinds():
                    if any(plugin not in ignoring for plugin in rejection.plugins):
                        rejected[of[positions]] = True
        return rejected

    def reasons(self) -> Iterator[tuple[tuple[str, ...], IntArray]]:
        """Yield reasons with the rows rejected for them; of several trials the first rejection counts."""
        unexplained = np.ones(self._size, np.bool_)
        for of, verdicts in self._verdicts:
            for rejection, positions in verdicts.kinds():
                rejected = of[positions]
                yield rejection.reasons, rejected[unexplained[rejected]]
            unexplained[of[~verdicts.passing]] = False


class DryRun(msgspec.Struct, frozen=True):
    """The victims on rows where the pod fits with all potential victims removed."""

    victims: PotentialVictims
    is_victim: BoolArray
    """By turn and row, whether the pod is a victim."""

    def by_rank(self) -> BoolArray:
        """Return by rank and row whether the pod is a victim."""
        by_rank = np.zeros((int(self.victims.count.max()) + 1, len(self.victims.rows)), np.bool_)
        # Turns without a pod are mapped to an extra rank at the end.
        np.put_along_axis(by_rank, self.victims.ranks, self.is_victim, axis=0)
        return by_rank[:-1]


def reprieve(victims: PotentialVictims, trials: Sequence[Trial]) -> DryRun:
    """Return the minimum set of victims."""
    return DryRun(victims, minimum(victims, trials))


def minimum(victims: Potential, trials: Sequence[Trial]) -> BoolArray:
    """Add pods back turn by turn, on all rows at once; remove those again with which the preemptor does not fit.

    Return by turn and row whether the pod is a victim.
    """
    filled = victims.filled
    is_victim = np.zeros(filled.shape, np.bool_)
    for turn, rejected in enumerate(is_victim):
        for trial in trials:
            trial.reprieve(turn)
            rejected[trial.of] |= ~trial.still_passing()
        rejected &= filled[turn]
        if is_any_set(rejected):
            for trial in trials:
                trial.remove(turn, rejected)
    return is_victim
