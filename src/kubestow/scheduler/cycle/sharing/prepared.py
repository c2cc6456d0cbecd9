"""Plugins whose PreFilter and PreScore have run for a pod, so that they can filter and score rows."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, largest, row_count, row_numbers
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.sharing.plugin_groups import PluginGroup
from kubestow.scheduler.framework.caller import check_range
from kubestow.scheduler.framework.filtering import refuse
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.results import MAX_SCORE, Narrowed, Rejection, Skip

_NO_ROWS: IntArray = np.zeros(0, np.int64)


class Scoring(NamedTuple):
    """A Score plugin with its weight and its state for scoring."""

    hook: Hook
    weight: int
    state: Any

    def raw(self, evaluation: Evaluation, rows: Rows) -> IntArray:
        """Return the scores of rows as the plugin returns them."""
        table = evaluation.cluster.nodes
        scores: IntArray = evaluation.profile.caller.call(
            self.hook, self.state, evaluation.pod, table, rows, rows=row_count(rows)
        )
        return scores

    def normalized(self, evaluation: Evaluation, rows: IntArray, raw: IntArray) -> IntArray:
        """Return the normalized and weighted scores of rows from their raw scores."""
        table = evaluation.cluster.nodes
        assert self.hook.normalize is not None
        scores: IntArray = evaluation.profile.caller.call(
            self.hook.normalize, self.state, evaluation.pod, table, rows, raw
        )
        return scores * self.weight


class PreparedPlugins(msgspec.Struct, frozen=True):
    """The plugins of a group that did not return Skip, with their PreFilter states."""

    states: dict[str, Any]
    skipped: set[str]
    filters: list[Hook]
    scores: list[Scoring]
    """Score plugins without NormalizeScore."""
    normalizing: list[Scoring]
    """Score plugins with NormalizeScore."""

    def refuse(self, evaluation: Evaluation, passing: BoolArray, rows: Rows) -> None:
        """Clear in `passing` the rows that a filter rejects."""
        caller, pod, table = evaluation.profile.caller, evaluation.pod, evaluation.cluster.nodes
        for hook in self.filters:
            refuse(passing, caller, hook, self.states.get(hook.name), pod, table, rows)

    def score(self, evaluation: Evaluation, rows: Rows, passing: BoolArray | None = None) -> IntArray:
        """Return the sum of the weighted scores of `scores`; the sums of rows that are not passing are meaningless.

        Without `passing`, all rows pass.
        """
        total: IntArray | None = None
        for scoring in self.scores:
            scores = scoring.raw(evaluation, rows)
            # Viewed as unsigned numbers, negative scores are larger than any valid score.
            if len(scores) and largest(scores.view(np.uint64)) > MAX_SCORE:
                counted = scores if passing is None else np.where(passing, scores, 0)
                check_range(scoring.hook, counted, evaluation.cluster.nodes, row_numbers(rows))
            weighted = scores if scoring.weight == 1 else scores * scoring.weight
            # Not in place: the first array may belong to the plugin.
            total = weighted if total is None else total + weighted
        return np.zeros(row_count(rows), np.int64) if total is None else total

    def merged_with(self, others: "PreparedPlugins") -> "PreparedPlugins":
        return PreparedPlugins(
            {**self.states, **others.states},
            self.skipped | others.skipped,
            self.filters + others.filters,
            self.scores + others.scores,
            self.normalizing + others.normalizing,
        )


def prepare(evaluation: Evaluation, group: PluginGroup, *, counted: bool = True) -> PreparedPlugins | None:
    """Run PreFilter and PreScore of a group; None if a PreFilter rejects the pod or narrows the nodes.

    Without `counted`, the calls are not counted as evaluations.
    """
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
    prepared = PreparedPlugins(states, skipped, [hook for hook in group.filter if hook.name not in skipped], [], [])
    for scoring in prepare_scores(evaluation, group, _NO_ROWS, states, counted=counted):
        (prepared.scores if scoring.hook.normalize is None else prepared.normalizing).append(scoring)
    return prepared


def prepare_scores(
    evaluation: Evaluation, group: PluginGroup, rows: IntArray, filter_states: dict[str, Any], *, counted: bool = True
) -> list[Scoring]:
    """Run PreScore of a group for the feasible `rows`, which plugins with `sign` ignore."""
    call, pod, table = evaluation.profile.caller.call, evaluation.pod, evaluation.cluster.nodes
    states = {hook.name: call(hook, pod, table, rows, rows=int(counted)) for hook in group.pre_score}
    return [
        Scoring(hook, weight, state)
        for hook, weight in group.score
        if not isinstance(state := (filter_states if hook.scores_by_filter_state else states).get(hook.name), Skip)
    ]
