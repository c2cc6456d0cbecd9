"""The evaluation of one pod by shared results, and by the plugins that must be called for every pod."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, are_all_set
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.sharing.cached import CachedResults, CachedVerdicts, CachedWithNominated
from kubestow.scheduler.cycle.sharing.plugin_groups import PluginGroup
from kubestow.scheduler.cycle.sharing.prepared import Scoring, prepare_scores
from kubestow.scheduler.cycle.sharing.results import RowResults
from kubestow.scheduler.cycle.sharing.signature import Signature
from kubestow.scheduler.framework.filtering import refuse
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.results import Code, Narrowed, Rejection, Skip
from kubestow.telemetry.metrics.instruments import Histogram


class SharedResults(msgspec.Struct, frozen=True):
    """The results that a pod can use."""

    results: RowResults
    states: dict[str, Any]
    """The PreFilter states of the plugins with `sign`."""
    skipped: set[str]
    pod_class: "PodClass | None" = None
    """The cache for pods with the same signature, if there is one."""


class PodClass(msgspec.Struct, frozen=True):
    """The cached results for pods with the same signature."""

    results: CachedResults
    with_nominated: CachedWithNominated
    verdicts: CachedVerdicts
    rescoring: Histogram
    """Durations by profile of computing results of changed rows again."""


class SharedEvaluation:
    """An evaluation by shared results, with the methods of `Evaluation` that find a node."""

    def __init__(self, evaluation: Evaluation, shared: SharedResults, others: PluginGroup) -> None:
        self._evaluation = evaluation
        self._shared = shared
        self._others = others
        self._class = shared.pod_class
        self._filters: Sequence[Hook] = others.filter
        """The filters that must be called for this pod."""

    @property
    def is_cached(self) -> bool:
        """Whether results for all rows are cached, so that it costs little to filter all of them."""
        return self._class is not None

    def begin(self, signature: Signature) -> bool:
        """Run PreFilter of the other plugins; return False if one rejects the pod or narrows the nodes."""
        evaluation = self._evaluation
        states, skipped = self._shared.states, self._shared.skipped
        if self._others.pre_filter:
            states, skipped = states.copy(), skipped.copy()
            for hook in self._others.pre_filter:
                answer = evaluation.pre_filter_answer(hook)
                if isinstance(answer, Skip):
                    skipped.add(hook.name)
                elif isinstance(answer, Rejection | Narrowed):
                    return False
                else:
                    states[hook.name] = answer
        evaluation.states, evaluation.skipped = states, skipped
        if self._filters:
            self._filters = [hook for hook in self._filters if hook.name not in skipped]
        if self._filters:
            # The cached verdicts lack those of the other filters.
            self._class = None
        if self._class is not None:
            evaluation.signature = signature.whole
            if evaluation.nominated_row is not None:
                # The cached results with nominated pods include this pod itself.
                self._class = None
        return True

    def passing(self, rows: IntArray) -> BoolArray:
        """Return which of the rows are feasible, after applying the changes since the last pod."""
        evaluation, pod_class, results = self._evaluation, self._class, self._shared.results
        if pod_class is not None and pod_class.verdicts.refuse_all(evaluation, pod_class.results):
            return np.zeros(len(rows), np.bool_)
        if pod_class is not None:
            cached, started = pod_class.results, evaluation.profile.caller.started
            updates, start = cached.updates, started()
            cached.catch_up(evaluation)
            if cached.updates > updates:
                pod_class.rescoring.observe(started() - start, evaluation.profile.name)
            return pod_class.with_nominated.passing(evaluation, rows, cached)
        results.catch_up(evaluation)
        passing = results.passing(evaluation, rows)
        self._refuse(passing, rows)
        evaluation.refuse_for_nominated(passing, rows)
        return passing

    def passes(self, row: int) -> bool:
        """Return whether one row is feasible, without applying the changes of other rows."""
        evaluation, pod_class = self._evaluation, self._shared.pod_class
        if pod_class is None:
            return are_all_set(self.passing(np.array([row])))
        if not pod_class.results.passes(evaluation, row):
            return False
        if not self._filters and (evaluation.nominated is None or not evaluation.nominated.pods(row)):
            return True
        rows, passing = np.array([row]), np.array([True])
        self._refuse(passing, rows)
        evaluation.refuse_for_nominated(passing, rows)
        return are_all_set(passing)

    def _refuse(self, passing: BoolArray, rows: IntArray) -> None:
        """Clear in `passing` the rows that a filter rejects that must be called for this pod."""
        evaluation = self._evaluation
        for hook in self._filters:
            state, table = evaluation.states.get(hook.name), evaluation.cluster.nodes
            refuse(passing, evaluation.profile.caller, hook, state, evaluation.pod, table, rows)

    def explain(self) -> None:
        """Set the verdicts of the evaluation, after a search has found no feasible row."""
        if self._class is not None:
            self._evaluation.verdicts = self._class.verdicts.current(self._evaluation, self._class.results)
        else:
            self._evaluation.explain()

    def score(self, rows: IntArray) -> IntArray:
        """Return the total scores of feasible rows; only their differences are meaningful."""
        evaluation = self._evaluation
        caller, start = evaluation.profile.caller, evaluation.profile.caller.started()
        others: Sequence[Scoring] = ()
        if self._others.pre_score or self._others.score:
            others = prepare_scores(evaluation, self._others, rows, evaluation.states)
        scoring = caller.started()
        caller.record_point("PreScore", Code.SUCCESS, start, scoring)
        totals = self._shared.results.totals(evaluation, rows)
        for other in others:
            _, normalized = evaluation.score_with(other.hook, other.state, rows)
            totals += other.weight * normalized
        caller.record_point("Score", Code.SUCCESS, scoring)
        return totals
