"""Plugins ready to judge rows for a pod: their PreFilter and PreScore have run."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, largest, row_count, row_numbers
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.sharing.groups import Group
from kubestow.framework.caller import in_range
from kubestow.framework.filtering import refuse
from kubestow.framework.hook import Hook
from kubestow.framework.results import MAX_SCORE, Narrowed, Rejection, Skip

_NO_ROWS: IntArray = np.zeros(0, np.int64)


class Scoring(NamedTuple):
    """A plugin that scores, with what its PreScore computed."""

    hook: Hook
    weight: int
    state: Any

    def judge(self, evaluation: Evaluation, rows: Rows) -> IntArray:
        """The scores of rows as the plugin gives them."""
        table = evaluation.cluster.nodes
        scores: IntArray = evaluation.profile.caller.call(
            self.hook, self.state, evaluation.pod, table, rows, rows=row_count(rows)
        )
        return scores

    def normalized(self, evaluation: Evaluation, rows: IntArray, raw: IntArray) -> IntArray:
        """The weighted scores of rows, from those that the plugin gave them."""
        table = evaluation.cluster.nodes
        assert self.hook.normalize is not None
        scores: IntArray = evaluation.profile.caller.call(
            self.hook.normalize, self.state, evaluation.pod, table, rows, raw
        )
        return scores * self.weight


class Ready(msgspec.Struct, frozen=True):
    """The plugins of a group that have something to say, with what their PreFilter computed."""

    states: dict[str, Any]
    skipped: set[str]
    filters: list[Hook]
    scores: list[Scoring]
    """Those that do not normalize."""
    normalizing: list[Scoring]

    def refuse(self, evaluation: Evaluation, passing: BoolArray, rows: Rows) -> None:
        """Take from the rows that pass those that are refused."""
        caller, pod, table = evaluation.profile.caller, evaluation.pod, evaluation.cluster.nodes
        for hook in self.filters:
            refuse(passing, caller, hook, self.states.get(hook.name), pod, table, rows)

    def score(self, evaluation: Evaluation, rows: Rows, passing: BoolArray | None = None) -> IntArray:
        """Return the weighted scores of the plugins that do not normalize; those of rejected rows mean nothing.

        Without `passing`, all rows have passed.
        """
        total: IntArray | None = None
        for scoring in self.scores:
            scores = scoring.judge(evaluation, rows)
            # As unsigned numbers, negative ones are larger than any score.
            if len(scores) and largest(scores.view(np.uint64)) > MAX_SCORE:
                counted = scores if passing is None else np.where(passing, scores, 0)
                in_range(scoring.hook, counted, evaluation.cluster.nodes, row_numbers(rows))
            weighted = scores if scoring.weight == 1 else scores * scoring.weight
            # Not in place: the first may be the plugin's own array.
            total = weighted if total is None else total + weighted
        return np.zeros(row_count(rows), np.int64) if total is None else total

    def and_also(self, others: "Ready") -> "Ready":
        """Together with others."""
        return Ready(
            {**self.states, **others.states},
            self.skipped | others.skipped,
            self.filters + others.filters,
            self.scores + others.scores,
            self.normalizing + others.normalizing,
        )


def prepare(evaluation: Evaluation, group: Group, *, counted: bool = True) -> Ready | None:
    """Run what comes before rows; None if a PreFilter refuses the pod or narrows the nodes."""
    states: dict[str, Any] = {}
    skipped: set[str] = set()
    for hook in group.pre_filter:
        answer = evaluation.pre_filter_answer(hook, int(counted))
        if isinstance(answer, Rejection | Narrowed):
            return None
        if isinstance(answer, Skip):
            skipped.add(hook.name)
        else:
            states[hook.name] = answer
    ready = Ready(states, skipped, [hook for hook in group.filter if hook.name not in skipped], [], [])
    for scoring in prepare_scores(evaluation, group, _NO_ROWS, counted=counted):
        (ready.scores if scoring.hook.normalize is None else ready.normalizing).append(scoring)
    return ready


def prepare_scores(evaluation: Evaluation, group: Group, rows: IntArray, *, counted: bool = True) -> list[Scoring]:
    """Run PreScore for the rows that passed; plugins that sign do not look at them."""
    call, pod, table = evaluation.profile.caller.call, evaluation.pod, evaluation.cluster.nodes
    states = {hook.name: call(hook, pod, table, rows, rows=int(counted)) for hook in group.pre_score}
    return [
        Scoring(hook, weight, state)
        for hook, weight in group.score
        if not isinstance(state := states.get(hook.name), Skip)
    ]
