"""What-ifs on which pods leave their node and come back.

A trial holds some of the nodes of a lineup, each on its own: what leaves one does not matter for another. It is made
for the nodes as they are, or for those where pods are expected (nominated), with these already there.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cluster.expected import ExpectedBeside
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.whatif import WhatIf, what_if
from kubestow.framework.plugin import Change, FailedEvaluation, PodsRead
from kubestow.framework.verdicts import Verdicts
from kubestow.model.lazily import lazy
from kubestow.plugins.default_preemption.lineup import Lineup


class Trial(Protocol):
    """Nodes of a lineup; `of` are their numbers there. It begins with all pods of the lineup gone."""

    of: IntArray

    def let_back(self, turn: int) -> None:
        """Let the pods that have the turn come back."""
        ...

    def send_away(self, turn: int, which: BoolArray) -> None:
        """Let them leave again, where `which` says so for the nodes of the lineup."""
        ...

    def judge(self) -> Verdicts:
        """What the filters say."""
        ...

    def still_passing(self) -> BoolArray:
        """Which nodes still pass, that passed before."""
        ...


class SumTrial:
    """Adds and subtracts requests, for all nodes at once: enough for filters that read sums only."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, lineup: Lineup, of: IntArray) -> None:
        self.of = of
        self._cycle = cycle
        self._view = view
        self._lineup = lineup
        self._everywhere = len(of) == len(lineup.rows)
        view.requested -= self._mine(lineup.freed())
        view.pod_count -= self._mine(lineup.number)

    def _mine(self, by_row: Any) -> Any:
        return by_row if self._everywhere else by_row[..., self.of]

    @lazy
    def _amounts(self) -> IntArray:
        amounts: IntArray = self._mine(self._lineup.amounts())
        return amounts

    def let_back(self, turn: int) -> None:
        self._view.requested += self._amounts[turn]
        self._view.pod_count += self._mine(self._lineup.filled[turn])

    def send_away(self, turn: int, which: BoolArray) -> None:
        leaving = self._mine(which)
        self._view.requested -= self._amounts[turn] * leaving
        self._view.pod_count -= leaving

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
        for turn in range(lineup.turns):
            self.send_away(turn, lineup.filled[turn])

    def let_back(self, turn: int) -> None:
        for position, pod in self._pods(turn, self._lineup.filled[turn]):
            self._view.add_pod(position, pod)

    def send_away(self, turn: int, which: BoolArray) -> None:
        for position, pod in self._pods(turn, which):
            self._view.remove_pod(position, pod)

    def _pods(self, turn: int, which: BoolArray) -> Iterator[tuple[int, PodInfo]]:
        for position in np.flatnonzero(which[self.of]).tolist():
            yield position, self._lineup.pod(int(self.of[position]), turn)

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
        (self._row,) = lineup.rows[of].tolist()
        self._expected = [Change(pod, self._row, added=True) for pod in expected]
        self._gone: dict[str, Change] = {}
        super().__init__(cycle, view, lineup, of)

    def _pods(self, turn: int, which: BoolArray) -> Iterator[tuple[int, PodInfo]]:
        if which[0]:
            yield 0, self._lineup.pod(0, turn)

    def let_back(self, turn: int) -> None:
        super().let_back(turn)
        for _, pod in self._pods(turn, self._lineup.filled[turn]):
            del self._gone[pod.uid]

    def send_away(self, turn: int, which: BoolArray) -> None:
        super().send_away(turn, which)
        for _, pod in self._pods(turn, which):
            self._gone[pod.uid] = Change(pod, self._row, added=False)

    def _wants(self) -> dict[str, Any]:
        return self._cycle.wants_after([*self._gone.values(), *self._expected])


def adapting_to(cycle: FailedEvaluation, lineup: Lineup) -> tuple[BoolArray, set[str]]:
    """Which rows need a trial of their own, and because of which filters: pods that move there matter for what a want
    has counted."""
    apart, names = np.zeros(len(lineup.rows), np.bool_), set[str]()
    if cycle.has_adapting_wants:
        changes = [
            [Change(pod, row, added=False) for pod in lineup.pods(i)]
            + [Change(pod, row, added=True) for pod in _expected_on(cycle, row)]
            for i, row in enumerate(lineup.rows.tolist())
        ]
        names = _adapting(cycle, [change for of_row in changes for change in of_row])
        if names:
            apart[:] = [bool(_adapting(cycle, of_row)) for of_row in changes]
    return apart, names


def _adapting(cycle: FailedEvaluation, changes: Sequence[Change]) -> set[str]:
    after = cycle.wants_after(changes)
    return {name for name, want in cycle.wants.items() if after[name] is not want}


def _expected_on(cycle: FailedEvaluation, row: int) -> Sequence[PodInfo]:
    return () if cycle.expected is None else cycle.expected.pods(row)


def set_up(cycle: FailedEvaluation, table: NodeTable, lineup: Lineup) -> list[Trial]:
    """The trials that the nodes must pass: with the pods that are expected there, if any; then without."""
    return [_trial(cycle, table, lineup, of, on_top) for of, on_top in _rounds(cycle, lineup)]


def would_pass(cycle: FailedEvaluation, table: NodeTable, lineup: Lineup) -> BoolArray:
    """Which rows pass the filters that look at the pods on a node, with all pods of the lineup gone."""
    passing = np.ones(len(lineup.rows), np.bool_)
    for of, on_top in _rounds(cycle, lineup):
        left = of[passing[of]]
        if len(left):
            passing[left] = _trial(cycle, table, lineup, left, on_top).still_passing()
    return passing


def _trial(
    cycle: FailedEvaluation, table: NodeTable, lineup: Lineup, of: IntArray, on_top: ExpectedBeside | None
) -> Trial:
    kind = PodTrial if cycle.reads_pods > PodsRead.SUMS else SumTrial
    return kind(cycle, what_if(table, lineup.rows[of], on_top), lineup, of)


def set_up_alone(cycle: FailedEvaluation, table: NodeTable, lineup: Lineup) -> list[Trial]:
    """The same for a lineup of a single row, with wants that adapt to what goes on there."""
    (row,) = lineup.rows.tolist()
    return [
        AdaptingTrial(
            cycle, what_if(table, lineup.rows, on_top), lineup, of, () if on_top is None else on_top.pods(row)
        )
        for of, on_top in _rounds(cycle, lineup)
    ]


def _rounds(cycle: FailedEvaluation, lineup: Lineup) -> Iterator[tuple[IntArray, ExpectedBeside | None]]:
    """The rows of each trial, with the pods that are expected there."""
    expected = cycle.expected
    if expected is not None:
        awaited = np.flatnonzero(expected.are_on(lineup.rows))
        if len(awaited):
            yield awaited, expected
    yield np.arange(len(lineup.rows)), None
