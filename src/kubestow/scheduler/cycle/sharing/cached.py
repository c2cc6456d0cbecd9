"""Results for all rows that are computed again only for rows that have changed."""

from typing import Any

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, are_all_set, grown, is_any_set
from kubestow.scheduler.cluster.change_log import ChangeLog
from kubestow.scheduler.cycle.evaluation import FEW_ROWS, Evaluation
from kubestow.scheduler.cycle.sharing.prepared import PreparedPlugins, Scoring
from kubestow.scheduler.framework.caller import check_range
from kubestow.scheduler.framework.filtering import refuse
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.results import PluginError
from kubestow.scheduler.framework.verdicts import Verdicts

_NO_ROWS: IntArray = np.zeros(0, np.int64)
_NO_FLAGS: BoolArray = np.zeros(0, np.bool_)


class CachedResults:
    """The results of prepared plugins for all rows, combined with other cached results."""

    def __init__(self, plugins: PreparedPlugins, changes: ChangeLog, below: "CachedResults | None" = None) -> None:
        """`changes` are the changes of rows that may affect the answers of these plugins."""
        self.plugins = plugins
        self._row_filters = [(hook, plugins.states.get(hook.name)) for hook in plugins.filters]
        self._changes = changes
        self._below = below
        self._seen = -1
        """Number of the last change that was applied; -1: nothing is computed."""
        self.updates = 0
        """How often changed rows were computed again."""
        self.row_passes = _NO_FLAGS
        self.row_sum = _NO_ROWS
        """The sums of the weighted scores of all plugins without NormalizeScore, including those below."""
        self._raw = [_NO_ROWS for _ in plugins.normalizing]
        """The raw scores of the plugins with NormalizeScore."""
        self._varying: list[tuple[Scoring, IntArray]] = []
        """The plugins with NormalizeScore whose scores may differ between rows, with their raw scores."""

    def catch_up(self, evaluation: Evaluation) -> None:
        below = self._below
        if below is not None:
            below.catch_up(evaluation)
        table, last = evaluation.cluster.nodes, self._changes.last
        is_large_enough = len(self.row_passes) >= table.size
        if self._seen == last and is_large_enough:
            return
        if self._seen < 0 or not is_large_enough:
            # If a plugin fails, all rows are computed again the next time.
            self._seen = -1
            self._grow(table.capacity)
            self._update(evaluation, slice(0, table.size))
        else:
            self.updates += 1
            changed = self._changes.since(self._seen)
            if len(changed) > FEW_ROWS or self.plugins.normalizing:
                self._update(evaluation, np.array(changed))
            else:
                for row in changed:
                    self._update_row(evaluation, row)
        if self.plugins.normalizing:
            self._find_varying_scores()
        # Not before: if a plugin fails, the changes have to be applied the next time.
        self._seen = last

    def _grow(self, capacity: int) -> None:
        self.row_passes = grown(self.row_passes, capacity)
        self.row_sum = grown(self.row_sum, capacity)
        self._raw = [grown(raw, capacity) for raw in self._raw]

    def _update(self, evaluation: Evaluation, rows: Rows) -> None:
        below = self._below
        passing = (evaluation.cluster.nodes.live if below is None else below.row_passes)[rows].copy()
        self.plugins.refuse(evaluation, passing, rows)
        self.row_passes[rows] = passing
        scores = self.plugins.score(evaluation, rows, passing)
        self.row_sum[rows] = scores if below is None else scores + below.row_sum[rows]
        for raw, scoring in zip(self._raw, self.plugins.normalizing, strict=True):
            raw[rows] = scoring.raw(evaluation, rows)

    def _find_varying_scores(self) -> None:
        """Leave out the plugins whose normalized scores are the same for all feasible rows."""
        self._varying = []
        rows = np.flatnonzero(self.row_passes)
        for raw, scoring in zip(self._raw, self.plugins.normalizing, strict=True):
            scores = raw[rows] if getattr(scoring.hook.plugin, "normalizes_scores_alone", False) else _NO_ROWS
            if not (len(scores) and (scores == scores[0]).all()):
                self._varying.append((scoring, raw))

    # One row, without arrays if the plugin supports that

    def passes(self, evaluation: Evaluation, row: int) -> bool:
        """Return whether a row passes now, without storing the result."""
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

    def _update_row(self, evaluation: Evaluation, row: int) -> None:
        below, table, call_row = self._below, evaluation.cluster.nodes, evaluation.profile.caller.call_row
        self.row_passes[row] = passes = self._row_passes(evaluation, row)
        if passes:
            total = 0 if below is None else below.row_sum.item(row)
            for scoring in self.plugins.scores:
                hook, weight, state = scoring
                score = None if hook.row is None else call_row(hook.row, state, table, row)
                if score is None:
                    score = _score(evaluation, scoring, row)
                total += weight * score
            self.row_sum[row] = total

    # Results

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:  # noqa: ARG002
        return self.row_passes[rows]

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        totals = self.row_sum[rows]
        self.add_normalized(evaluation, rows, totals)
        return totals

    def add_normalized(self, evaluation: Evaluation, rows: IntArray, totals: IntArray) -> None:
        """Add the normalized and weighted scores of rows to `totals`."""
        if self._below is not None:
            self._below.add_normalized(evaluation, rows, totals)
        for scoring, raw in self._varying:
            totals += scoring.normalized(evaluation, rows, raw[rows])

    def plugins_passing_all(self, evaluation: Evaluation, rows: IntArray) -> frozenset[str]:
        """Return the filters below, if they are known to pass all of these rows."""
        below = self._below
        if below is None:
            return frozenset()
        below.catch_up(evaluation)
        if not are_all_set(below.row_passes[rows]):
            return frozenset()
        return frozenset([hook.name for hook in below.plugins.filters])


