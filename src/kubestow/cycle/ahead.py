"""Pods that are next in the queue are judged ahead of their turn, together with one that is like none before it.

Pods of many sizes have little to remember in common. But each starts its search where the one before it stopped, so
their rows do not overlap, and judging several pods, each on rows of its own, takes as few operations on arrays as
judging one. Only the plugins that look at what pods add up to are asked ahead; the rest is remembered anyway.

All this is a guess. Rows that have changed by the time of a pod's turn are judged again then; and if its search goes
elsewhere after all, what was found out ahead is not used.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, row_count
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.groups import Group
from kubestow.cycle.judges import Judges, Scored, prepare
from kubestow.cycle.lone_pod import LonePod
from kubestow.cycle.node_class import NodeClass
from kubestow.framework.caller import Caller
from kubestow.framework.plugin import RowsOfPods
from kubestow.framework.profile import Profile

Upcoming = Callable[[int], Sequence[PodInfo]]
"""The pods that are next, at most so many."""

_MOST_PODS = 16
_MOST_CHANGES = 256
"""After more of them it costs less to judge a pod's rows anew."""


class Search(NamedTuple):
    """A search that is about to begin."""

    order: IntArray
    """The rows, from where it starts."""
    enough: int
    """How many that pass are looked for."""


class _Batch:
    """What was found out, by row, for the pod that was to start its search there."""

    def __init__(self, table: NodeTable) -> None:
        self.version = table.last_version
        self.layout = table.layout
        self.pod_of: IntArray = np.full(table.size, -1)
        """By their number in the batch."""
        self.passing: BoolArray = np.zeros(table.size, np.bool_)
        self.scores: IntArray = np.zeros(table.size, np.int64)

    def judge(self, caller: Caller, judges: Judges, pod: PodInfo, table: NodeTable, rows: Rows) -> None:
        passing: BoolArray = np.ones(row_count(rows), np.bool_)
        judges.refuse(caller, passing, pod, table, rows)
        self.passing[rows] = passing
        self.scores[rows] = judges.score(caller, pod, table, rows, passing)


class Foreseen(NamedTuple):
    """The part of one pod in a batch."""

    pod: PodInfo
    judges: Judges
    number: int
    batch: _Batch

    def is_of_use(self, pod: PodInfo, table: NodeTable) -> bool:
        batch = self.batch
        is_recent = table.last_version - batch.version <= _MOST_CHANGES and table.layout == batch.layout
        return is_recent and self.pod is pod


class ForeseenPod(LonePod):
    """A pod that was judged ahead on the rows where its search was to start."""

    def __init__(self, caller: Caller, nodes: NodeClass, of_pods: Judges, foreseen: Foreseen) -> None:
        super().__init__(caller, nodes, of_pods, foreseen.judges)
        self._batch = foreseen.batch
        self._number = foreseen.number
        self._judged: IntArray | None = None
        """The rows that were asked about last, if they were judged ahead."""

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        super().catch_up(pod, table)
        pod_of, number = self._batch.pod_of.item, self._number
        own = [row for row in table.changed_since(self._batch.version) if pod_of(row) == number]
        if own:
            self._batch.judge(self._caller, self._of_sums, pod, table, np.array(own))

    def _was_judged_on(self, rows: IntArray) -> bool:
        if rows is not self._judged:
            self._judged = rows if (self._batch.pod_of[rows] == self._number).all() else None
        return self._judged is not None

    def _refuse_by_sums(self, passing: BoolArray, pod: PodInfo, table: NodeTable, rows: IntArray) -> None:
        if self._was_judged_on(rows):
            passing &= self._batch.passing[rows]
        else:
            super()._refuse_by_sums(passing, pod, table, rows)

    def _score_by_sums(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        return self._batch.scores[rows] if self._was_judged_on(rows) else super()._score_by_sums(pod, table, rows)


class LookAhead:
    """Judges pods ahead where one pod after the other is like none before it."""

    def __init__(self, upcoming: Upcoming) -> None:
        self._upcoming = upcoming
        self._foreseen: dict[str, Foreseen] = {}
        self._last_was_alone = False

    def pause(self) -> None:
        """A pod came that is like others: what is next may be, too."""
        self._last_was_alone = False

    def take(self, pod: PodInfo, table: NodeTable) -> Foreseen | None:
        """What was found out ahead about a pod whose turn it is."""
        found = self._foreseen.pop(pod.uid, None)
        return found if found is not None and found.is_of_use(pod, table) else None

    def look(
        self, profile: Profile, group: Group, pod: PodInfo, judges: Judges, table: NodeTable, search: Search
    ) -> Foreseen | None:
        """Judge a pod, by the plugins of a group, together with those that are next; None if that is of no use."""
        is_worth_it, self._last_was_alone = self._last_was_alone, True
        most = min(len(search.order) // search.enough, _MOST_PODS)
        if not is_worth_it or most < 2 or judges.normalizing:
            return None
        together = [(pod, judges), *self._alike(profile, group, judges, table, most - 1)]
        batch = _judge(profile.caller, together, table, search) if len(together) > 1 else None
        if batch is None:
            return None
        first, *others = (Foreseen(of, its, number, batch) for number, (of, its) in enumerate(together))
        self._foreseen = {foreseen.pod.uid: foreseen for foreseen in others}
        return first

    def _alike(
        self, profile: Profile, group: Group, judges: Judges, table: NodeTable, most: int
    ) -> Iterator[tuple[PodInfo, Judges]]:
        """The pods that are next, as long as they can be judged together with one that has these judges."""
        for pod in self._upcoming(most):
            is_ours = pod.pod.spec.schedulerName == profile.name
            if not is_ours or any(plugin.sign(pod) is None for _, plugin in profile.sum_signing):
                return
            own = prepare(profile.caller, group, pod, table)
            if own is None or own.filters != judges.filters or len(own.scores) != len(judges.scores):
                return
            yield pod, own


def _judge(
    caller: Caller, together: Sequence[tuple[PodInfo, Judges]], table: NodeTable, search: Search
) -> _Batch | None:
    """Judge pods, each on the rows where its search is to start; None if a plugin cannot judge them together."""
    batch, own = _Batch(table), search.order[: search.enough * len(together)]
    batch.pod_of[own] = np.repeat(np.arange(len(together)), search.enough)
    # Rows by number are copies: when it is about many it costs less to judge them all, for whichever pod.
    rows: Rows = slice(0, table.size) if 2 * len(own) > table.size else own
    joined = _joined([judges for _, judges in together], RowsOfPods(batch.pod_of[rows]))
    if joined is None:
        return None
    batch.judge(caller, joined, together[0][0], table, rows)
    return batch


def _joined(judges: Sequence[Judges], rows: RowsOfPods) -> Judges | None:
    """One for rows of several pods."""
    first = judges[0]
    joined = Judges({}, set(), first.filters, [], [])
    for hook in first.filters:
        state = _join(hook.plugin, "join_states", [of.states.get(hook.name) for of in judges], rows)
        if state is None:
            return None
        joined.states[hook.name] = state
    for scored, *others in zip(*(of.scores for of in judges), strict=True):
        states = [scored.state, *(other.state for other in others)]
        state = _join(scored.hook.plugin, "join_score_states", states, rows)
        if state is None or any(other.hook is not scored.hook for other in others):
            return None
        joined.scores.append(Scored(scored.hook, scored.weight, state))
    return joined


def _join(plugin: Any, method: str, states: Sequence[Any], rows: RowsOfPods) -> Any:
    join = getattr(plugin, method, None)
    return None if join is None or None in states else join(states, rows)
