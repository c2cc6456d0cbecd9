"""Going through the nodes where evicting pods may help, from a random one on, until there are enough candidates.

Only rows that nothing is known of are tried, and of those only as many as are needed, some at a time; or a few more
where that saves the next search from trying any.
"""

from collections.abc import Sequence

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, are_all_set, is_any_set
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.plugin import FailedEvaluation, PodsRead
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets
from kubestow.scheduler.plugins.default_preemption.choice import first_candidates
from kubestow.scheduler.plugins.default_preemption.dry_run import FirstLook, reprieve
from kubestow.scheduler.plugins.default_preemption.findings import FITS_ANYWAY, NO_VICTIMS, UNTRIED, Findings, Kinds
from kubestow.scheduler.plugins.default_preemption.trials import Trial, adapting_to, set_up
from kubestow.scheduler.plugins.default_preemption.victims import PotentialVictims, potential_victims

_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_FEWEST_AT_A_TIME = 32
_FEW = 16
"""So few rows are looked over before they are tried."""


def helpful_rows(cluster: Cluster, cycle: FailedEvaluation) -> IntArray:
    """The rows that were refused for something that evicting pods may change."""
    if cycle.rejected is not None:
        code = cycle.rejected.code
        return np.flatnonzero(cluster.nodes.live) if code is Code.UNSCHEDULABLE else np.zeros(0, np.int64)
    return np.zeros(0, np.int64) if cycle.verdicts is None else cycle.verdicts.summary().resolvable_rows


