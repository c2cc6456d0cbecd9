"""Pods that are the same to the scheduler share its work.

Plugins say with `sign` what, of a pod, their answers on a row depend on. Pods with the same signature are a class. A
class remembers, for every row, whether those plugins let the row pass and what they scored it; for the next pod of the
class only rows that changed since are judged again. What plugins say that look at a node alone is remembered apart
(`node_class`), so that pods that differ in what they request still share that. Plugins that do not sign are asked about
all rows every time, so the outcome is always that of a full evaluation.

Only the way of a pod that fits is shortened. Where no node will do, or anything is out of the ordinary (a PreFilter
that refuses or narrows), a full evaluation finds the words.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, row_count
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.node_class import NodeClass
from kubestow.cycle.pod_class import LonePod, PodClass
from kubestow.framework.caller import Bound
from kubestow.framework.filtering import ask_filter
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, Narrowed, PluginError, Rejection, Skip

_MOST_ROWS = 2_000_000
"""How many rows all classes together may remember, at some 20 bytes each; the same again for node classes."""


class _Signature(NamedTuple):
    node_key: Hashable
    """Of the plugins that look at a node alone."""
    key: Hashable
    """Of all."""
    node_signers: frozenset[str]
    pod_signers: frozenset[str]


class _Others(NamedTuple):
    """The plugins that did not sign, at each point."""

    pre_filter: list[Bound]
    filter: list[Bound]
    pre_score: list[Bound]
    score: list[tuple[Bound, int]]


class _Seen:
    """Signatures seen once lately: what does not come again before long is not worth remembering."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, None] = {}

    def again(self, key: Hashable, room: int) -> bool:
        """Whether it is among the last that were seen, as many as there is room to remember classes."""
        if key in self._keys:
            del self._keys[key]
            return True
        while self._keys and len(self._keys) >= room:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None
        return False


class SharingObserver(Protocol):
    """Is told how classes fare; a hint is what a class knows from the pods before."""

    def hint_looked_up(self, profile: str, found: bool, seconds: float) -> None: ...

    def batch_tried(self, profile: str, result: str) -> None: ...

    def results_stored(self, profile: str, seconds: float) -> None: ...

    def batch_flushed(self, profile: str, reason: str) -> None: ...


class Untold:
    """Nobody wants to know."""

    def hint_looked_up(self, profile: str, found: bool, seconds: float) -> None:
        pass

    def batch_tried(self, profile: str, result: str) -> None:
        pass

    def results_stored(self, profile: str, seconds: float) -> None:
        pass

    def batch_flushed(self, profile: str, reason: str) -> None:
        pass


class PodClasses:
    """All classes in use; the least recently used is dropped when there are too many."""

    def __init__(self, observer: SharingObserver) -> None:
        self._observer = observer
        self._pod_classes: dict[Hashable, PodClass] = {}
        self._node_classes: dict[Hashable, NodeClass] = {}
        self._seen, self._node_seen = _Seen(), _Seen()
        self._others: dict[tuple[str, frozenset[str]], _Others] = {}

    def evaluate(self, evaluation: Evaluation) -> "ClassEvaluation | None":
        """Judge all nodes for a pod; None if only a full evaluation can tell what becomes of it."""
        profile = evaluation.profile
        start = profile.caller.started()
        signature = _sign(profile, evaluation.pod)
        is_known = signature.key in self._pod_classes
        found = self._class_of(signature, evaluation)
        self._observer.hint_looked_up(profile.name, is_known, profile.caller.started() - start)
        judged = self._judge(found, signature, evaluation, start)
        result = "no_hint" if not is_known else "hint_used" if judged is not None else "hint_not_used"
        self._observer.batch_tried(profile.name, result)
        return judged

    def _judge(
        self, found: PodClass | None, signature: _Signature, evaluation: Evaluation, start: float
    ) -> "ClassEvaluation | None":
        profile, pod, table = evaluation.profile, evaluation.pod, evaluation.cluster.nodes
        caller = profile.caller
        if found is None or not found.is_usable:
            return None
        judged = ClassEvaluation(evaluation, found, self._others_of(profile, signature))
        if not judged.pre_filter():
            return None
        filtering = caller.started()
        found.catch_up(pod, table)
        if not found.nodes.is_usable or not judged.filter():
            return None
        # Told only now: a full evaluation would tell of both again.
        caller.finished("PreFilter", Code.SUCCESS, start, filtering)
        caller.finished("Filter", Code.SUCCESS, filtering)
        return judged

    def _class_of(self, signature: _Signature, evaluation: Evaluation) -> PodClass | None:
        key, room = signature.key, _MOST_ROWS // evaluation.cluster.nodes.capacity
        found = self._pod_classes.pop(key, None)
        if found is not None:
            self._pod_classes[key] = found
            return found
        is_known = self._seen.again(key, room)
        nodes = self._node_class_of(signature, evaluation, room)
        if nodes is None or not nodes.is_usable:
            return None
        how, profile = PodClass if is_known else LonePod, evaluation.profile
        start = profile.caller.started()
        found = how(profile, nodes, signature.pod_signers, evaluation.pod, evaluation.cluster.nodes)
        if is_known:
            while self._pod_classes and len(self._pod_classes) >= room:
                del self._pod_classes[next(iter(self._pod_classes))]
                self._observer.batch_flushed(profile.name, "expired")
            self._pod_classes[key] = found
            self._observer.results_stored(profile.name, profile.caller.started() - start)
        return found

    def _node_class_of(self, signature: _Signature, evaluation: Evaluation, room: int) -> NodeClass | None:
        key = signature.node_key
        found = self._node_classes.pop(key, None)
        if found is None:
            if not self._node_seen.again(key, room):
                return None
            while self._node_classes and len(self._node_classes) >= room:
                del self._node_classes[next(iter(self._node_classes))]
            found = NodeClass(evaluation.profile, signature.node_signers, evaluation.pod, evaluation.cluster.nodes)
        self._node_classes[key] = found
        return found

    def _others_of(self, profile: Profile, signature: _Signature) -> _Others:
        signing = signature.node_signers | signature.pod_signers
        key = (profile.name, signing)
        found = self._others.get(key)
        if found is None:
            found = self._others[key] = _Others(
                [bound for bound in profile.pre_filter if bound.name not in signing],
                [bound for bound in profile.filter if bound.name not in signing],
                [bound for bound in profile.pre_score if bound.name not in signing],
                [of for of in zip(profile.score, profile.weights, strict=True) if of[0].name not in signing],
            )
        return found


