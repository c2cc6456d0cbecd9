"""Going through the nodes where evicting pods may help, from a random one on, until there are enough candidates."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.framework.plugin import FailedEvaluation
from kubestow.framework.results import Code
from kubestow.plugins.default_preemption.budgets import Budgets
from kubestow.plugins.default_preemption.choice import Candidates
from kubestow.plugins.default_preemption.dry_run import DryRun, dry_run
from kubestow.plugins.default_preemption.lineup import Lineup, line_up
from kubestow.plugins.default_preemption.trials import rows_apart, set_up

_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_FEWEST_AT_A_TIME = 32


def helpful_rows(cluster: Cluster, cycle: FailedEvaluation) -> IntArray:
    """The rows that were refused for something that evicting pods may change."""
    if cycle.rejected is not None:
        is_resolvable = cycle.rejected.code is Code.UNSCHEDULABLE
        return np.flatnonzero(cluster.nodes.live) if is_resolvable else np.zeros(0, np.int64)
    verdicts = cycle.verdicts
    return np.zeros(0, np.int64) if verdicts is None else verdicts.rows[verdicts.resolvable()]


class Search:
    """One search for candidates."""

    def __init__(self, cluster: Cluster, cycle: FailedEvaluation, pod: PodInfo) -> None:
        self._cluster = cluster
        self._cycle = cycle
        self._pod = pod
        self._reasons: Counter[str] = Counter()
        self._fruitless: list[DryRun] = []
        self.problems: list[str] = []
        """What went wrong on nodes that are no candidates for it."""

    def run(self, rows: IntArray, candidates: Candidates) -> None:
        """Try the rows in this order, some at a time."""
        ranking, priority = self._cluster.ranking, self._pod.priority
        budgets = Budgets(self._cluster.listers)
        hopeless = ranking.known_above(rows, priority)
        self._reasons[_NO_VICTIMS] += int(np.count_nonzero(hopeless))
        rows = rows[~hopeless]
        start = 0
        while start < len(rows) and not candidates.enough:
            some = rows[start : start + max(candidates.missing * 5 // 4, _FEWEST_AT_A_TIME)]
            start += len(some)
            ranking.refresh(some)
            has_victims = ranking.lowest[some] < priority
            self._reasons[_NO_VICTIMS] += int(np.count_nonzero(~has_victims))
            if has_victims.any():
                self._try(line_up(ranking, some[has_victims], priority, budgets), candidates)

    def _try(self, lineup: Lineup, candidates: Candidates) -> None:
        for part, shared in self._parts(lineup):
            trials = set_up(self._cycle, self._cluster.nodes, part, shared=shared)
            run = dry_run(part, trials)
            candidates.add(run)
            if candidates.enough:
                return
            self._fruitless.append(run)
            self._note_problems(run)

    def _parts(self, lineup: Lineup) -> Iterator[tuple[Lineup, bool]]:
        apart = rows_apart(self._cycle, lineup)
        if not apart.any():
            yield lineup, True
            return
        if not apart.all():
            yield lineup.only(~apart), True
        for i in np.flatnonzero(apart):
            yield lineup.only(np.array([i])), False

    def _note_problems(self, run: DryRun) -> None:
        for i in np.flatnonzero(run.fits & ~run.must_go.any(axis=1)):
            name = self._cluster.nodes.names[int(run.lineup.rows[i])]
            self.problems.append(f'expected at least one victim pod on node "{name}"')

    def message(self) -> str:
        """Why there are no candidates."""
        reasons = self._reasons.copy()
        tried = reasons[_NO_VICTIMS]
        for run in self._fruitless:
            reasons += run.reasons()
            tried += len(run.lineup.rows)
        count = self._cluster.nodes.count
        reasons[_NOT_HELPFUL] += count - tried
        counted = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items() if n))
        return f"0/{count} nodes are available: {counted}."
