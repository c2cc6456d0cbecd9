"""Judging rows for a pod that is like no other lately: only what its node class knows is remembered.

Rows are judged, and those that pass scored, as they are asked about.
"""

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.judges import Judges
from kubestow.cycle.node_class import NodeClass
from kubestow.framework.caller import Caller


class LonePod:
    """Rows as they are to all plugins that sign."""

    def __init__(self, caller: Caller, nodes: NodeClass, of_pods: Judges, of_sums: Judges) -> None:
        self.nodes = nodes
        self.states = {**nodes.judges.states, **of_pods.states, **of_sums.states}
        self.skipped = nodes.judges.skipped | of_pods.skipped | of_sums.skipped
        self._caller = caller
        self._of_pods = of_pods
        self._of_sums = of_sums

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        """Follow what has changed; to be called before rows are asked about."""
        self.nodes.catch_up(pod, table)

    def passing(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> BoolArray:
        """Which rows pass."""
        passing = self.nodes.passing[rows]
        self._of_pods.refuse(self._caller, passing, pod, table, rows)
        self._refuse_by_sums(passing, pod, table, rows)
        return passing

    def totals(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        """The scores of rows that pass."""
        totals = self.nodes.sum[rows]
        self.nodes.add_normalized(totals, pod, table, rows)
        totals += self._score_by_sums(pod, table, rows)
        if self._of_pods.scores:
            totals += self._of_pods.score(self._caller, pod, table, rows)
        for scored in self._of_pods.normalizing + self._of_sums.normalizing:
            scored.raw = np.zeros(table.size, np.int64)
            scored.raw[rows] = scored.judge(self._caller, pod, table, rows)
            totals += scored.normalize(self._caller, pod, table, rows)
        return totals

    def _refuse_by_sums(self, passing: BoolArray, pod: PodInfo, table: NodeTable, rows: IntArray) -> None:
        self._of_sums.refuse(self._caller, passing, pod, table, rows)

    def _score_by_sums(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        return self._of_sums.score(self._caller, pod, table, rows)
