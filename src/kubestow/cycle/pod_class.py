"""What is remembered of rows for pods that are the same to all plugins, on top of their node class.

Plugins that look at the pods on a node are asked again about a row whenever anything on it has changed; few rows one by
one, in plain numbers where a plugin can.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, grown
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import check_range
from kubestow.cycle.node_class import NodeClass, Scored, check_passing, prepare
from kubestow.framework.caller import Bound
from kubestow.framework.filtering import ask_filter, refuse
from kubestow.framework.profile import Profile
from kubestow.framework.results import MAX_SCORE

_FEW_ROWS = 4


class PodClass:
    """Rows as they are to all plugins that sign. A pod that is like no other has one of its own, used once."""

    def __init__(
        self, profile: Profile, nodes: NodeClass, names: frozenset[str], pod: PodInfo, table: NodeTable
    ) -> None:
        self.nodes = nodes
        self.passing: BoolArray = np.zeros(0, np.bool_)
        self._sum: IntArray = np.zeros(0, np.int64)
        """The weighted scores of the plugins that do not normalize."""
        self._caller = profile.caller
        self._seen = -1
        judges = prepare(profile, names, pod, table)
        self.is_usable = judges is not None
        """False: a PreFilter refused or narrowed; such pods are evaluated in full."""
        if judges is None:
            return
        self.wants = nodes.judges.wants | judges.wants
        self.skipped = nodes.judges.skipped | judges.skipped
        self._filters = [(bound, getattr(bound.plugin, "row_passes", None)) for bound in judges.filters]
        self._scores = [(scored, getattr(scored.bound.plugin, "row_score", None)) for scored in judges.scores]
        self._normalizing = judges.normalizing

    # Rows

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        """Judge again the rows that changed since the last time."""
        self.nodes.catch_up(pod, table)
        if self._seen == table.last_version:
            return
        if self._seen < 0 or len(self.passing) < table.size:
            self._make_room(table.capacity)
            self._judge(pod, table, slice(0, table.size))
        else:
            changed = table.changed_since(self._seen)
            if len(changed) > _FEW_ROWS or self._normalizing:
                self._judge(pod, table, np.array(changed))
            else:
                for row in changed:
                    self._judge_row(pod, table, row)
        self._seen = table.last_version

    def _make_room(self, capacity: int) -> None:
        self.passing = grown(self.passing, capacity)
        self._sum = grown(self._sum, capacity)
        for scored in self._normalizing:
            scored.raw = grown(scored.raw, capacity)

    def _judge(self, pod: PodInfo, table: NodeTable, rows: Rows) -> None:
        self.passing[rows] = passing = self._filter(pod, table, rows)
        total = self.nodes.sum[rows].copy()
        for scored, _ in self._scores:
            scores = scored.judge(self._caller, pod, table, rows)
            check_passing(scored.bound, scores, passing, table, rows)
            total += scores * scored.weight
        self._sum[rows] = total
        for scored in self._normalizing:
            scored.raw[rows] = scored.judge(self._caller, pod, table, rows)

    def _filter(self, pod: PodInfo, table: NodeTable, rows: Rows) -> BoolArray:
        passing = self.nodes.passing[rows].copy()
        for bound, _ in self._filters:
            refuse(passing, self._caller, bound, self.wants.get(bound.name), pod, table, rows)
        return passing

    # One row

    def _judge_row(self, pod: PodInfo, table: NodeTable, row: int) -> None:
        passes = bool(self.nodes.passing[row])
        if passes:
            passes = all(self._passes(bound, row_passes, pod, table, row) for bound, row_passes in self._filters)
        self.passing[row] = passes
        if passes:
            total = int(self.nodes.sum[row])
            for scored, row_score in self._scores:
                total += scored.weight * self._score(scored, row_score, pod, table, row)
            self._sum[row] = total

    def _passes(
        self, bound: Bound, row_passes: Callable[..., Any] | None, pod: PodInfo, table: NodeTable, row: int
    ) -> bool:
        want = self.wants.get(bound.name)
        if row_passes is None:
            answer = ask_filter(self._caller, bound, want, pod, table, np.array([row]), 1)
            return answer is None or not answer.kinds[0]
        return bool(self._caller.call_row(bound, row_passes, want, table, row))

    def _score(
        self, scored: Scored, row_score: Callable[..., Any] | None, pod: PodInfo, table: NodeTable, row: int
    ) -> int:
        bound = scored.bound
        if row_score is not None:
            found = self._caller.call_row(bound, row_score, scored.want, table, row)
            if found is not None:
                if not 0 <= found <= MAX_SCORE:
                    check_range(bound, np.array([found]), table, np.array([row]))
                return int(found)
        only = np.array([row])
        scores = scored.judge(self._caller, pod, table, only)
        check_range(bound, scores, table, only)
        return int(scores[0])

    # Totals

    def totals(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        """The scores of rows that pass."""
        totals = self._sum[rows]
        self.nodes.add_normalized(totals, pod, table, rows)
        for scored in self._normalizing:
            totals += scored.normalize(self._caller, pod, table, rows)
        return totals


class LonePod(PodClass):
    """For a pod that is like no other: nothing is remembered but its node class, and only what is asked is scored."""

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        self.nodes.catch_up(pod, table)
        self.passing = self._filter(pod, table, slice(0, table.size))

    def totals(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        totals = self.nodes.sum[rows]
        for scored, _ in self._scores:
            scores = scored.judge(self._caller, pod, table, rows)
            check_range(scored.bound, scores, table, rows)
            totals += scores * scored.weight
        self.nodes.add_normalized(totals, pod, table, rows)
        for scored in self._normalizing:
            scored.raw = np.zeros(table.size, np.int64)
            scored.raw[rows] = scored.judge(self._caller, pod, table, rows)
            totals += scored.normalize(self._caller, pod, table, rows)
        return totals
