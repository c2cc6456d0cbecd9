"""Searches the nodes where eviction may help, from a random one on, until there are enough candidates.

Only rows without findings are tried, in batches, until there are enough candidates; batches may have a few more rows
than needed if that saves work for the next search.
"""

from collections.abc import Sequence

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, are_all_set, is_any_set
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.plugin import FailedEvaluation, PodsRead
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets
from kubestow.scheduler.plugins.default_preemption.choice import cost_of, first_candidates
from kubestow.scheduler.plugins.default_preemption.dry_run import InitialVerdicts, minimum, reprieve
from kubestow.scheduler.plugins.default_preemption.findings import FITS_ALREADY, NO_VICTIMS, UNTRIED, Findings, Kinds
from kubestow.scheduler.plugins.default_preemption.trials import Trial, adapting_filters, make_trials
from kubestow.scheduler.plugins.default_preemption.units import potential_units, rows_with_groups
from kubestow.scheduler.plugins.default_preemption.victims import PotentialVictims, potential_victims

_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_MIN_BATCH = 32
_SMALL_BATCH = 16
"""Batches up to this size are checked with cheap filters first."""


def helpful_rows(cluster: Cluster, cycle: FailedEvaluation) -> IntArray:
    """Return the rows that were rejected for a reason that eviction may change."""
    if cycle.rejected is not None:
        code = cycle.rejected.code
        return np.flatnonzero(cluster.nodes.live) if code is Code.UNSCHEDULABLE else np.zeros(0, np.int64)
    return np.zeros(0, np.int64) if cycle.verdicts is None else cycle.verdicts.summary().resolvable_rows


