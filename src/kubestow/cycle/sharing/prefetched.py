"""Pods that are next in the queue are judged ahead of their turn, together with one that is like none before it.

Pods of many sizes have little to remember in common. But each starts its search where the one before it stopped, so
their rows do not overlap, and judging several pods, each on rows of its own, takes as few operations on arrays as
judging one. Only the plugins that look at what pods add up to are asked ahead; the rest is remembered anyway.

All this is a guess. Rows that have changed by the time of a pod's turn are judged again then; if its search goes
elsewhere after all, what was found out ahead is not used; and if a plugin fails ahead of a pod's turn, it is asked
again when the turn comes. So looking ahead neither changes what becomes of a pod nor makes one fail.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, are_all_set, row_count
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.order import Search
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.sharing.groups import Group
from kubestow.cycle.sharing.ready import Ready, Scoring, prepare
from kubestow.cycle.sharing.results import RowResults
from kubestow.framework.caller import Caller
from kubestow.framework.hook import Hook
from kubestow.framework.plugin import RowsOfPods
from kubestow.framework.results import PluginError

Upcoming = Callable[[int], Sequence[PodInfo]]
"""The pods that are next, at most so many."""

_MOST_PODS = 16
_MOST_CHANGES = 256
"""After more of them it costs less to judge a pod's rows anew."""


class _Batch:
    """What was found out, by row, for the pod that was to start its search there."""

    def __init__(self, table: NodeTable) -> None:
        self.seen = table.changes.last
        self.layout = table.layout
        self.pod_of: IntArray = np.full(table.size, -1)
        """By their number in the batch."""
        self.passing: BoolArray = np.zeros(table.size, np.bool_)
        self.scores: IntArray = np.empty(table.size, np.int64)

    def judge(self, evaluation: Evaluation, ready: Ready, rows: Rows) -> None:
        passing: BoolArray = np.ones(row_count(rows), np.bool_)
        ready.refuse(evaluation, passing, rows)
        self.passing[rows] = passing
        self.scores[rows] = ready.score(evaluation, rows, passing)


class Prefetched:
    """What was found out ahead of a pod's turn, on the rows where its search was to start."""

    def __init__(self, pod: PodInfo, ready: Ready, number: int, batch: _Batch) -> None:
        self.pod = pod
        self.ready = ready
        self._number = number
        self._batch = batch
        self._below: RowResults
        self._judged: IntArray | None = None
        """The rows that were asked about last, if they were judged ahead."""

    def is_of_use(self, pod: PodInfo, table: NodeTable) -> bool:
        batch = self._batch
        is_recent = table.changes.last - batch.seen <= _MOST_CHANGES and table.layout == batch.layout
        return is_recent and self.pod is pod

    def on(self, below: RowResults) -> "Prefetched":
        """Put it on top of other results."""
        self._below = below
        return self

    def catch_up(self, evaluation: Evaluation) -> None:
        self._below.catch_up(evaluation)
        pod_of, number = self._batch.pod_of.item, self._number
        own = [row for row in evaluation.cluster.nodes.changes.since(self._batch.seen) if pod_of(row) == number]
        if own:
            self._batch.judge(evaluation, self.ready, np.array(own))

    def _was_judged_on(self, rows: IntArray) -> bool:
        if rows is not self._judged:
            self._judged = rows if are_all_set(self._batch.pod_of[rows] == self._number) else None
        return self._judged is not None

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        passing = self._below.passing(evaluation, rows)
        if self._was_judged_on(rows):
            passing &= self._batch.passing[rows]
        else:
            self.ready.refuse(evaluation, passing, rows)
        return passing

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        totals = self._below.totals(evaluation, rows)
        if self._was_judged_on(rows):
            totals += self._batch.scores[rows]
        else:
            totals += self.ready.score(evaluation, rows)
        return totals


