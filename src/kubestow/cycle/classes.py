"""Pods that are the same to the scheduler share its work.

Plugins say with `sign` what, of a pod, their answers on a row depend on. Pods with the same signature are a class. A
class remembers, for every row, whether those plugins let the row pass and what they scored it, and, once a pod of the
class has found no node, why; for the next pod of the class only rows that changed since are judged again. What plugins
say that look at a node alone is remembered apart (`node_class`), so that pods that differ in what they request still
share that. Plugins that do not sign are asked every time, so the outcome is always that of a full evaluation.

Where anything is out of the ordinary (a PreFilter that refuses or narrows), only a full evaluation can tell.
"""

from collections.abc import Hashable
from typing import Protocol

from kubestow.cycle.ahead import ForeseenPod, LookAhead, Search, Upcoming
from kubestow.cycle.class_evaluation import ClassEvaluation
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.groups import Groups, groups_of
from kubestow.cycle.judges import Judges, prepare
from kubestow.cycle.lone_pod import LonePod
from kubestow.cycle.node_class import NodeClass
from kubestow.cycle.pod_class import PodClass
from kubestow.cycle.signature import Signature, sign
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code

_MOST_ROWS = 2_000_000
"""How many rows all classes together may remember, at some 20 bytes each; the same again for node classes."""
_MOST_JUDGES = 1_024


class _Seen:
    """Signatures seen once lately: what does not come again before long is not worth remembering.

    By their hash, which is enough for a guess.
    """

    def __init__(self) -> None:
        self._hashes: dict[int, None] = {}

    def again(self, key: Hashable, room: int) -> bool:
        """Whether it is among the last that were seen, as many as there is room to remember classes."""
        number = hash(key)
        if number in self._hashes:
            del self._hashes[number]
            return True
        while self._hashes and len(self._hashes) >= room:
            del self._hashes[next(iter(self._hashes))]
        self._hashes[number] = None
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

    def __init__(self, observer: SharingObserver, upcoming: Upcoming) -> None:
        self._observer = observer
        self._ahead = LookAhead(upcoming)
        self._pod_classes: dict[Hashable, PodClass] = {}
        self._node_classes: dict[Hashable, NodeClass] = {}
        self._seen, self._node_seen = _Seen(), _Seen()
        self._pod_judges: dict[Hashable, Judges | None] = {}
        """By the part of signatures that is about the pods on a node."""
        self._groups: dict[tuple[str, frozenset[str]], Groups] = {}

    def evaluate(self, evaluation: Evaluation, search: Search) -> ClassEvaluation | None:
        """Start to judge nodes for a pod; None if only a full evaluation can tell what becomes of it."""
        profile = evaluation.profile
        start = profile.caller.started()
        signature = sign(profile, evaluation.pod)
        groups = self._groups_of(profile, signature.declined)
        known = self._known(signature)
        is_known = known is not None
        # What is remembered of rows leaves room for all pods that are nominated there: it is not for one of those.
        is_apart = evaluation.is_nominated
        found = known if is_known and not is_apart else self._newcomer(signature, groups, evaluation, search, is_apart)
        self._observer.hint_looked_up(profile.name, is_known, profile.caller.started() - start)
        judged = None if found is None else self._begin(found, signature, groups, evaluation)
        result = "no_hint" if not is_known else "hint_used" if judged is not None else "hint_not_used"
        self._observer.batch_tried(profile.name, result)
        if judged is not None:
            # Told only now: a full evaluation would tell of it again.
            profile.caller.finished("PreFilter", Code.SUCCESS, start)
        return judged

    def _begin(
        self, found: LonePod, signature: Signature, groups: Groups, evaluation: Evaluation
    ) -> ClassEvaluation | None:
        judged = ClassEvaluation(evaluation, found, groups.others)
        if not judged.pre_filter(signature):
            return None
        found.catch_up(evaluation.pod, evaluation.cluster.nodes)
        return judged if found.nodes.is_usable else None

    def _groups_of(self, profile: Profile, declined: frozenset[str]) -> Groups:
        key = (profile.name, declined)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = groups_of(profile, declined)
        return found

    def _known(self, signature: Signature) -> PodClass | None:
        known = self._pod_classes.pop(signature.whole, None)
        if known is not None:
            self._pod_classes[signature.whole] = known
            self._ahead.pause()
        return known

    def _newcomer(
        self, signature: Signature, groups: Groups, evaluation: Evaluation, search: Search, is_apart: bool
    ) -> LonePod | None:
        """A class for a pod whose like has been seen before; else what judges this pod alone."""
        room = _MOST_ROWS // evaluation.cluster.nodes.capacity
        comes_again = not is_apart and self._seen.again(signature.whole, room)
        nodes = self._node_class_of(signature, groups, evaluation, room)
        if nodes is None or not nodes.is_usable:
            return None
        profile, pod, table = evaluation.profile, evaluation.pod, evaluation.cluster.nodes
        start = profile.caller.started()
        of_pods = self._judges_of_pods(signature, groups, evaluation)
        foreseen = self._ahead.take(pod, table)
        of_sums = prepare(profile.caller, groups.sums, pod, table) if foreseen is None else foreseen.judges
        if of_pods is None or of_sums is None:
            return None
        if not comes_again:
            if foreseen is None and not is_apart and not signature.declined:
                foreseen = self._ahead.look(profile, groups.sums, pod, of_sums, table, search)
            if foreseen is None:
                return LonePod(profile.caller, nodes, of_pods, of_sums)
            return ForeseenPod(profile.caller, nodes, of_pods, foreseen)
        while self._pod_classes and len(self._pod_classes) >= room:
            del self._pod_classes[next(iter(self._pod_classes))]
            self._observer.batch_flushed(profile.name, "expired")
        made = self._pod_classes[signature.whole] = PodClass(profile.caller, nodes, of_pods, of_sums)
        self._observer.results_stored(profile.name, profile.caller.started() - start)
        return made

    def _judges_of_pods(self, signature: Signature, groups: Groups, evaluation: Evaluation) -> Judges | None:
        """The plugins that look at the pods on a node, ready to judge; None if one refuses or narrows."""
        key = signature.pods
        if key not in self._pod_judges:
            while len(self._pod_judges) >= _MOST_JUDGES:
                del self._pod_judges[next(iter(self._pod_judges))]
            caller, pod, table = evaluation.profile.caller, evaluation.pod, evaluation.cluster.nodes
            self._pod_judges[key] = prepare(caller, groups.pods, pod, table)
        return self._pod_judges[key]

    def _node_class_of(
        self, signature: Signature, groups: Groups, evaluation: Evaluation, room: int
    ) -> NodeClass | None:
        key = signature.nodes
        found = self._node_classes.pop(key, None)
        if found is None:
            if not self._node_seen.again(key, room):
                return None
            while self._node_classes and len(self._node_classes) >= room:
                del self._node_classes[next(iter(self._node_classes))]
            caller, pod, table = evaluation.profile.caller, evaluation.pod, evaluation.cluster.nodes
            found = NodeClass(caller, groups.nodes, pod, table)
        self._node_classes[key] = found
        return found
