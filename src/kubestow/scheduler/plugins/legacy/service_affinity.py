"""ServiceAffinity: keeps pods of a service on nodes with equal labels, and spreads them over other labels.

Filter: a node must have the values that the pod's node selector has for the affinity labels. If a service selects the
pod, the values of the other affinity labels are those of the node of an existing pod: the first, in node order, with
all labels of the new pod.

Score: for the preference labels, a node scores higher the fewer of the service's pods are on nodes with the same value.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubestow.api.labels import selector_from_set
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import ServiceAffinityArgs
from kubestow.scheduler.cluster.arrays import BoolArray, CountArray, FloatArray, IntArray, Rows, row_count
from kubestow.scheduler.cluster.counts import PodQuery, Scope
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.labels import ABSENT
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import Change, PodsRead
from kubestow.scheduler.framework.results import MAX_SCORE, SKIP, Rejections, Skip, unschedulable

_REJECTION = unschedulable("node(s) didn't match service affinity")


class State(NamedTuple):
    """The labels that a node must have."""

    given: dict[str, str]
    """The values from the pod's node selector."""
    wanted: dict[str, str]
    """All values, including those of the node of an existing pod."""
    counts: CountArray | None = None
    """Number of pods by row that can determine values; None: no pod can."""
    added: tuple[int, ...] = ()
    """Rows to which `with_changes` added such a pod, in order."""


class ServiceAffinity:
    """Keeps pods of a service on nodes with equal labels; spreads them over other labels."""

    name = "ServiceAffinity"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: ServiceAffinityArgs, handle: Handle) -> None:
        self._args = args
        self._cluster = handle.cluster

    # Filter

    def pre_filter(self, pod: PodInfo) -> State | Skip:
        labels = self._args.affinityLabels
        if not labels:
            return SKIP
        selector = pod.pod.spec.nodeSelector
        given = {label: selector[label] for label in labels if label in selector}
        is_served = bool(self._cluster.listers.services.selecting(pod.namespace, pod.labels))
        if len(given) == len(set(labels)) or not is_served:
            return State(given, given)
        question = PodQuery((Scope(frozenset((pod.namespace,)), selector_from_set(pod.labels)),), False)
        return self._with_counts(given, self._cluster.matches.count(question).by_row(self._cluster.nodes.size))

    def _with_counts(self, given: dict[str, str], counts: CountArray, added: tuple[int, ...] = ()) -> State:
        order = self._cluster.order.rows()
        first = [*order[counts[order] > 0][:1].tolist(), *added][:1]
        node = self._cluster.nodes.nodes[first[0]] if first else None
        found = {} if node is None else node.metadata.labels
        wanted = {label: found[label] for label in self._args.affinityLabels if label in found} | given
        return State(given, wanted, counts, added)

    def with_changes(self, state: State, pod: PodInfo, changes: Sequence[Change]) -> State:
        if state.counts is None:
            return state
        selector, counts, added = selector_from_set(pod.labels), state.counts, list(state.added)
        for other, row, was_added in changes:
            if other.namespace != pod.namespace or not selector.matches(other.labels):
                continue
            if was_added:
                added.append(row)
            elif row in added:
                added.remove(row)
            elif counts[row] > 0:
                counts = counts.copy()
                counts[row] -= 1
        is_same = counts is state.counts and tuple(added) == state.added
        return state if is_same else self._with_counts(state.given, counts, tuple(added))

    def counted_rows(self, state: State, pod: PodInfo) -> BoolArray:
        size = self._cluster.nodes.size
        return np.zeros(size, np.bool_) if state.counts is None else state.counts > 0

    def filter_rows(self, state: State, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        rejected = np.zeros(row_count(rows), np.bool_)
        for label, value in state.wanted.items():
            rejected |= view.label_ids(label)[rows] != view.label_id(label, value)
        return Rejections(rejected.astype(np.int64), lambda _: _REJECTION) if rejected.any() else None

    # Score

    def score_rows(self, state: object, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        """Return the number of the service's pods on each row."""
        selectors = self._cluster.listers.services.selecting(pod.namespace, pod.labels)
        if not selectors:
            return np.zeros(row_count(rows), np.int64)
        # Only one of several services counts; the choice is deterministic.
        scope = Scope(frozenset((pod.namespace,)), min(selectors, key=str))
        counts = self._cluster.matches.count(PodQuery((scope,), skip_terminating=True))
        return counts.by_row(self._cluster.nodes.size)[view.source_rows()[rows]].astype(np.int64)

    def normalize(self, state: object, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray) -> IntArray:
        total = int(scores.sum())
        mean: FloatArray = np.zeros(len(rows))
        for label in self._args.antiAffinityLabelsPreference:
            domains = view.label_ids(label)[rows]
            elsewhere = total - np.bincount(domains, weights=scores)[domains]
            parts = MAX_SCORE * (elsewhere / total) if total else np.full(len(rows), float(MAX_SCORE))
            parts[domains == ABSENT] = 0
            mean += parts / len(self._args.antiAffinityLabelsPreference)
        return mean.astype(np.int64)

    # When to retry

    def requeue_on(self) -> Sequence[Registration]:
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
        return [
            on(Resource.ASSIGNED_POD, pods, self._is_relevant_pod, alike=True),
            on(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._affinity_label_changed, alike=True),
        ]

    def _is_relevant_pod(self, waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
        """Return whether the changed pod can determine label values for the waiting one."""
        selector = selector_from_set(waiting.metadata.labels)
        return any(
            pod.metadata.namespace == waiting.metadata.namespace and selector.matches(pod.metadata.labels)
            for pod in (old, new)
            if pod is not None
        )

    def _affinity_label_changed(self, _waiting: Pod, old: Node | None, new: Node) -> bool:
        before = {} if old is None else old.metadata.labels
        after = new.metadata.labels
        return old is None or any(before.get(label) != after.get(label) for label in self._args.affinityLabels)
