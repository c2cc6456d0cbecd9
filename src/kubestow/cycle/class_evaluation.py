"""One pod judged by what is remembered of pods like it, and by the plugins that have to be asked every time."""

from typing import Any

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.groups import Group
from kubestow.cycle.judges import OUT_OF_THE_ORDINARY
from kubestow.cycle.lone_pod import LonePod
from kubestow.cycle.pod_class import PodClass
from kubestow.cycle.signature import Signature
from kubestow.framework.caller import Hook
from kubestow.framework.filtering import refuse
from kubestow.framework.results import Code, Skip


class ClassEvaluation:
    """What a pod's class remembers and what the other plugins say now make up an evaluation."""

    def __init__(self, evaluation: Evaluation, pod_class: LonePod, others: Group) -> None:
        self._evaluation = evaluation
        self._class = pod_class
        self._others = others
        self._filters: list[Hook] = []

    def pre_filter(self, signature: Signature) -> bool:
        """PreFilter of the plugins that did not sign; False if one of them refuses or narrows."""
        evaluation = self._evaluation
        evaluation.states.update(self._class.states)
        evaluation.skipped |= self._class.skipped
        call = evaluation.profile.caller.call
        for hook in self._others.pre_filter:
            answer = call(hook, evaluation.pod)
            if isinstance(answer, Skip):
                evaluation.skipped.add(hook.name)
            elif isinstance(answer, OUT_OF_THE_ORDINARY):
                return False
            else:
                evaluation.states[hook.name] = answer
        self._filters = [hook for hook in self._others.filter if hook.name not in evaluation.skipped]
        if not self._filters and isinstance(self._class, PodClass):
            evaluation.signature = signature.whole
        return True

    def passing(self, rows: IntArray) -> BoolArray:
        """Which rows pass."""
        evaluation, table = self._evaluation, self._evaluation.cluster.nodes
        if isinstance(self._class, PodClass) and evaluation.signature is not None:
            return self._class.passing_beside_nominated(evaluation, rows)
        passing = self._class.passing(evaluation.pod, table, rows)
        for hook in self._filters:
            state, caller = evaluation.states.get(hook.name), evaluation.profile.caller
            if hook.costly_rows:
                positions = np.flatnonzero(passing)
                still: BoolArray = np.ones(len(positions), np.bool_)
                refuse(still, caller, hook, state, evaluation.pod, table, rows[positions])
                passing[positions] = still
            else:
                refuse(passing, caller, hook, state, evaluation.pod, table, rows)
        evaluation.refuse_for_nominated(passing, rows)
        return passing

    def explain(self) -> None:
        """After a search for rows that pass has found none: finds out why."""
        evaluation = self._evaluation
        if isinstance(self._class, PodClass) and evaluation.signature is not None:
            evaluation.verdicts = self._class.verdicts(evaluation)
        else:
            evaluation.explain()

    def score(self, rows: IntArray) -> IntArray:
        """The totals of some of the rows that pass."""
        evaluation = self._evaluation
        profile, pod, table = evaluation.profile, evaluation.pod, evaluation.cluster.nodes
        caller, start = profile.caller, profile.caller.started()
        states: dict[str, Any] = {hook.name: caller.call(hook, pod, table, rows) for hook in self._others.pre_score}
        scoring = caller.started()
        caller.finished("PreScore", Code.SUCCESS, start, scoring)
        totals = self._class.totals(pod, table, rows)
        for hook, weight in self._others.score:
            state = states.get(hook.name)
            if not isinstance(state, Skip):
                totals += weight * evaluation.score_with(hook, state, rows)[1]
        caller.finished("Score", Code.SUCCESS, scoring)
        return totals
