"""What-if views from which potential victims are removed and to which they are added back.

A trial has some of the nodes with potential victims, each independent of the others. There is one trial for all nodes,
and one for the nodes with nominated pods, with these pods added.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from kubestow.api.lazy import lazy
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.nominated import CompetingNominations
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.whatif import WhatIf, what_if
from kubestow.scheduler.framework.plugin import Change, FailedEvaluation, PodsRead
from kubestow.scheduler.framework.verdicts import Verdicts
from kubestow.scheduler.plugins.default_preemption.units import PotentialUnits
from kubestow.scheduler.plugins.default_preemption.victims import PotentialVictims

Potential: TypeAlias = PotentialVictims | PotentialUnits


class Trial(ABC):
    """Some of the rows of potential victims, with all victims removed at first; `of` has their indexes there."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, victims: Potential, of: IntArray) -> None:
        self.of = of
        self.view = view
        self._cycle = cycle
        self._victims = victims

    @abstractmethod
    def reprieve(self, turn: int) -> None:
        """Add back the pods with this turn."""

    @abstractmethod
    def remove(self, turn: int, which: BoolArray) -> None:
        """Remove them again on the rows of potential victims for which `which` is True."""

    def verdicts(self) -> Iterator[tuple[IntArray, Verdicts]]:
        """Yield the verdicts of the filters, with the rows they are for."""
        yield self.of, self._cycle.refuses(self._cycle.states, self.view)

    def still_passing(self) -> BoolArray:
        """Return which of the rows that passed before still pass."""
        return self._cycle.still_passing(self._cycle.states, self.view)


