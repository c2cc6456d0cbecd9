"""The nodes where evicting pods helps, and which of them is harmed least."""

from typing import NamedTuple

import numpy as np

from kubestow.cluster.arrays import FloatArray, IntArray
from kubestow.cluster.ranking import NOT_STARTED
from kubestow.plugins.default_preemption.dry_run import DryRun

_ABOVE_ANY_RANK = np.iinfo(np.int64).max
_LOWEST_PRIORITY = -(1 << 31)


class Harm(NamedTuple):
    """What evicting the victims would do on some rows; the less the better, what comes first counts first."""

    budgets_broken: IntArray
    highest_priority: IntArray
    priorities: IntArray
    """Added up, each counted from the lowest there can be, so that more victims are never better."""
    victims: IntArray
    running: FloatArray
    """When the longest running of the victims with the highest priority was started, negated: later is better."""


class Candidates:
    """Rows where evicting pods helps, in the order found, until there are enough."""

    def __init__(self, wanted: int, now: float) -> None:
        self._wanted = wanted
        self._now = now
        self._found: list[tuple[DryRun, IntArray, Harm]] = []
        self._breaking = 0
        self._not_breaking = 0

    def __len__(self) -> int:
        return self._breaking + self._not_breaking

    @property
    def enough(self) -> bool:
        """Whether there are as many as wanted, one of them without breaking a budget."""
        return self._not_breaking > 0 and len(self) >= self._wanted

    @property
    def missing(self) -> int:
        """How many more to look for; as many again, if all that were found break a budget."""
        return self._wanted - len(self) or self._wanted

    def add(self, run: DryRun) -> None:
        """Take the candidates of a dry run, no more than are needed."""
        number = np.count_nonzero(run.must_go, axis=1)
        broken = np.count_nonzero(run.must_go & run.lineup.breaking, axis=1)
        found = np.flatnonzero(number > 0)
        is_breaking = broken[found] > 0
        breaking = np.minimum(self._breaking + np.cumsum(is_breaking), self._wanted)
        not_breaking = self._not_breaking + np.cumsum(~is_breaking)
        enough = (not_breaking > 0) & (breaking + not_breaking >= self._wanted)
        if enough.any():
            until = int(np.argmax(enough)) + 1
            found, is_breaking = found[:until], is_breaking[:until]
            breaking, not_breaking = breaking[:until], not_breaking[:until]
        if not len(found):
            return
        room = np.diff(breaking, prepend=self._breaking) > 0
        found = found[room | ~is_breaking]
        self._breaking, self._not_breaking = int(breaking[-1]), int(not_breaking[-1])
        self._found.append((run, found, self._harm(run, found, number, broken)))

    def _harm(self, run: DryRun, found: IntArray, number: IntArray, broken: IntArray) -> Harm:
        lineup, must_go, ranks = run.lineup, run.must_go[found], run.lineup.ranks[found]
        # Ranks go by priority, then by how long a pod runs: the first victim tells the most important.
        first = np.where(must_go, ranks, _ABOVE_ANY_RANK).min(axis=1, initial=_ABOVE_ANY_RANK)
        start = lineup.starts(found, first)
        return Harm(
            budgets_broken=broken[found],
            highest_priority=lineup.priorities(found, first),
            priorities=((lineup.priorities(found[:, None], ranks) - _LOWEST_PRIORITY) * must_go).sum(axis=1),
            victims=number[found],
            running=-np.where(start == NOT_STARTED, self._now, start),
        )

    def least_harmed(self) -> tuple[DryRun, int]:
        """The dry run and its row where evicting harms least; the first found, where it is all the same."""
        left = np.arange(len(self))
        for column in zip(*(harm for _, _, harm in self._found), strict=True):
            values = np.concatenate(column)[left]
            left = left[values == values.min()]
            if len(left) == 1:
                break
        number = int(left[0])
        for run, found, _ in self._found:
            if number < len(found):
                return run, int(found[number])
            number -= len(found)
        raise LookupError("there are no candidates")
