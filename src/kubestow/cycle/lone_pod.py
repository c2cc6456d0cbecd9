"""Judging rows for a pod that is like no other lately: only what its node class knows is remembered.

Rows are judged, and those that pass scored, as they are asked about.
"""

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import check_range
from kubestow.cycle.judges import Judges
from kubestow.cycle.node_class import NodeClass
from kubestow.framework.caller import Caller
from kubestow.framework.filtering import refuse


class LonePod:
    """Rows as they are to all plugins that sign."""

    def __init__(self, caller: Caller, nodes: NodeClass, judges: Judges) -> None:
        self.nodes = nodes
        self.wants = {**nodes.judges.wants, **judges.wants}
        self.skipped = nodes.judges.skipped | judges.skipped
        self._judges = judges
        self._caller = caller

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        """Follow what has changed; to be called before rows are asked about."""
        self.nodes.catch_up(pod, table)

    def passing(self, pod: PodInfo, table: NodeTable, rows: Rows) -> BoolArray:
        """Which rows pass."""
        passing = self.nodes.passing[rows].copy() if isinstance(rows, slice) else self.nodes.passing[rows]
        for bound in self._judges.filters:
            refuse(passing, self._caller, bound, self.wants.get(bound.name), pod, table, rows)
        return passing

    def totals(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        """The scores of rows that pass."""
        totals = self.nodes.sum[rows]
        for scored in self._judges.scores:
            scores = scored.judge(self._caller, pod, table, rows)
            check_range(scored.bound, scores, table, rows)
            totals += scores if scored.weight == 1 else scores * scored.weight
        self.nodes.add_normalized(totals, pod, table, rows)
        for scored in self._judges.normalizing:
            scored.raw = np.zeros(table.size, np.int64)
            scored.raw[rows] = scored.judge(self._caller, pod, table, rows)
            totals += scored.normalize(self._caller, pod, table, rows)
        return totals
