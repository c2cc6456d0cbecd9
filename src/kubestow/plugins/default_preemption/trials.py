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
    view: WhatIf

    def let_back(self, turn: int) -> None:
        """Let the pods that have the turn come back."""
        ...

    def send_away(self, turn: int, which: BoolArray) -> None:
        """Let them leave again, where `which` says so for the nodes of the lineup."""
        ...

    def judge(self) -> Iterator[tuple[IntArray, Verdicts]]:
        """What the filters say, of some nodes after the other."""
        ...

    def still_passing(self) -> BoolArray:
        """Which nodes still pass, that passed before."""
        ...


class SumTrial:
    """Adds and subtracts requests, for all nodes at once: enough for filters that read sums only."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, lineup: Lineup, of: IntArray) -> None:
        self.of = of
        self._cycle = cycle
        self.view = view
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
        self.view.requested += self._amounts[turn]
        self.view.pod_count += self._mine(self._lineup.filled[turn])

    def send_away(self, turn: int, which: BoolArray) -> None:
        leaving = self._mine(which)
        self.view.requested -= self._amounts[turn] * leaving
        self.view.pod_count -= leaving

    def judge(self) -> Iterator[tuple[IntArray, Verdicts]]:
        yield self.of, self._cycle.refuses(self._cycle.wants, self.view)

    def still_passing(self) -> BoolArray:
        return self._cycle.still_passing(self._cycle.wants, self.view)


class PodTrial:
    """Moves pods one by one, for filters that look at them."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, lineup: Lineup, of: IntArray) -> None:
        self.of = of
        self._cycle = cycle
        self.view = view
        self._lineup = lineup
        for turn in range(lineup.turns):
            self.send_away(turn, lineup.filled[turn])

    def let_back(self, turn: int) -> None:
        for position, pod in self._pods(turn, self._lineup.filled[turn]):
            self.view.add_pod(position, pod)

    def send_away(self, turn: int, which: BoolArray) -> None:
        for position, pod in self._pods(turn, which):
            self.view.remove_pod(position, pod)

    def _pods(self, turn: int, which: BoolArray) -> Iterator[tuple[int, PodInfo]]:
        for position in np.flatnonzero(which[self.of]).tolist():
            yield position, self._lineup.pod(int(self.of[position]), turn)

    def judge(self) -> Iterator[tuple[IntArray, Verdicts]]:
        yield self.of, self._cycle.refuses(self._cycle.wants, self.view)

    def still_passing(self) -> BoolArray:
        return self._cycle.still_passing(self._cycle.wants, self.view)