class Search:
    """A search for candidates among some rows, in their order."""

    def __init__(
        self,
        cluster: Cluster,
        cycle: FailedEvaluation,
        pod: PodInfo,
        budgets: Budgets,
        findings: Findings,
        rows: IntArray,
        now: float,
    ) -> None:
        self._cluster = cluster
        self._now = now
        self._table = cluster.nodes
        self._ranking = cluster.ranking
        self._cycle = cycle
        self._priority = pod.priority
        self._budgets = budgets
        self._findings = findings
        self._rows = rows
        self._grouped = rows_with_groups(cluster)
        """The rows with pods of groups. What is found for them depends on pods on other rows, and is not kept."""
        if cluster.groups is not None:
            findings.discard_units([] if self._grouped is None else self._grouped.nonzero()[0])

    def run(self, wanted: int) -> IntArray:
        """Return the rows of the first candidates."""
        rows, findings, tried = self._rows, self._findings, 0
        kinds = findings.kind[rows]
        self._record_rows_without_victims(kinds)
        while True:
            found, are_enough = first_candidates(kinds, wanted)
            untried = (kinds == UNTRIED).nonzero()[0]
            needed = int(untried.searchsorted(found[-1])) if are_enough else len(untried)
            if not needed:
                return rows[found]
            number = _batch_size(wanted, len(found), tried)
            # If filters read sums only, additional rows for the next searches cost almost nothing.
            some = untried[: number if self._cycle.reads_pods <= PodsRead.SUMS else min(number, needed)]
            self._try(rows[some])
            tried += len(some)
            kinds[some] = findings.kind[rows[some]]

    def _record_rows_without_victims(self, kinds: Kinds) -> None:
        """Record rows that are known to have no potential victims, so that they are not tried."""
        untried = (kinds == UNTRIED).nonzero()[0]
        without_victims = untried[self._ranking.known_above(self._rows[untried], self._priority)]
        if len(without_victims):
            kinds[without_victims] = NO_VICTIMS
            self._findings.record_no_victims(self._rows[without_victims])

    # Trying

    def _try(self, rows: IntArray) -> None:
        if self._grouped is not None:
            grouped = self._grouped[rows]
            self._try_units(rows[grouped])
            rows = rows[~grouped]
        if len(rows):
            self._try_pods(rows)

    def _try_units(self, rows: IntArray) -> None:
        """Try rows with pods of groups."""
        units = potential_units(self._cluster, rows, self._priority, self._budgets, self._now)
        has_victims = np.array([len(on_row) > 0 for on_row in units.units], np.bool_)
        self._findings.record_no_victims(rows[~has_victims])
        units = units.only(has_victims)
        if not len(units.rows):
            return
        adapting = adapting_filters(self._cycle, units)
        initial = InitialVerdicts(units, [*make_trials(self._cycle, self._table, units, adapting)])
        rejected = initial.rejected()
        self._findings.record_rejected(units.rows[rejected])
        self._record_reasons(units.rows, initial)
        fitting = units.only(~rejected)
        if len(fitting.rows):
            is_victim = minimum(fitting, [*make_trials(self._cycle, self._table, fitting, adapting)])
            for i, row in enumerate(fitting.rows.tolist()):
                victims = fitting.victims(i, is_victim[:, i])
                self._findings.record_units(row, victims.pods, cost_of(victims) if victims.pods else ())

    def _try_pods(self, rows: IntArray) -> None:
        victims = self._potential_victims(rows)
        if victims is None:
            return
        adapting = adapting_filters(self._cycle, victims)
        trials: Sequence[Trial] = []
        if adapting or len(rows) <= _SMALL_BATCH:
            promising, trials = self._cheap_check(victims, adapting)
            if not are_all_set(promising):
                self._findings.record_rejected(victims.rows[~promising])
                if not is_any_set(promising):
                    return
                victims, trials = victims.only(promising), []
        if trials:
            # Trials differ in pods only, and the filters that read pods have passed all rows.
            initial = InitialVerdicts(victims, trials[-1:])
        else:
            trials = [*make_trials(self._cycle, self._table, victims, adapting)]
            initial = InitialVerdicts(victims, trials)
        rejected = initial.rejected()
        self._reprieve(victims, trials, ~rejected, adapting)
        self._findings.record_rejected(victims.rows[rejected])
        if adapting:
            # Computing the adapted states again would cost much more than recording the reasons.
            self._record_reasons(victims.rows, initial)

    def _reprieve(
        self, victims: PotentialVictims, trials: Sequence[Trial], fits: BoolArray, adapting: Sequence[str]
    ) -> None:
        """Find the victims on rows where the pod fits; findings recorded for other rows must be overwritten."""
        number = int(np.count_nonzero(fits))
        if not number:
            return
        # A few extra rows cost less than creating all trials again.
        fitting = (victims if 2 * number > len(fits) else victims.only(fits)).protected_by(self._budgets)
        if fitting is victims:
            trials = [trial for trial in trials if is_any_set(fits[trial.of])]
        else:
            trials = [*make_trials(self._cycle, self._table, fitting, adapting)]
        self._findings.record(reprieve(fitting, trials))

    def _potential_victims(self, rows: IntArray) -> PotentialVictims | None:
        """Return the potential victims on rows that have some; None if no row has."""
        self._ranking.refresh(rows)
        has_victims = self._ranking.lowest[rows] < self._priority
        if not are_all_set(has_victims):
            self._findings.record_no_victims(rows[~has_victims])
            rows = rows[has_victims]
        return potential_victims(self._ranking, rows, self._priority) if len(rows) else None

    def _cheap_check(self, victims: PotentialVictims, adapting: Sequence[str]) -> tuple[BoolArray, Sequence[Trial]]:
        """Return by row whether it may pass with all potential victims removed (a cheap check), and reusable trials.

        The rows of a small batch have usually changed since the last search, mostly because a pod took capacity.
        Filters that adapt their states need not do so on rows that other filters reject.
        """
        trials = make_trials(self._cycle, self._table, victims)
        if adapting:
            return ~InitialVerdicts(victims, trials).rejected(ignoring=adapting), []
        promising, begun = np.ones(len(victims.rows), np.bool_), []
        for trial in trials:
            begun.append(trial)
            promising[trial.of] &= trial.still_passing()
            if not is_any_set(promising):
                break
        return promising, begun

    # Messages

    def problems(self) -> list[str]:
        """Return the errors on nodes that are no candidates because of an error."""
        wrong = self._rows[self._findings.kind[self._rows] == FITS_ALREADY].tolist()
        return [f'expected at least one victim pod on node "{self._table.names[row]}"' for row in wrong]

    def message(self) -> str:
        """Return the message that explains why there are no candidates."""
        self._explain(self._findings.unexplained(self._rows))
        reasons = self._findings.reasons(self._rows)
        reasons[_NO_VICTIMS] += int(np.count_nonzero(self._findings.kind[self._rows] == NO_VICTIMS))
        reasons[_NOT_HELPFUL] += self._table.count - len(self._rows)
        counted = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items() if n))
        return f"0/{self._table.count} nodes are available: {counted}."

    def _explain(self, rows: IntArray) -> None:
        if len(rows):
            victims = potential_victims(self._ranking, rows, self._priority)
            trials = make_trials(self._cycle, self._table, victims, adapting_filters(self._cycle, victims))
            self._record_reasons(rows, InitialVerdicts(victims, trials))

    def _record_reasons(self, rows: IntArray, initial: InitialVerdicts) -> None:
        for reasons, rejected in initial.reasons():
            self._findings.record_reasons(rows[rejected], reasons)


def _batch_size(wanted: int, found: int, tried: int) -> int:
    """Return the number of rows to try next for the missing candidates, extrapolated from the rows tried.

    If there are enough, they all violate a budget, or rows before them are untried: then try for the same number again.
    """
    missing = wanted - found if found < wanted else wanted
    return max(int(1.25 * missing * max(tried / max(found, 1), 1.0)), _MIN_BATCH)
