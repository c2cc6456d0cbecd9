"""One pod judged by what pods like it share, and by the plugins that have to be asked every time."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, are_all_set
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.sharing.cached import Cached, CachedRoom, CachedVerdicts
from kubestow.cycle.sharing.groups import Group
from kubestow.cycle.sharing.ready import Scoring, prepare_scores
from kubestow.cycle.sharing.results import RowResults
from kubestow.cycle.sharing.signature import Signature
from kubestow.framework.filtering import refuse
from kubestow.framework.hook import Hook
from kubestow.framework.results import Code, Narrowed, Rejection, Skip


class Shared(msgspec.Struct, frozen=True):
    """What a pod may use."""

    results: RowResults
    states: dict[str, Any]
    """What PreFilter of the plugins that sign computed."""
    skipped: set[str]
    of_class: "PodClass | None" = None
    """What it has in common with pods of the same signature."""


class PodClass(msgspec.Struct, frozen=True):
    """What is remembered of pods of one signature."""

    results: Cached
    room: CachedRoom
    verdicts: CachedVerdicts


class SharedEvaluation:
    """An evaluation by shared results; a Judge for the cycle."""

    def __init__(self, evaluation: Evaluation, shared: Shared, others: Group) -> None:
        self._evaluation = evaluation
        self._shared = shared
        self._others = others
        self._class = shared.of_class
        self._filters: Sequence[Hook] = others.filter
        """The filters that have to be asked."""

    @property
    def remembers(self) -> bool:
        return self._class is not None

    def begin(self, signature: Signature) -> bool:
        """PreFilter of the plugins that did not sign; False if one of them refuses or narrows."""
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
            # What is remembered of why rows are refused is not all there is to it.
            self._class = None
        if self._class is not None:
            evaluation.signature = signature.whole
            if evaluation.nominated_row is not None:
                # It leaves room for this very pod.
                self._class = None
        return True

    def passing(self, rows: IntArray) -> BoolArray:
        """Which rows pass, now that what has changed since the last pod is followed."""
        evaluation, shared, results = self._evaluation, self._class, self._shared.results
        if shared is not None and shared.verdicts.refuse_all(evaluation, shared.results):
            return np.zeros(len(rows), np.bool_)
        results.catch_up(evaluation)
        if shared is not None:
            return shared.room.passing(evaluation, rows, shared.results)
        passing = results.passing(evaluation, rows)
        self._refuse(passing, rows)
        evaluation.refuse_for_nominated(passing, rows)
        return passing

    def passes(self, row: int) -> bool:
        """Whether one row passes: what has changed elsewhere need not be followed for it."""
        evaluation, shared = self._evaluation, self._shared.of_class
        if shared is None:
            return are_all_set(self.passing(np.array([row])))
        if not shared.results.passes(evaluation, row):
            return False
        if not self._filters and (evaluation.nominated is None or not evaluation.nominated.pods(row)):
            return True
        rows, passing = np.array([row]), np.array([True])
        self._refuse(passing, rows)
        evaluation.refuse_for_nominated(passing, rows)
        return are_all_set(passing)

    def _refuse(self, passing: BoolArray, rows: IntArray) -> None:
        """Ask the filters that have to be asked."""
        evaluation = self._evaluation
        for hook in self._filters:
            state, table = evaluation.states.get(hook.name), evaluation.cluster.nodes
            refuse(passing, evaluation.profile.caller, hook, state, evaluation.pod, table, rows)

    def explain(self) -> None:
        """After a search for rows that pass has found none: finds out why."""
        if self._class is not None:
            self._evaluation.verdicts = self._class.verdicts.of(self._evaluation, self._class.results)
        else:
            self._evaluation.explain()

    def score(self, rows: IntArray) -> IntArray:
        """The totals of some of the rows that pass, apart from what all have in common."""
        evaluation = self._evaluation
        caller, start = evaluation.profile.caller, evaluation.profile.caller.started()
        asks_others = self._others.pre_score or self._others.score
        others: Sequence[Scoring] = ()
        if asks_others:
            others = prepare_scores(evaluation, self._others, rows)
        scoring = caller.started()
        caller.finished("PreScore", Code.SUCCESS, start, scoring)
        totals = self._shared.results.totals(evaluation, rows)
        for other in others:
            _, normalized = evaluation.score_with(other.hook, other.state, rows)
            totals += other.weight * normalized
        caller.finished("Score", Code.SUCCESS, scoring)
        return totals