class AdaptingTrial:
    """A trial with filters that count pods across nodes: for each node, their wants follow what moves there.

    Nodes for which the wants come out the very same are judged together.
    """

    def __init__(
        self,
        cycle: FailedEvaluation,
        trial: Trial,
        lineup: Lineup,
        expected: ExpectedBeside | None,
        names: Sequence[str],
    ) -> None:
        self.of, self.view = trial.of, trial.view
        self._cycle = cycle
        self._trial = trial
        self._lineup = lineup
        self._names = names
        """The filters that adapt."""
        self._rows = lineup.rows[trial.of].tolist()
        self._gone: list[dict[int, Change]] = [{} for _ in self._rows]
        """By node, the pods that are gone, by their turn."""
        self._expected = [
            [] if expected is None else [Change(pod, row, added=True) for pod in expected.pods(row)]
            for row in self._rows
        ]
        self._follows: BoolArray = cycle.counted_rows[self._rows]
        """Nodes where what leaves matters; the others have nothing to follow."""
        for turn, filled in enumerate(lineup.filled):
            self._note_gone(turn, filled)
        has_own = self._follows if expected is None else self._follows | [bool(pods) for pods in self._expected]
        self._others = np.flatnonzero(~has_own)
        """Nodes where the wants stay what they are."""
        self._wants = {position: self._wants_of(position) for position in np.flatnonzero(has_own).tolist()}
        unchanged = self._key(cycle.wants)
        self._follows[[position for position, wants in self._wants.items() if self._key(wants) == unchanged]] = False

    def _wants_of(self, position: int) -> dict[str, Any]:
        return self._cycle.wants_after([*self._gone[position].values(), *self._expected[position]])

    def _key(self, wants: dict[str, Any]) -> tuple[int, ...]:
        return tuple(id(wants[name]) for name in self._names)

    def _positions(self, which: BoolArray) -> list[int]:
        positions: list[int] = np.flatnonzero(which[self.of] & self._follows).tolist()
        return positions

    def _note_gone(self, turn: int, which: BoolArray) -> None:
        for position in self._positions(which):
            pod = self._lineup.pod(int(self.of[position]), turn)
            self._gone[position][turn] = Change(pod, self._rows[position], added=False)

    def let_back(self, turn: int) -> None:
        self._trial.let_back(turn)
        for position in self._positions(self._lineup.filled[turn]):
            del self._gone[position][turn]
            self._wants[position] = self._wants_of(position)

    def send_away(self, turn: int, which: BoolArray) -> None:
        self._trial.send_away(turn, which)
        self._note_gone(turn, which)

    def judge(self) -> Iterator[tuple[IntArray, Verdicts]]:
        for wants, positions in self._alike():
            yield self.of[positions], self._cycle.refuses(wants, self.view.only(positions))

    def still_passing(self) -> BoolArray:
        passing = np.zeros(len(self.of), np.bool_)
        for wants, positions in self._alike():
            passing[positions] = self._cycle.still_passing(wants, self.view.only(positions))
        return passing

    def _alike(self) -> Iterator[tuple[dict[str, Any], IntArray]]:
        """The wants that there are, with the positions of the nodes they are good for."""
        if len(self._others):
            yield self._cycle.wants, self._others
        groups: dict[tuple[int, ...], list[int]] = {}
        for position, wants in self._wants.items():
            groups.setdefault(self._key(wants), []).append(position)
        for positions in groups.values():
            yield self._wants[positions[0]], np.array(positions)


def adapting_to(cycle: FailedEvaluation, lineup: Lineup) -> list[str]:
    """The filters whose wants count pods that move in trials of the lineup."""
    if not cycle.has_adapting_wants:
        return []
    rows, is_counted = lineup.rows.tolist(), cycle.counted_rows
    changes = [Change(pod, row, added=False) for i, row in enumerate(rows) if is_counted[row] for pod in lineup.pods(i)]
    if cycle.expected is not None:
        changes += [Change(pod, row, added=True) for row in rows for pod in cycle.expected.pods(row)]
    after = cycle.wants_after(changes)
    return [name for name, want in cycle.wants.items() if after[name] is not want]


def set_up(cycle: FailedEvaluation, table: NodeTable, lineup: Lineup, adapting: Sequence[str] = ()) -> list[Trial]:
    """The trials that the nodes must pass: with the pods that are expected there, if any; then without."""
    return [_trial(cycle, table, lineup, of, on_top, adapting) for of, on_top in _rounds(cycle, lineup)]


def would_pass(cycle: FailedEvaluation, table: NodeTable, lineup: Lineup) -> BoolArray:
    """Which rows pass the filters that look at the pods on a node, with all pods of the lineup gone."""
    passing = np.ones(len(lineup.rows), np.bool_)
    for of, on_top in _rounds(cycle, lineup):
        left = of[passing[of]]
        if len(left):
            passing[left] = _trial(cycle, table, lineup, left, on_top).still_passing()
    return passing


def _trial(
    cycle: FailedEvaluation,
    table: NodeTable,
    lineup: Lineup,
    of: IntArray,
    on_top: ExpectedBeside | None,
    adapting: Sequence[str] = (),
) -> Trial:
    kind = PodTrial if cycle.reads_pods > PodsRead.SUMS else SumTrial
    trial = kind(cycle, what_if(table, lineup.rows[of], on_top), lineup, of)
    return AdaptingTrial(cycle, trial, lineup, on_top, adapting) if adapting else trial


def _rounds(cycle: FailedEvaluation, lineup: Lineup) -> Iterator[tuple[IntArray, ExpectedBeside | None]]:
    """The rows of each trial, with the pods that are expected there."""
    expected = cycle.expected
    if expected is not None:
        awaited = np.flatnonzero(expected.are_on(lineup.rows))
        if len(awaited):
            yield awaited, expected
    yield np.arange(len(lineup.rows)), None
