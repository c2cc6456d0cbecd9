"""NodeAffinity: filters and scores nodes by node selector, node affinity and the profile's added affinity."""

from collections.abc import Hashable, Sequence

import numpy as np

from kubestow.api.node import Node, NodeSelector
from kubestow.api.node_selector import (
    NODE_NAME_FIELD,
    PreferredTerm,
    RequiredNodeAffinity,
    compile_node_selector,
    compile_preferred,
    required_node_affinity,
)
from kubestow.api.pod import NodeAffinity as NodeAffinitySpec
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import NodeAffinityArgs
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.node_matching import node_term_match, node_terms_match, required_affinity_match
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import SKIP, Narrowed, Rejection, Rejections, Skip, unresolvable
from kubestow.scheduler.plugins.support.normalizing import proportional

_BY_POD, _BY_PROFILE = 1, 2  # a rejection by the pod's own affinity is 1, so that a mask is the result
_REASONS = {
    _BY_POD: unresolvable("node(s) didn't match Pod's node affinity/selector"),
    _BY_PROFILE: unresolvable("node(s) didn't match scheduler-enforced node affinity"),
}
_CONFLICT = unresolvable("pod affinity terms conflict")


class NodeAffinity:
    """Rejects nodes that do not match; prefers nodes that match preferred terms."""

    name = "NodeAffinity"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING
    normalizes_scores_alone = True

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        added = args.addedAffinity or NodeAffinitySpec()
        required = added.requiredDuringSchedulingIgnoredDuringExecution
        preferred = added.preferredDuringSchedulingIgnoredDuringExecution
        self.enforced = required
        """What the profile requires of nodes for all its pods."""
        self._added = None
        if required is not None:
            path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            self._added = compile_node_selector(required, path).checked()
        self._added_preferred = compile_preferred(
            preferred, "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        )

    def sign(self, pod: PodInfo) -> Hashable:
        spec = pod.pod.spec
        affinity = spec.affinity.nodeAffinity if spec.affinity is not None else None
        return tuple(spec.nodeSelector.items()), affinity

    def pre_filter(self, pod: PodInfo) -> RequiredNodeAffinity | Skip | Narrowed | Rejection:
        required = _required_of(pod.pod)
        if required is None and self._added is None and not pod.pod.spec.nodeSelector:
            return SKIP
        state = required_node_affinity(pod.pod)
        names = _required_names(required)
        if names is None:
            return state
        return Narrowed(names, state) if names else _CONFLICT

    def filter_rows(
        self, state: RequiredNodeAffinity | None, pod: PodInfo, view: NodeView, rows: Rows
    ) -> Rejections | None:
        if state is None:
            state = required_node_affinity(pod.pod)
        matched = required_affinity_match(view, rows, state)
        kinds: IntArray = (~matched).astype(np.int64)
        if self._added is not None:
            kinds = np.where(node_terms_match(view, rows, self._added), kinds, _BY_PROFILE)
        return Rejections(kinds, _REASONS.__getitem__)

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> tuple[PreferredTerm, ...] | Skip:
        return self._preferred_of(pod) or SKIP

    def _preferred_of(self, pod: PodInfo) -> tuple[PreferredTerm, ...]:
        terms = self._added_preferred
        affinity = pod.pod.spec.affinity
        if affinity is not None and affinity.nodeAffinity is not None:
            terms += compile_preferred(affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution)
        return terms

    def score_rows(self, state: tuple[PreferredTerm, ...] | None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        scores: IntArray = np.zeros(row_count(rows), np.int64)
        for preferred in self._preferred_of(pod) if state is None else state:
            if preferred.weight:
                scores += preferred.weight * node_term_match(view, rows, preferred.term)
        return scores

    def normalize(
        self, state: tuple[PreferredTerm, ...] | None, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray
    ) -> IntArray:
        return proportional(scores)

    def requeue_on(self) -> Sequence[Registration]:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._matches_now, alike=True)]

    def _matches_now(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        if self._added is not None and not self._added.matches(new.metadata.labels, new.metadata.name):
            return False
        affinity = required_node_affinity(waiting)
        if not affinity.matches(new.metadata.labels, new.metadata.name):
            return False
        return old is None or not affinity.matches(old.metadata.labels, old.metadata.name)


def _required_of(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.nodeAffinity is None:
        return None
    return affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution


def _required_names(required: NodeSelector | None) -> frozenset[str] | None:
    """Return the nodes that the terms name; None if some term names none, or there are no terms."""
    if required is None or not required.nodeSelectorTerms:
        return None
    names: frozenset[str] = frozenset()
    for term in required.nodeSelectorTerms:
        listed = [
            frozenset(field.values)
            for field in term.matchFields
            if field.key == NODE_NAME_FIELD and field.operator == "In"
        ]
        if not listed:
            return None
        names |= frozenset.intersection(*listed)
    return names
