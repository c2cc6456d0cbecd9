"""The fewest pods that must leave a node: all that may, then as many back as fit, the most important first."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.framework.verdicts import Verdicts
from kubestow.plugins.default_preemption.lineup import Lineup
from kubestow.plugins.default_preemption.trials import Trial


class DryRun(NamedTuple):
    """What was found for the rows of a lineup."""

    lineup: Lineup
    fits: BoolArray
    """By row, whether the pod fits once all pods of lower priority are gone."""
    must_go: BoolArray
    """By row and turn, which of them cannot stay."""
    first_look: Sequence[tuple[IntArray, Verdicts]]
    """What the filters said when all were gone, trial by trial."""

    def victims(self, i: int) -> tuple[PodInfo, ...]:
        """The pods that must leave a row, most important first."""
        pods = self.lineup.ranking.pods(int(self.lineup.rows[i]))
        return tuple(pods[rank] for rank in np.sort(self.lineup.ranks[i, self.must_go[i]]))

    def reasons(self) -> Counter[str]:
        """Why the pod does not even fit when all are gone, with the number of rows; the first refusal counts."""
        counts: Counter[str] = Counter()
        unexplained = ~self.fits
        for of, verdicts in self.first_look:
            for rejection, positions in verdicts.kinds():
                number = int(np.count_nonzero(unexplained[of[positions]]))
                for reason in rejection.reasons if number else ():
                    counts[reason] += number
            unexplained[of[~verdicts.passing]] = False
        return counts


def dry_run(lineup: Lineup, trials: Sequence[Trial]) -> DryRun:
    """Try the rows of a lineup, all in step."""
    for trial in trials:
        trial.clear()
    first_look = [(trial.of, trial.judge()) for trial in trials]
    fits = np.ones(len(lineup.rows), np.bool_)
    for of, verdicts in first_look:
        fits[of] &= verdicts.passing
    must_go = np.zeros(lineup.filled.shape, np.bool_)
    hopeful = [trial for trial in trials if fits[trial.of].any()]
    if hopeful:
        for turn in range(lineup.turns):
            must_go[:, turn] = _cannot_stay(turn, lineup.filled[:, turn] & fits, hopeful)
    return DryRun(lineup, fits, must_go, first_look)


def _cannot_stay(turn: int, returning: BoolArray, trials: Sequence[Trial]) -> BoolArray:
    """Let pods come back; those that take the room away leave again."""
    refused = np.zeros(len(returning), np.bool_)
    for trial in trials:
        trial.move(turn, returning, back=True)
        refused[trial.of] |= ~trial.still_passing()
    refused &= returning
    for trial in trials:
        trial.move(turn, refused, back=False)
    return refused