class SumTrial(Trial):
    """Adds and subtracts requests for all nodes at once; sufficient for filters that read sums only."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, victims: PotentialVictims, of: IntArray) -> None:
        super().__init__(cycle, view, victims, of)
        self._all = victims
        self._everywhere = len(of) == len(victims.rows)
        view.requested -= self._own_columns(victims.freed())
        view.pod_count -= self._own_columns(victims.number)

    def _own_columns(self, by_row: Any) -> Any:
        return by_row if self._everywhere else by_row[..., self.of]

    @lazy
    def _amounts(self) -> IntArray:
        amounts: IntArray = self._own_columns(self._all.amounts())
        return amounts

    def reprieve(self, turn: int) -> None:
        self.view.requested += self._amounts[turn]
        self.view.pod_count += self._own_columns(self._victims.filled[turn])

    def remove(self, turn: int, which: BoolArray) -> None:
        leaving = self._own_columns(which)
        self.view.requested -= self._amounts[turn] * leaving
        self.view.pod_count -= leaving


class PodTrial(Trial):
    """Adds and removes individual pods, for filters that read them."""

    def __init__(self, cycle: FailedEvaluation, view: WhatIf, victims: Potential, of: IntArray) -> None:
        super().__init__(cycle, view, victims, of)
        for turn in range(victims.turns):
            self.remove(turn, victims.filled[turn])

    def reprieve(self, turn: int) -> None:
        for position, pod in self._pods(turn, self._victims.filled[turn]):
            self.view.add_pod(position, pod)

    def remove(self, turn: int, which: BoolArray) -> None:
        for position, pod in self._pods(turn, which):
            self.view.remove_pod(position, pod)

    def _pods(self, turn: int, which: BoolArray) -> Iterator[tuple[int, PodInfo]]:
        for position in np.flatnonzero(which[self.of]).tolist():
            for pod in self._victims.pods_at(int(self.of[position]), turn):
                yield position, pod


class AdaptingTrial(Trial):
    """A trial with filters that count pods across nodes: their states are adapted to the changes of each node.

    Nodes with identical states are evaluated together.
    """

    def __init__(
        self,
        cycle: FailedEvaluation,
        trial: Trial,
        victims: Potential,
        nominated: CompetingNominations | None,
        names: Sequence[str],
    ) -> None:
        super().__init__(cycle, trial.view, victims, trial.of)
        self._trial = trial
        self._names = names
        """The filters whose states adapt."""
        self._rows = victims.rows[trial.of].tolist()
        self._removed: list[dict[int, Sequence[Change]]] = [{} for _ in self._rows]
        """The removed pods by turn, for each node."""
        self._nominated = [
            [] if nominated is None else [Change(pod, row, added=True) for pod in nominated.pods(row)]
            for row in self._rows
        ]
        self._affected: BoolArray = victims.are_counted(cycle.counted_rows)[trial.of]
        """Nodes where removed pods affect the states."""
        for turn, filled in enumerate(victims.filled):
            self._record_removed(turn, filled)
        has_own = self._affected if nominated is None else self._affected | [bool(pods) for pods in self._nominated]
        self._others = np.flatnonzero(~has_own)
        """Nodes with unchanged states."""
        self._states = {position: self._states_of(position) for position in np.flatnonzero(has_own).tolist()}
        unchanged = self._key(cycle.states)
        self._affected[[at for at, states in self._states.items() if self._key(states) == unchanged]] = False

    def _states_of(self, position: int) -> dict[str, Any]:
        removed = chain.from_iterable(self._removed[position].values())
        return self._cycle.states_after([*removed, *self._nominated[position]])

    def _key(self, states: dict[str, Any]) -> tuple[int, ...]:
        return tuple(id(states[name]) for name in self._names)

    def _positions(self, which: BoolArray) -> list[int]:
        positions: list[int] = np.flatnonzero(which[self.of] & self._affected).tolist()
        return positions

    def _record_removed(self, turn: int, which: BoolArray) -> None:
        for position in self._positions(which):
            self._removed[position][turn] = self._victims.changes_at(int(self.of[position]), turn)

    def reprieve(self, turn: int) -> None:
        self._trial.reprieve(turn)
        for position in self._positions(self._victims.filled[turn]):
            del self._removed[position][turn]
            self._states[position] = self._states_of(position)

    def remove(self, turn: int, which: BoolArray) -> None:
        self._trial.remove(turn, which)
        self._record_removed(turn, which)

    def verdicts(self) -> Iterator[tuple[IntArray, Verdicts]]:
        for states, positions in self._by_states():
            yield self.of[positions], self._cycle.refuses(states, self.view.only(positions))

    def still_passing(self) -> BoolArray:
        passing = np.zeros(len(self.of), np.bool_)
        for states, positions in self._by_states():
            passing[positions] = self._cycle.still_passing(states, self.view.only(positions))
        return passing

    def _by_states(self) -> Iterator[tuple[dict[str, Any], IntArray]]:
        """Yield distinct states, with the positions of the nodes they apply to."""
        if len(self._others):
            yield self._cycle.states, self._others
        groups: dict[tuple[int, ...], list[int]] = {}
        for position, states in self._states.items():
            groups.setdefault(self._key(states), []).append(position)
        for positions in groups.values():
            yield self._states[positions[0]], np.array(positions)


def adapting_filters(cycle: FailedEvaluation, victims: Potential) -> list[str]:
    """Return the filters whose states count pods that are added or removed in trials of the potential victims."""
    if not cycle.has_adapting_states:
        return []
    changes = victims.counted_changes(cycle.counted_rows)
    if cycle.nominated is not None:
        changes += [Change(pod, row, added=True) for row in victims.rows.tolist() for pod in cycle.nominated.pods(row)]
    after = cycle.states_after(changes)
    return [name for name, state in cycle.states.items() if after[name] is not state]


def make_trials(
    cycle: FailedEvaluation, table: NodeTable, victims: Potential, adapting: Sequence[str] = ()
) -> Iterator[Trial]:
    """Yield the trials that nodes must pass: with their nominated pods, if any; then without."""
    for of, nominated in _row_sets(cycle, victims):
        view = what_if(table, victims.rows[of], nominated)
        if cycle.reads_pods > PodsRead.SUMS or isinstance(victims, PotentialUnits):
            trial: Trial = PodTrial(cycle, view, victims, of)
        else:
            trial = SumTrial(cycle, view, victims, of)
        yield AdaptingTrial(cycle, trial, victims, nominated, adapting) if adapting else trial


def _row_sets(cycle: FailedEvaluation, victims: Potential) -> Iterator[tuple[IntArray, CompetingNominations | None]]:
    """Yield the rows of each trial, with their nominated pods."""
    nominated = cycle.nominated
    if nominated is not None:
        awaited = nominated.are_on(victims.rows).nonzero()[0]
        if len(awaited):
            yield awaited, nominated
    yield np.arange(len(victims.rows)), None
