"""Rows as they were judged before, judged again only where something has changed."""

from typing import Any

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, are_all_set, grown, is_any_set
from kubestow.cluster.change_log import ChangeLog
from kubestow.cycle.evaluation import FEW_ROWS, Evaluation
from kubestow.cycle.sharing.ready import Ready, Scoring
from kubestow.framework.caller import in_range
from kubestow.framework.filtering import refuse
from kubestow.framework.hook import Hook
from kubestow.framework.results import PluginError
from kubestow.framework.verdicts import Verdicts

_NO_ROWS: IntArray = np.zeros(0, np.int64)
_NOWHERE: BoolArray = np.zeros(0, np.bool_)


class Cached:
    """What ready plugins say, on top of what others do, remembered for all rows."""

    def __init__(self, ready: Ready, changes: ChangeLog, below: "Cached | None" = None) -> None:
        """`changes` are those that may make a difference to these plugins."""
        self.ready = ready
        self._row_filters = [(hook, ready.states.get(hook.name)) for hook in ready.filters]
        self._changes = changes
        self._below = below
        self.seen = -1
        self.row_passes = _NOWHERE
        self.row_sum = _NO_ROWS
        """The weighted scores of all plugins, also below, that do not normalize."""
        self._raw = [_NO_ROWS for _ in ready.normalizing]
        """The scores that the others gave."""
        self._uneven: list[tuple[Scoring, IntArray]] = []
        """Those that did not give all rows the same, which would make no difference."""

    def catch_up(self, evaluation: Evaluation) -> None:
        below = self._below
        if below is not None:
            below.catch_up(evaluation)
        table, last = evaluation.cluster.nodes, self._changes.last
        has_room = len(self.row_passes) >= table.size
        if self.seen == last and has_room:
            return
        if self.seen < 0 or not has_room:
            # If a plugin fails, nothing is known.
            self.seen = -1
            self._make_room(table.capacity)
            self._judge(evaluation, slice(0, table.size))
        else:
            changed = self._changes.since(self.seen)
            if len(changed) > FEW_ROWS or self.ready.normalizing:
                self._judge(evaluation, np.array(changed))
            else:
                for row in changed:
                    self._judge_row(evaluation, row)
        if self.ready.normalizing:
            self._look_for_even_scores()
        # Not before: where a plugin has failed, all of this is to be done again.
        self.seen = last

    def _make_room(self, capacity: int) -> None:
        self.row_passes = grown(self.row_passes, capacity)
        self.row_sum = grown(self.row_sum, capacity)
        self._raw = [grown(raw, capacity) for raw in self._raw]

    def _judge(self, evaluation: Evaluation, rows: Rows) -> None:
        below = self._below
        passing = (evaluation.cluster.nodes.live if below is None else below.row_passes)[rows].copy()
        self.ready.refuse(evaluation, passing, rows)
        self.row_passes[rows] = passing
        scores = self.ready.score(evaluation, rows, passing)
        self.row_sum[rows] = scores if below is None else scores + below.row_sum[rows]
        for raw, scoring in zip(self._raw, self.ready.normalizing, strict=True):
            raw[rows] = scoring.judge(evaluation, rows)

    def _look_for_even_scores(self) -> None:
        """Find the plugins whose normalized scores would be the same for all rows, and so make no difference."""
        self._uneven = []
        rows = np.flatnonzero(self.row_passes)
        for raw, scoring in zip(self._raw, self.ready.normalizing, strict=True):
            scores = raw[rows] if getattr(scoring.hook.plugin, "normalizes_scores_alone", False) else _NO_ROWS
            if not (len(scores) and (scores == scores[0]).all()):
                self._uneven.append((scoring, raw))

    # One row, in plain numbers where plugins can

    def passes(self, evaluation: Evaluation, row: int) -> bool:
        """Whether a row passes as it is now, which is not remembered."""
        if self._below is not None:
            self._below.catch_up(evaluation)
        return self._row_passes(evaluation, row)

    def _row_passes(self, evaluation: Evaluation, row: int) -> bool:
        below, table, call_row = self._below, evaluation.cluster.nodes, evaluation.profile.caller.call_row
        if not (table.live if below is None else below.row_passes).item(row):
            return False
        for hook, state in self._row_filters:
            if hook.row is None:
                if not _passes(evaluation, hook, state, row):
                    return False
            elif call_row(hook.row, state, table, row) is not None:
                return False
        return True

    def _judge_row(self, evaluation: Evaluation, row: int) -> None:
        below, table, call_row = self._below, evaluation.cluster.nodes, evaluation.profile.caller.call_row
        self.row_passes[row] = passes = self._row_passes(evaluation, row)
        if passes:
            total = 0 if below is None else below.row_sum.item(row)
            for scoring in self.ready.scores:
                hook, weight, state = scoring
                score = None if hook.row is None else call_row(hook.row, state, table, row)
                if score is None:
                    score = _score(evaluation, scoring, row)
                total += weight * score
            self.row_sum[row] = total

    # Answers

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:  # noqa: ARG002
        return self.row_passes[rows]

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        totals = self.row_sum[rows]
        self.add_normalized(evaluation, rows, totals)
        return totals

    def add_normalized(self, evaluation: Evaluation, rows: IntArray, totals: IntArray) -> None:
        if self._below is not None:
            self._below.add_normalized(evaluation, rows, totals)
        for scoring, raw in self._uneven:
            totals += scoring.normalized(evaluation, rows, raw[rows])

    def let_all_pass(self, evaluation: Evaluation, rows: IntArray) -> frozenset[str]:
        """The plugins below of which it is known that they let all of these rows pass."""
        below = self._below
        if below is None:
            return frozenset()
        below.catch_up(evaluation)
        if not are_all_set(below.row_passes[rows]):
            return frozenset()
        return frozenset([hook.name for hook in below.ready.filters])


