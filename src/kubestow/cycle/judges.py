"""Plugins ready to judge rows for a pod: their PreFilter and PreScore have run."""

from typing import Any, NamedTuple

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, row_count, row_numbers
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import check_form, check_range
from kubestow.cycle.groups import Group
from kubestow.framework.caller import Caller, Hook
from kubestow.framework.filtering import refuse
from kubestow.framework.results import MAX_SCORE, Narrowed, Rejection, Skip

OUT_OF_THE_ORDINARY = (Rejection, Narrowed)
"""Answers of PreFilter after which only a full evaluation can tell."""
_NO_ROWS: IntArray = np.zeros(0, np.int64)


class Scored:
    """A plugin that scores, with the state of its PreScore; `raw` is kept if it normalizes."""

    __slots__ = ("hook", "raw", "state", "weight")

    def __init__(self, hook: Hook, weight: int, state: Any) -> None:
        self.hook = hook
        self.weight = weight
        self.state = state
        self.raw: IntArray = _NO_ROWS

    def judge(self, caller: Caller, pod: PodInfo, table: NodeTable, rows: Rows) -> IntArray:
        count = row_count(rows)
        scores: IntArray = caller.call(self.hook, self.state, pod, table, rows, rows=count)
        check_form(self.hook, scores, count)
        return scores

    def normalize(self, caller: Caller, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        """The weighted scores of rows, from what is kept."""
        raw, plugin = self.raw[rows], self.hook.plugin
        scores: IntArray = caller.call_aside(plugin, "normalize", self.state, pod, table, rows, raw)
        check_form(self.hook, scores, len(rows))
        check_range(self.hook, scores, table, rows)
        return scores * self.weight


class Judges(NamedTuple):
    """The plugins of a group that have something to say, with what their PreFilter computed."""

    states: dict[str, Any]
    skipped: set[str]
    filters: list[Hook]
    scores: list[Scored]
    """Those that do not normalize."""
    normalizing: list[Scored]

    def refuse(self, caller: Caller, passing: BoolArray, pod: PodInfo, table: NodeTable, rows: Rows) -> None:
        """Take from the rows that pass those that are refused."""
        for hook in self.filters:
            refuse(passing, caller, hook, self.states.get(hook.name), pod, table, rows)

    def score(
        self, caller: Caller, pod: PodInfo, table: NodeTable, rows: Rows, passing: BoolArray | None = None
    ) -> IntArray:
        """The weighted scores of those that do not normalize; if not all rows pass, those of others mean nothing."""
        total: IntArray = np.zeros(row_count(rows), np.int64)
        for scored in self.scores:
            scores = scored.judge(caller, pod, table, rows)
            check_passing(scored.hook, scores, passing, table, rows)
            total += scores if scored.weight == 1 else scores * scored.weight
        return total

    def and_also(self, others: "Judges") -> "Judges":
        """Together with others, for one pod or class."""
        return Judges(
            {**self.states, **others.states},
            self.skipped | others.skipped,
            self.filters + others.filters,
            self.scores + others.scores,
            # These keep scores, which are not to be shared.
            [Scored(of.hook, of.weight, of.state) for of in self.normalizing + others.normalizing],
        )


NO_JUDGES = Judges({}, set(), [], [], [])


def prepare(caller: Caller, group: Group, pod: PodInfo, table: NodeTable) -> Judges | None:
    """Run what comes before rows; None if a PreFilter refuses the pod or narrows the nodes."""
    states: dict[str, Any] = {}
    skipped: set[str] = set()
    for hook in group.pre_filter:
        answer = caller.call(hook, pod)
        if isinstance(answer, OUT_OF_THE_ORDINARY):
            return None
        if isinstance(answer, Skip):
            skipped.add(hook.name)
        else:
            states[hook.name] = answer
    filters = [hook for hook in group.filter if hook.name not in skipped]
    score_states = {hook.name: caller.call(hook, pod, table, _NO_ROWS) for hook in group.pre_score}
    scores: list[Scored] = []
    normalizing: list[Scored] = []
    for hook, weight in group.score:
        state = score_states.get(hook.name)
        if not isinstance(state, Skip):
            (normalizing if hook.normalizes else scores).append(Scored(hook, weight, state))
    return Judges(states, skipped, filters, scores, normalizing)


def check_passing(hook: Hook, scores: IntArray, passing: BoolArray | None, table: NodeTable, rows: Rows) -> None:
    """Raises PluginError if the score of a row that passes is not between 0 and MAX_SCORE."""
    # As unsigned numbers, negative ones are larger than any score.
    if len(scores) and int(scores.view(np.uint64).max()) > MAX_SCORE:
        check_range(hook, scores if passing is None else np.where(passing, scores, 0), table, row_numbers(rows))
