"""What is remembered of rows for pods that are the same to all plugins that sign."""

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, grown
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import FEW_ROWS, Evaluation, check_range
from kubestow.cycle.judges import Judges, Scored
from kubestow.cycle.lone_pod import LonePod
from kubestow.cycle.node_class import NodeClass
from kubestow.framework.caller import Caller, Hook
from kubestow.framework.filtering import ask_filter
from kubestow.framework.results import MAX_SCORE
from kubestow.framework.verdicts import Verdicts


class PodClass(LonePod):
    """Rows as they are to all plugins that sign, judged again only where something has changed."""

    def __init__(self, caller: Caller, nodes: NodeClass, of_pods: Judges, of_sums: Judges) -> None:
        super().__init__(caller, nodes, of_pods, of_sums)
        self._judges = of_pods.and_also(of_sums)
        self._passing: BoolArray = np.zeros(0, np.bool_)
        self._sum: IntArray = np.zeros(0, np.int64)
        """The weighted scores of the plugins that do not normalize."""
        self._seen = -1
        self._room: BoolArray = np.zeros(0, np.bool_)
        """Which rows pass with the pods that are nominated there, too."""
        self._room_seen = -1
        self._refusals = _Refusals()

    # Rows

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        """Judge again the rows that changed since the last time."""
        super().catch_up(pod, table)
        if self._seen == table.last_version:
            return
        if self._seen < 0 or len(self._passing) < table.size:
            self._make_room(table.capacity)
            self._judge(pod, table, slice(0, table.size))
        else:
            changed = table.changed_since(self._seen)
            if len(changed) > FEW_ROWS or self._judges.normalizing:
                self._judge(pod, table, np.array(changed))
            else:
                for row in changed:
                    self._judge_row(pod, table, row)
        self._seen = table.last_version

    def _make_room(self, capacity: int) -> None:
        self._passing = grown(self._passing, capacity)
        self._sum = grown(self._sum, capacity)
        for scored in self._judges.normalizing:
            scored.raw = grown(scored.raw, capacity)

    def _judge(self, pod: PodInfo, table: NodeTable, rows: Rows) -> None:
        passing = self.nodes.passing[rows].copy()
        self._judges.refuse(self._caller, passing, pod, table, rows)
        self._passing[rows] = passing
        self._sum[rows] = self.nodes.sum[rows] + self._judges.score(self._caller, pod, table, rows, passing)
        for scored in self._judges.normalizing:
            scored.raw[rows] = scored.judge(self._caller, pod, table, rows)

    # One row

    def _judge_row(self, pod: PodInfo, table: NodeTable, row: int) -> None:
        passes = bool(self.nodes.passing[row])
        if passes:
            passes = all(self._passes(hook, pod, table, row) for hook in self._judges.filters)
        self._passing[row] = passes
        if passes:
            total = int(self.nodes.sum[row])
            for scored in self._judges.scores:
                total += scored.weight * self._score(scored, pod, table, row)
            self._sum[row] = total

    def _passes(self, hook: Hook, pod: PodInfo, table: NodeTable, row: int) -> bool:
        state = self.states.get(hook.name)
        if hook.row_rejection is None:
            answer = ask_filter(self._caller, hook, state, pod, table, np.array([row]), 1)
            return answer is None or not answer.kinds[0]
        return self._caller.call_row(hook, hook.row_rejection, state, table, row) is None

    def _score(self, scored: Scored, pod: PodInfo, table: NodeTable, row: int) -> int:
        hook = scored.hook
        if hook.row_score is not None:
            found = self._caller.call_row(hook, hook.row_score, scored.state, table, row)
            if found is not None:
                if not 0 <= found <= MAX_SCORE:
                    check_range(hook, np.array([found]), table, np.array([row]))
                return int(found)
        only = np.array([row])
        scores = scored.judge(self._caller, pod, table, only)
        check_range(hook, scores, table, only)
        return int(scores[0])

    # Answers

    def passing(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> BoolArray:  # noqa: ARG002
        return self._passing[rows]

    def passing_beside_nominated(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        """Which rows pass, for a pod that is not nominated and to which only plugins that sign have anything to say.

        Where pods come to be nominated, or no longer are, the row has changed.
        """
        table = evaluation.cluster.nodes
        if evaluation.nominated is None:
            return self._passing[rows]
        if self._room_seen < 0 or len(self._room) < len(self._passing):
            self._room = self._passing.copy()
            everywhere = np.arange(table.size)
            self._room[everywhere] = self._with_nominated(evaluation, everywhere)
        elif self._room_seen < table.last_version:
            changed = np.array(table.changed_since(self._room_seen))
            self._room[changed] = self._with_nominated(evaluation, changed)
        self._room_seen = table.last_version
        return self._room[rows]

    def _with_nominated(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        passing = self._passing[rows]
        evaluation.refuse_for_nominated(passing, rows)
        return passing

    def totals(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        totals = self._sum[rows]
        self.nodes.add_normalized(totals, pod, table, rows)
        for scored in self._judges.normalizing:
            totals += scored.normalize(self._caller, pod, table, rows)
        return totals

    def verdicts(self, evaluation: Evaluation) -> Verdicts:
        """Why rows are refused, for a pod to which only plugins that sign have anything to say."""
        return self._refusals.brought_up_to_date(evaluation, self.nodes)


class _Refusals:
    """The verdicts on all rows, and when they were reached."""

    def __init__(self) -> None:
        self._verdicts: Verdicts | None = None
        self._seen = -1
        self._nodes_seen = -1

    def brought_up_to_date(self, evaluation: Evaluation, nodes: NodeClass) -> Verdicts:
        table = evaluation.cluster.nodes
        if self._verdicts is None or self._nodes_seen != table.last_node_version:
            self._verdicts = evaluation.judge(None)
            self._nodes_seen = table.last_node_version
        else:
            changed = [row for row in table.changed_since(self._seen) if table.live[row]]
            if changed:
                rows = np.array(changed)
                evaluation.judge_again(self._verdicts, rows, nodes.filters if nodes.passing[rows].all() else ())
        self._seen = table.last_version
        return self._verdicts