class ClassEvaluation:
    """The judgement of all nodes for one pod: what its class remembers, and what the other plugins say now."""

    def __init__(self, evaluation: Evaluation, pod_class: PodClass, others: _Others) -> None:
        self._evaluation = evaluation
        self._class = pod_class
        self._others = others
        self.passing: BoolArray = np.zeros(0, np.bool_)
        """The rows that pass."""

    def pre_filter(self) -> bool:
        """PreFilter of the plugins that did not sign; False if one of them refuses or narrows."""
        evaluation = self._evaluation
        evaluation.wants.update(self._class.wants)
        evaluation.skipped |= self._class.skipped
        call = evaluation.profile.caller.call
        for bound in self._others.pre_filter:
            answer = call(bound, evaluation.pod)
            if isinstance(answer, Skip):
                evaluation.skipped.add(bound.name)
            elif isinstance(answer, Rejection | Narrowed):
                return False
            else:
                evaluation.wants[bound.name] = answer
        return True

    def filter(self) -> bool:
        """The filters that did not sign; False if no row passes."""
        evaluation, table = self._evaluation, self._evaluation.cluster.nodes
        passing = self._class.passing[: table.size]
        everywhere = slice(0, table.size)
        for bound in self._others.filter:
            if bound.name in evaluation.skipped:
                continue
            rows: Rows = np.flatnonzero(passing) if bound.costly_rows else everywhere
            want, counted = evaluation.wants.get(bound.name), row_count(rows) if bound.costly_rows else table.count
            answer = ask_filter(evaluation.profile.caller, bound, want, evaluation.pod, table, rows, counted)
            if answer is not None:
                passing = passing.copy()
                passing[rows] &= answer.kinds == 0
        for refused, _ in evaluation.refused_for_nominated(passing):
            passing = passing.copy()
            passing[refused] = False
        self.passing = passing
        return bool(passing.any())

    def score(self, rows: IntArray) -> IntArray:
        """The totals of some of the rows that pass."""
        evaluation = self._evaluation
        profile, pod, table = evaluation.profile, evaluation.pod, evaluation.cluster.nodes
        caller, start = profile.caller, profile.caller.started()
        wants: dict[str, Any] = {bound.name: caller.call(bound, pod, table, rows) for bound in self._others.pre_score}
        scoring = caller.started()
        caller.finished("PreScore", Code.SUCCESS, start, scoring)
        totals = self._class.totals(pod, table, rows)
        for bound, weight in self._others.score:
            want = wants.get(bound.name)
            if not isinstance(want, Skip):
                totals += weight * evaluation.score_with(bound, want, rows)[1]
        caller.finished("Score", Code.SUCCESS, scoring)
        return totals


def _sign(profile: Profile, pod: PodInfo) -> _Signature:
    """What of a pod the answers depend on that plugins give about a row, as far as they say so."""
    node_parts: list[Hashable] = [profile.name]
    pod_parts: list[Hashable] = []
    declining: list[str] = []
    name = ""
    try:
        for name, plugin in profile.node_signing:
            part = plugin.sign(pod)
            node_parts.append(part)
            if part is None:
                declining.append(name)
        for name, plugin in profile.pod_signing:
            part = plugin.sign(pod)
            pod_parts.append(part)
            if part is None:
                declining.append(name)
    except Exception as error:
        raise PluginError(name, "sign", error) from error
    node_key = tuple(node_parts)
    nodes, pods = profile.node_signers, profile.pod_signers
    if declining:
        nodes, pods = nodes.difference(declining), pods.difference(declining)
    return _Signature(node_key, (node_key, *pod_parts), nodes, pods)
