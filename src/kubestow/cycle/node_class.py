"""What is remembered of rows for pods that are the same to all plugins that look at a node alone.

Pods of many sizes are of one such class. A row is judged again only when its node has changed.
"""

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, grown
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.groups import Group
from kubestow.cycle.judges import NO_JUDGES, Scored, prepare
from kubestow.framework.caller import Caller
from kubestow.framework.filtering import refuse
from kubestow.framework.results import MAX_SCORE


class NodeClass:
    """Rows as they are to the plugins that look at a node alone."""

    def __init__(self, caller: Caller, group: Group, pod: PodInfo, table: NodeTable) -> None:
        self.passing: BoolArray = np.zeros(0, np.bool_)
        self.sum: IntArray = np.zeros(0, np.int64)
        """The weighted scores of the plugins that do not normalize."""
        self._caller = caller
        self._seen = -1
        judges = prepare(caller, group, pod, table)
        self.is_usable = judges is not None
        """False: a PreFilter refused or narrowed, or a score is out of range; such pods are evaluated in full."""
        self.judges = judges or NO_JUDGES
        self.filters = frozenset(hook.name for hook in self.judges.filters)
        """The names of the plugins that had to let a row pass."""
        self._even = 0
        self._uneven: list[Scored] = []

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        """Judge again the rows whose node changed since the last time."""
        has_room = len(self.passing) >= table.size
        if has_room and self._seen == table.last_node_version:
            return
        if self._seen < 0 or not has_room:
            self._make_room(table.capacity)
            self._judge(pod, table, slice(0, table.size))
        else:
            self._judge(pod, table, np.flatnonzero(table.node_version[: table.size] > self._seen))
        self._seen = table.last_node_version
        self._look_for_even_scores(pod, table)

    def _make_room(self, capacity: int) -> None:
        self.passing = grown(self.passing, capacity)
        self.sum = grown(self.sum, capacity)
        for scored in self.judges.normalizing:
            scored.raw = grown(scored.raw, capacity)

    def _judge(self, pod: PodInfo, table: NodeTable, rows: Rows) -> None:
        passing = table.live[rows].copy()
        for hook in self.judges.filters:
            refuse(passing, self._caller, hook, self.judges.states.get(hook.name), pod, table, rows)
        self.passing[rows] = passing
        total: IntArray = np.zeros(len(passing), np.int64)
        for scored in self.judges.scores:
            scores = scored.judge(self._caller, pod, table, rows)
            if int(np.where(passing, scores, 0).view(np.uint64).max(initial=0)) > MAX_SCORE:
                self.is_usable = False
            total += scores * scored.weight
        self.sum[rows] = total
        for scored in self.judges.normalizing:
            scored.raw[rows] = scored.judge(self._caller, pod, table, rows)

    def _look_for_even_scores(self, pod: PodInfo, table: NodeTable) -> None:
        """Where all rows have the same score, and the plugin looks at scores alone, normalizing is done once."""
        self._even, self._uneven = 0, []
        rows = np.flatnonzero(self.passing[: table.size])
        for scored in self.judges.normalizing:
            scores = scored.raw[rows]
            is_even = len(rows) > 0 and bool((scores == scores[0]).all())
            if is_even and getattr(scored.hook.plugin, "normalizes_scores_alone", False):
                self._even += int(scored.normalize(self._caller, pod, table, rows[:1])[0])
            else:
                self._uneven.append(scored)

    def add_normalized(self, totals: IntArray, pod: PodInfo, table: NodeTable, rows: IntArray) -> None:
        """Add the normalized scores of rows that pass."""
        if self._even:
            totals += self._even
        for scored in self._uneven:
            totals += scored.normalize(self._caller, pod, table, rows)