def _passes(evaluation: Evaluation, hook: Hook, state: Any, row: int) -> bool:
    """Whether a row passes, by a plugin that answers for arrays only."""
    passing, table = np.array([True]), evaluation.cluster.nodes
    refuse(passing, evaluation.profile.caller, hook, state, evaluation.pod, table, np.array([row]))
    return are_all_set(passing)


def _score(evaluation: Evaluation, scoring: Scoring, row: int) -> int:
    """The same for its score."""
    only = np.array([row])
    scores = scoring.judge(evaluation, only)
    in_range(scoring.hook, scores, evaluation.cluster.nodes, only)
    return int(scores[0])


class CachedRoom:
    """Which rows pass with the pods that are nominated there, too, for pods that are not nominated themselves.

    Where pods come to be nominated, or no longer are, the row has changed.
    """

    def __init__(self) -> None:
        self._room = _NOWHERE
        self._seen = -1

    def passing(self, evaluation: Evaluation, rows: IntArray, alone: Cached) -> BoolArray:
        """`alone` knows which pass without them."""
        if evaluation.nominated is None:
            return alone.passing(evaluation, rows)
        table = evaluation.cluster.nodes
        changes = table.changes
        if self._seen < 0 or len(self._room) < table.size:
            self._room = np.zeros(table.capacity, np.bool_)
            self._judge(evaluation, np.arange(table.size), alone)
        elif self._seen < changes.last:
            self._judge(evaluation, np.array(changes.since(self._seen)), alone)
        self._seen = changes.last
        return self._room[rows]

    def _judge(self, evaluation: Evaluation, rows: IntArray, alone: Cached) -> None:
        passing = alone.passing(evaluation, rows)
        evaluation.refuse_for_nominated(passing, rows)
        self._room[rows] = passing


class CachedVerdicts:
    """Why rows are refused, once a pod has found none."""

    def __init__(self) -> None:
        self._verdicts: Verdicts | None = None
        self._seen = -1
        self._nodes_seen = -1
        self._refuse_all = False

    def refuse_all(self, evaluation: Evaluation, results: Cached) -> bool:
        """Whether all rows are still refused. If they were not when last looked at, nobody looks."""
        if self._refuse_all:
            try:
                self.of(evaluation, results)
            except PluginError:
                # A search that finds a row does without words; if it finds none, it will come to this, too.
                self._refuse_all = False
        return self._refuse_all

    def of(self, evaluation: Evaluation, results: Cached) -> Verdicts:
        """The verdicts on all rows, for a pod to which only plugins that sign have anything to say."""
        table = evaluation.cluster.nodes
        if self._verdicts is None or self._nodes_seen != table.node_changes.last:
            self._verdicts = evaluation.judge(None)
            self._nodes_seen = table.node_changes.last
        else:
            changed = [row for row in table.changes.since(self._seen) if table.live[row]]
            if changed:
                rows = np.array(changed)
                evaluation.judge_again(self._verdicts, rows, results.let_all_pass(evaluation, rows))
        self._seen = table.changes.last
        self._refuse_all = not is_any_set(self._verdicts.passing) and not self._verdicts.told().has_failures
        return self._verdicts