class Search:
    """One search for candidates among some rows, in their order."""

    def __init__(
        self,
        cluster: Cluster,
        cycle: FailedEvaluation,
        pod: PodInfo,
        budgets: Budgets,
        findings: Findings,
        rows: IntArray,
    ) -> None:
        self._table = cluster.nodes
        self._ranking = cluster.ranking
        self._cycle = cycle
        self._priority = pod.priority
        self._budgets = budgets
        self._findings = findings
        self._rows = rows

    def run(self, wanted: int) -> IntArray:
        """The rows of the first candidates."""
        rows, findings, tried = self._rows, self._findings, 0
        kinds = findings.kind[rows]
        self._note_hopeless(kinds)
        while True:
            found, are_enough = first_candidates(kinds, wanted)
            untried = (kinds == UNTRIED).nonzero()[0]
            needed = int(untried.searchsorted(found[-1])) if are_enough else len(untried)
            if not needed:
                return rows[found]
            number = _likely(wanted, len(found), tried)
            # In columns, rows that the next searches will need cost next to nothing on top.
            some = untried[: number if self._cycle.reads_pods <= PodsRead.SUMS else min(number, needed)]
            self._try(rows[some])
            tried += len(some)
            kinds[some] = findings.kind[rows[some]]

    def _note_hopeless(self, kinds: Kinds) -> None:
        """Rows that are known to have no victims need not be tried."""
        untried = (kinds == UNTRIED).nonzero()[0]
        hopeless = untried[self._ranking.known_above(self._rows[untried], self._priority)]
        if len(hopeless):
            kinds[hopeless] = NO_VICTIMS
            self._findings.note_no_victims(self._rows[hopeless])

    # Trying

    def _try(self, rows: IntArray) -> None:
        """Try rows, all in step."""
        victims = self._potential_victims(rows)
        if victims is None:
            return
        adapting = adapting_to(self._cycle, victims)
        trials: Sequence[Trial] = []
        if adapting or len(rows) <= _FEW:
            hopeful, trials = self._hopeful(victims, adapting)
            if not are_all_set(hopeful):
                self._findings.note_refused(victims.rows[~hopeful])
                if not is_any_set(hopeful):
                    return
                victims, trials = victims.only(hopeful), []
        if trials:
            # Trials differ in pods alone, and the filters that look at these have let all rows pass.
            look = FirstLook(victims, trials[-1:])
        else:
            trials = [*set_up(self._cycle, self._table, victims, adapting)]
            look = FirstLook(victims, trials)
        refused = look.refused()
        self._reprieve(victims, trials, ~refused, adapting)
        self._findings.note_refused(victims.rows[refused])
        if adapting:
            # To ask again what states come to costs far more than the words.
            self._note_reasons(victims.rows, look)

    def _reprieve(
        self, victims: PotentialVictims, trials: Sequence[Trial], fits: BoolArray, adapting: Sequence[str]
    ) -> None:
        """Find out who must go where the pod fits; what is noted of other rows is to be overwritten."""
        number = int(np.count_nonzero(fits))
        if not number:
            return
        # A few rows too many cost less than to set up everything again.
        fitting = (victims if 2 * number > len(fits) else victims.only(fits)).protected_by(self._budgets)
        if fitting is victims:
            trials = [trial for trial in trials if is_any_set(fits[trial.of])]
        else:
            trials = [*set_up(self._cycle, self._table, fitting, adapting)]
        self._findings.note(reprieve(fitting, trials))

    def _potential_victims(self, rows: IntArray) -> PotentialVictims | None:
        """The potential victims of those of the rows that have victims."""
        self._ranking.refresh(rows)
        has_victims = self._ranking.lowest[rows] < self._priority
        if not are_all_set(has_victims):
            self._findings.note_no_victims(rows[~has_victims])
            rows = rows[has_victims]
        return potential_victims(self._ranking, rows, self._priority) if len(rows) else None

    def _hopeful(self, victims: PotentialVictims, adapting: Sequence[str]) -> tuple[BoolArray, Sequence[Trial]]:
        """The rows that may pass, going by what can be seen at little cost with all gone that may be evicted.

        Where only a few rows are to be tried, they have changed since they were: most often, room was taken there. And
        filters that adapt need not do so where others refuse. The trials are those that can be gone on with.
        """
        trials = set_up(self._cycle, self._table, victims)
        if adapting:
            return ~FirstLook(victims, trials).refused(save_by=adapting), []
        hopeful, begun = np.ones(len(victims.rows), np.bool_), []
        for trial in trials:
            begun.append(trial)
            hopeful[trial.of] &= trial.still_passing()
            if not is_any_set(hopeful):
                break
        return hopeful, begun

    # Words

    def problems(self) -> list[str]:
        """What went wrong on nodes that are no candidates for it."""
        wrong = self._rows[self._findings.kind[self._rows] == FITS_ANYWAY].tolist()
        return [f'expected at least one victim pod on node "{self._table.names[row]}"' for row in wrong]

    def message(self) -> str:
        """Why there are no candidates."""
        self._explain(self._findings.unexplained(self._rows))
        reasons = self._findings.reasons(self._rows)
        reasons[_NO_VICTIMS] += int(np.count_nonzero(self._findings.kind[self._rows] == NO_VICTIMS))
        reasons[_NOT_HELPFUL] += self._table.count - len(self._rows)
        counted = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items() if n))
        return f"0/{self._table.count} nodes are available: {counted}."

    def _explain(self, rows: IntArray) -> None:
        """Find out why rows were refused."""
        if len(rows):
            victims = potential_victims(self._ranking, rows, self._priority)
            trials = set_up(self._cycle, self._table, victims, adapting_to(self._cycle, victims))
            self._note_reasons(rows, FirstLook(victims, trials))

    def _note_reasons(self, rows: IntArray, look: FirstLook) -> None:
        for reasons, refused in look.reasons():
            self._findings.note_reasons(rows[refused], reasons)


def _likely(wanted: int, found: int, tried: int) -> int:
    """How many rows are likely to hold the candidates that are missing, going by those that were tried.

    If there are as many as wanted, they all break a budget, or rows before them are not known yet: then as many again.
    """
    missing = wanted - found if found < wanted else wanted
    return max(int(1.25 * missing * max(tried / max(found, 1), 1.0)), _FEWEST_AT_A_TIME)