def _passes(evaluation: Evaluation, hook: Hook, state: Any, row: int) -> bool:
    """Return whether a row passes a filter that only supports arrays."""
    passing, table = np.array([True]), evaluation.cluster.nodes
    refuse(passing, evaluation.profile.caller, hook, state, evaluation.pod, table, np.array([row]))
    return are_all_set(passing)


def _score(evaluation: Evaluation, scoring: Scoring, row: int) -> int:
    """Return the score of a row by a plugin that only supports arrays."""
    only = np.array([row])
    scores = scoring.raw(evaluation, only)
    check_range(scoring.hook, scores, evaluation.cluster.nodes, only)
    return int(scores[0])


class CachedWithNominated:
    """Caches which rows pass without and with the pods nominated there, for pods that are not nominated themselves.

    A new or removed nomination counts as a change of the row.
    """

    def __init__(self) -> None:
        self._passing = _NO_FLAGS
        self._seen = -1

    def passing(self, evaluation: Evaluation, rows: IntArray, without: CachedResults) -> BoolArray:
        """Return which of the rows pass; `without` has the results without nominated pods."""
        if evaluation.nominated is None:
            return without.passing(evaluation, rows)
        table = evaluation.cluster.nodes
        changes = table.changes
        if self._seen < 0 or len(self._passing) < table.size:
            self._passing = np.zeros(table.capacity, np.bool_)
            self._update(evaluation, np.arange(table.size), without)
        elif self._seen < changes.last:
            self._update(evaluation, np.array(changes.since(self._seen)), without)
        self._seen = changes.last
        return self._passing[rows]

    def _update(self, evaluation: Evaluation, rows: IntArray, without: CachedResults) -> None:
        passing = without.passing(evaluation, rows)
        evaluation.refuse_for_nominated(passing, rows)
        self._passing[rows] = passing


class CachedVerdicts:
    """The verdicts on all rows, which are computed when no row is feasible for a pod."""

    def __init__(self) -> None:
        self._verdicts: Verdicts | None = None
        self._seen = -1
        self._nodes_seen = -1
        self._refuse_all = False

    def refuse_all(self, evaluation: Evaluation, results: CachedResults) -> bool:
        """Return whether all rows are still rejected; False without a check if they were not at the last call."""
        if self._refuse_all:
            try:
                self.current(evaluation, results)
            except PluginError:
                # A search that finds a feasible row needs no verdicts; one that does not fails here again.
                self._refuse_all = False
        return self._refuse_all

    def current(self, evaluation: Evaluation, results: CachedResults) -> Verdicts:
        """Return the verdicts on all rows, for a pod without filters other than those with `sign`."""
        table = evaluation.cluster.nodes
        if self._verdicts is None or self._nodes_seen != table.node_changes.last:
            self._verdicts = evaluation.verdicts_on(None)
            self._nodes_seen = table.node_changes.last
        else:
            changed = [row for row in table.changes.since(self._seen) if table.live[row]]
            if changed:
                rows = np.array(changed)
                evaluation.update_verdicts(self._verdicts, rows, results.plugins_passing_all(evaluation, rows))
        self._seen = table.changes.last
        self._refuse_all = not is_any_set(self._verdicts.passing) and not self._verdicts.summary().has_failures
        return self._verdicts