class Prefetcher:
    """Judges pods ahead where one pod after the other is like none before it."""

    def __init__(self, upcoming: Upcoming) -> None:
        self.upcoming = upcoming
        self._prefetched: dict[str, Prefetched] = {}
        self._last_was_alone = False

    def pause(self) -> None:
        """A pod came that is like others: what is next may be, too."""
        self._last_was_alone = False

    def take(self, pod: PodInfo, group: Group, table: NodeTable) -> Prefetched | None:
        """What was found out ahead about a pod whose turn it is."""
        found = self._prefetched.pop(pod.uid, None)
        if found is None or not found.is_of_use(pod, table):
            return None
        for hook in group.pre_filter + group.pre_score:
            # What was called ahead counts now.
            hook.evaluations += 1
        return found

    def look(self, evaluation: Evaluation, group: Group, ready: Ready, search: Search) -> Prefetched | None:
        """Judge a pod, by the plugins of a group, together with those that are next; None if that is of no use."""
        is_worth_it, self._last_was_alone = self._last_was_alone, True
        most = min(len(search.order) // search.enough, _MOST_PODS)
        if not is_worth_it or most < 2 or ready.normalizing:
            return None
        together = [(evaluation.pod, ready), *_alike(evaluation, group, ready, self.upcoming(most - 1))]
        try:
            batch = _judge(evaluation, together, search) if len(together) > 1 else None
        except PluginError:
            return None
        if batch is None:
            return None
        first, *others = (Prefetched(pod, its, number, batch) for number, (pod, its) in enumerate(together))
        self._prefetched = {prefetched.pod.uid: prefetched for prefetched in others}
        return first


def _alike(
    evaluation: Evaluation, group: Group, ready: Ready, upcoming: Sequence[PodInfo]
) -> Iterator[tuple[PodInfo, Ready]]:
    """The pods that are next, as long as they can be judged together with one for which these plugins are ready."""
    profile = evaluation.profile
    for pod in upcoming:
        if pod.pod.spec.schedulerName != profile.name:
            return
        try:
            if None in profile.caller.sign(profile.sum_signing, pod):
                return
            own = prepare(evaluation.of(pod), group, counted=False)
        except PluginError:
            return
        if own is None or own.filters != ready.filters or len(own.scores) != len(ready.scores):
            return
        yield pod, own


def _judge(evaluation: Evaluation, together: Sequence[tuple[PodInfo, Ready]], search: Search) -> _Batch | None:
    """Judge pods, each on the rows where its search is to start; None if a plugin cannot judge them together."""
    table = evaluation.cluster.nodes
    batch, own = _Batch(table), search.order[: search.enough * len(together)]
    batch.pod_of[own] = np.repeat(np.arange(len(together)), search.enough)
    # Rows by number are copies: when it is about many it costs less to judge them all, for whichever pod.
    rows: Rows = slice(0, table.size) if 2 * len(own) > table.size else own
    joined = _joined(evaluation.profile.caller, [ready for _, ready in together], RowsOfPods(batch.pod_of[rows]))
    if joined is None:
        return None
    batch.judge(evaluation, joined, rows)
    return batch


def _joined(caller: Caller, ready: Sequence[Ready], rows: RowsOfPods) -> Ready | None:
    """One for rows of several pods."""
    first = ready[0]
    joined = Ready({}, set(), first.filters, [], [])
    for hook in first.filters:
        state = _join(caller, hook, [of.states.get(hook.name) for of in ready], rows)
        if state is None:
            return None
        joined.states[hook.name] = state
    for scorings in zip(*(of.scores for of in ready), strict=True):
        hook, weight, _ = scorings[0]
        state = _join(caller, hook, [scoring.state for scoring in scorings], rows)
        if state is None or any(scoring.hook is not hook for scoring in scorings):
            return None
        joined.scores.append(Scoring(hook, weight, state))
    return joined


def _join(caller: Caller, hook: Hook, states: Sequence[Any], rows: RowsOfPods) -> Any:
    return None if hook.join is None or None in states else caller.call(hook.join, states, rows, rows=0)
