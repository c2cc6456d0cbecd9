"""What-ifs on which pods leave their node and come back.

A trial holds some of the nodes of a lineup, each on its own: what leaves one does not matter for another. It is made
for the nodes as they are, or for those where pods are expected (nominated), with these already there.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.whatif import WhatIf, what_if
from kubestow.framework.plugin import Change, FailedEvaluation, PodsRead
from kubestow.framework.verdicts import Verdicts
from kubestow.plugins.default_preemption.lineup import Lineup


class Trial(Protocol):
    """Nodes of a lineup; `of` are their numbers there."""

    of: IntArray

    def clear(self) -> None:
        """Let all pods of the lineup leave."""
        ...

    def move(self, turn: int, which: BoolArray, *, back: bool) -> None:
        """Let the pods that have the turn leave, or come back, where `which` says so for the nodes of the lineup."""
        ...

    def judge(self) -> Verdicts:
        """What the filters say."""
        ...

    def still_passing(self) -> BoolArray:
        """Which nodes still pass, that passed before."""
        ...


class SumTrial:
    """Adds and subtracts requests, for all nodes at once: enough for filters that read sums only."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, lineup: Lineup, of: IntArray, amounts: IntArray) -> None:
        self.of = of
        self._cycle = cycle
        self._view = view
        self._everywhere = len(of) == len(lineup.rows)
        self._amounts = amounts if self._everywhere else amounts[:, :, of]
        self._number = np.count_nonzero(lineup.filled[of], axis=1)

    def clear(self) -> None:
        self._view.requested -= self._amounts.sum(axis=0)
        self._view.pod_count -= self._number

    def move(self, turn: int, which: BoolArray, *, back: bool) -> None:
        if not self._everywhere:
            which = which[self.of]
        shift = self._amounts[turn] * which
        if back:
            self._view.requested += shift
            self._view.pod_count += which
        else:
            self._view.requested -= shift
            self._view.pod_count -= which

    def judge(self) -> Verdicts:
        return self._cycle.refuses(self._cycle.wants, self._view)

    def still_passing(self) -> BoolArray:
        return self._cycle.still_passing(self._cycle.wants, self._view)


class PodTrial:
    """Moves pods one by one, for filters that look at them."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, lineup: Lineup, of: IntArray) -> None:
        self.of = of
        self._cycle = cycle
        self._view = view
        self._lineup = lineup

    def clear(self) -> None:
        for turn in range(self._lineup.turns):
            self.move(turn, self._lineup.filled[:, turn], back=False)

    def move(self, turn: int, which: BoolArray, *, back: bool) -> None:
        move = self._view.add_pod if back else self._view.remove_pod
        for position in np.flatnonzero(which[self.of]).tolist():
            move(position, self._lineup.pod(int(self.of[position]), turn))

    def judge(self) -> Verdicts:
        return self._cycle.refuses(self._wants(), self._view)

    def still_passing(self) -> BoolArray:
        return self._cycle.still_passing(self._wants(), self._view)

    def _wants(self) -> dict[str, Any]:
        return self._cycle.wants


class AdaptingTrial(PodTrial):
    """A single node, for filters that count pods across nodes: their wants follow each move."""

    def __init__(
        self, cycle: FailedEvaluation, view: WhatIf, lineup: Lineup, of: IntArray, expected: Sequence[PodInfo]
    ) -> None:
        super().__init__(cycle, view, lineup, of)
        (self._row,) = lineup.rows[of].tolist()
        self._expected = [Change(pod, self._row, added=True) for pod in expected]
        self._gone: dict[str, Change] = {}

    def move(self, turn: int, which: BoolArray, *, back: bool) -> None:
        super().move(turn, which, back=back)
        (i,) = self.of.tolist()
        if which[i]:
            pod = self._lineup.pod(i, turn)
            if back:
                del self._gone[pod.uid]
            else:
                self._gone[pod.uid] = Change(pod, self._row, added=False)

    def _wants(self) -> dict[str, Any]:
        return self._cycle.wants_after([*self._gone.values(), *self._expected])


def rows_apart(cycle: FailedEvaluation, lineup: Lineup) -> BoolArray:
    """Which rows need a trial of their own: pods that move there matter for what a filter's want has counted."""
    apart = np.zeros(len(lineup.rows), np.bool_)
    if cycle.has_adapting_wants:
        changes = [
            [Change(pod, row, added=False) for pod in lineup.pods(i)]
            + [Change(pod, row, added=True) for pod in _expected_on(cycle, row)]
            for i, row in enumerate(lineup.rows.tolist())
        ]
        if _matters(cycle, [change for of_row in changes for change in of_row]):
            apart[:] = [_matters(cycle, of_row) for of_row in changes]
    return apart


def _matters(cycle: FailedEvaluation, changes: Sequence[Change]) -> bool:
    after = cycle.wants_after(changes)
    return any(after[name] is not want for name, want in cycle.wants.items())


def _expected_on(cycle: FailedEvaluation, row: int) -> Sequence[PodInfo]:
    return () if cycle.expected is None else cycle.expected.pods(row)


def set_up(cycle: FailedEvaluation, table: NodeTable, lineup: Lineup, *, shared: bool) -> list[Trial]:
    """The trials that a node must pass: with the pods that are expected there, if any; then without.

    Unless the trial is shared, the lineup must have a single row.
    """
    expected, trials, amounts = cycle.expected, list[Trial](), None
    everywhere = np.arange(len(lineup.rows))
    awaited = everywhere[:0] if expected is None else np.flatnonzero(expected.are_on(lineup.rows))
    for of, on_top in ((awaited, expected), (everywhere, None)):
        if not len(of):
            continue
        view = what_if(table, lineup.rows[of], on_top)
        if not shared:
            others = () if on_top is None else on_top.pods(int(lineup.rows[0]))
            trials.append(AdaptingTrial(cycle, view, lineup, of, others))
        elif cycle.reads_pods <= PodsRead.SUMS:
            amounts = lineup.amounts() if amounts is None else amounts
            trials.append(SumTrial(cycle, view, lineup, of, amounts))
        else:
            trials.append(PodTrial(cycle, view, lineup, of))
    return trials
