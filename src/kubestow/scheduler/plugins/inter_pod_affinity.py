"""InterPodAffinity: filters and scores nodes by pod affinity and anti-affinity.

Filter applies required terms: the pod's own, and the anti-affinity of pods that have a node. Score sums the weights of
preferred terms, the pod's own and those of pods that have a node. Both are computed per topology domain; each row takes
the result of its domain.
"""

from collections.abc import Hashable, Mapping, Sequence

import msgspec
import numpy as np

from kubestow.api.labels import Selector, SelectorError
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.scheduler.cluster.affinity_terms import AffinityTerms, CarriedTerm, Term, TermKind, affinity_terms
from kubestow.scheduler.cluster.arrays import BoolArray, CountArray, IntArray, Rows
from kubestow.scheduler.cluster.counts import PodQuery, RowCounts, Scope
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.labels import ABSENT
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import Change, PodsRead
from kubestow.scheduler.framework.results import (
    MAX_SCORE,
    SKIP,
    Rejection,
    Rejections,
    Skip,
    unresolvable,
    unschedulable,
)

_EXISTING_ANTI, _ANTI, _AFFINITY = 1, 2, 3
"""Kinds of rejection; the largest of those that apply is reported."""

_REASONS = {
    _EXISTING_ANTI: unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
    _ANTI: unschedulable("node(s) didn't match pod anti-affinity rules"),
    _AFFINITY: unresolvable("node(s) didn't match pod affinity rules"),
}

_MAX_NAMESPACE_SELECTORS = 1_000
_MAX_SHIFTED_STATES = 64
"""Maximum number of cached states. Each may have one entry per node of the cluster."""

CountsByKey = dict[str, CountArray]
"""Number of pods by label value id, for each topology key."""


class RequiredTerms(msgspec.Struct, frozen=True):
    """The required terms of a pod, resolved to scopes, and the labels of its namespace."""

    affinity: tuple[Scope, ...]
    """The affinity terms: they match pods that are in every one of these scopes."""
    affinity_keys: tuple[str, ...]
    anti: tuple[tuple[Scope, str], ...]
    """The anti-affinity terms: the scope of each and its topology key."""
    namespace_labels: Mapping[str, str]

    def matches_affinity(self, pod: PodInfo) -> bool:
        """Return whether a pod matches the required affinity."""
        return bool(self.affinity) and all(scope.covers(pod.namespace, pod.labels) for scope in self.affinity)


class FilterState(msgspec.Struct, frozen=True):
    required: RequiredTerms
    affinity: CountsByKey
    anti: CountsByKey
    existing_anti: CountsByKey
    """Pods on nodes whose required anti-affinity matches this pod."""
    rejections: dict[str, IntArray]
    """The kind of rejection of each domain (0: none), by topology key."""


ScoreState = dict[str, IntArray]
"""Scores by label value id, for each topology key."""


class InterPodAffinity:
    """Rejects nodes that violate required affinity or anti-affinity; scores nodes by preferred terms."""

    name = "InterPodAffinity"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._args = args
        self._cluster = handle.cluster
        self._selected_namespaces: dict[Selector, tuple[int, frozenset[str]]] = {}
        self._shifts_of: FilterState | None = None
        self._known_shifts: dict[Hashable, FilterState] = {}

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, _pod_changed, alike=True),
            # The anti-affinity of other pods may no longer match it.
            on(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _node_changed, alike=True),
        ]

    def sign(self, pod: PodInfo) -> Hashable | None:
        """Return a signature for pods without terms only, unless the term of a pod on a node matches them."""
        affinity = pod.pod.spec.affinity
        if affinity is not None and (affinity.podAffinity is not None or affinity.podAntiAffinity is not None):
            return None
        namespace_labels = self._cluster.listers.namespace_labels(pod.namespace)
        return "" if next(self._cluster.carried.matching(pod, namespace_labels), None) is None else None

    # Filter

    def pre_filter(self, pod: PodInfo) -> FilterState | Skip | Rejection:
        try:
            terms = pod.terms
        except SelectorError as error:
            return unresolvable(f"parsing pod: {error}")
        namespace_labels = self._cluster.listers.namespace_labels(pod.namespace)
        existing_anti: CountsByKey = {}
        for carried, counts in self._cluster.carried.matching(pod, namespace_labels):
            if carried.kind is TermKind.REQUIRED_ANTI:
                _add_up(existing_anti, carried.term.topology_key, counts)
        if not terms.required and not terms.required_anti and not any(c[1:].any() for c in existing_anti.values()):
            return SKIP
        required = RequiredTerms(
            affinity=tuple(self._scope(term) for term in terms.required),
            affinity_keys=tuple(dict.fromkeys(term.topology_key for term in terms.required)),
            anti=tuple((self._scope(term), term.topology_key) for term in terms.required_anti),
            namespace_labels=namespace_labels,
        )
        affinity: CountsByKey = {}
        if required.affinity:
            counts = self._cluster.matches.count(PodQuery(required.affinity, skip_terminating=False))
            affinity = {key: counts.by_domain(key) for key in required.affinity_keys}
        anti: CountsByKey = {}
        for scope, key in required.anti:
            _add_up(anti, key, self._cluster.matches.count(PodQuery((scope,), skip_terminating=False)))
        return self._state(pod, required, affinity, anti, existing_anti)

    def _state(
        self, pod: PodInfo, terms: RequiredTerms, affinity: CountsByKey, anti: CountsByKey, existing_anti: CountsByKey
    ) -> FilterState:
        # The first of a group of pods with affinity to each other may be placed on any node.
        is_first = not any(counts[1:].any() for counts in affinity.values()) and terms.matches_affinity(pod)
        nodes = self._cluster.nodes
        rejections: dict[str, IntArray] = {}
        for key in dict.fromkeys((*existing_anti, *anti, *affinity)):
            column = nodes.labels.column(key)
            rejected = rejections[key] = np.zeros(len(column.values), np.int64)
            if key in existing_anti:
                rejected[existing_anti[key] > 0] = _EXISTING_ANTI
            if key in anti:
                rejected[anti[key] > 0] = _ANTI
            if key in affinity and not is_first:
                rejected[affinity[key] <= 0] = _AFFINITY
            rejected[ABSENT] = _AFFINITY if key in affinity and column.labelled < nodes.count else 0
            if not rejected.any():
                del rejections[key]
        return FilterState(terms, affinity, anti, existing_anti, rejections)

    def _scope(self, term: Term) -> Scope:
        """Return the scope of a term of the pod to be scheduled."""
        selector = term.namespace_selector
        if selector is None:
            return Scope(term.namespaces, term.selector)
        if selector.is_everything:
            return Scope(None, term.selector)
        return Scope(term.namespaces | self._namespaces_selected_by(selector), term.selector)

    def _namespaces_selected_by(self, selector: Selector) -> frozenset[str]:
        version = self._cluster.listed_version
        known = self._selected_namespaces.get(selector)
        if known is not None and known[0] == version:
            return known[1]
        if len(self._selected_namespaces) >= _MAX_NAMESPACE_SELECTORS:
            self._selected_namespaces.clear()
        names = frozenset(
            namespace.metadata.name
            for namespace in self._cluster.listers.namespaces
            if selector.matches(namespace.metadata.labels)
        )
        self._selected_namespaces[selector] = (version, names)
        return names

    def counted_rows(self, state: FilterState, pod: PodInfo) -> BoolArray:
        required, size = state.required, self._cluster.nodes.size
        scopes = [(scope,) for scope, _ in required.anti] + ([required.affinity] if required.affinity else [])
        counted: BoolArray = np.zeros(size, np.bool_)
        for scope in scopes:
            counted |= self._cluster.matches.count(PodQuery(scope, skip_terminating=False)).by_row(size) > 0
        for carried, counts in self._cluster.carried.matching(pod, required.namespace_labels):
            if carried.kind is TermKind.REQUIRED_ANTI:
                counted |= counts.by_row(size) > 0
        return counted

    def with_changes(self, state: FilterState, pod: PodInfo, changes: Sequence[Change]) -> FilterState:
        required = state.required
        affinity, anti, existing_anti = _Shifts(self._cluster), _Shifts(self._cluster), _Shifts(self._cluster)
        for change in changes:
            other = change.pod
            if required.matches_affinity(other):
                for key in required.affinity_keys:
                    affinity.add(key, change)
            for scope, key in required.anti:
                if scope.covers(other.namespace, other.labels):
                    anti.add(key, change)
            for term in other.terms.required_anti:
                if term.matches(pod.namespace, pod.labels, required.namespace_labels):
                    existing_anti.add(term.topology_key, change)
        if not (affinity.amounts or anti.amounts or existing_anti.amounts):
            return state
        return self._shifted(state, pod, affinity, anti, existing_anti)

    def _shifted(
        self, state: FilterState, pod: PodInfo, affinity: "_Shifts", anti: "_Shifts", existing_anti: "_Shifts"
    ) -> FilterState:
        """Return the state with shifted counts. The same shifts return the same object, because changes on one node
        often equal those on others."""
        if self._shifts_of is not state or len(self._known_shifts) >= _MAX_SHIFTED_STATES:
            self._shifts_of, self._known_shifts = state, {}
        key = (affinity.key, anti.key, existing_anti.key)
        found = self._known_shifts.get(key)
        if found is None:
            found = self._known_shifts[key] = self._state(
                pod,
                state.required,
                affinity.applied_to(state.affinity),
                anti.applied_to(state.anti),
                existing_anti.applied_to(state.existing_anti),
            )
        return found

    def filter_rows(self, state: FilterState, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        kinds: IntArray | None = None
        for key, rejections in state.rejections.items():
            rejected = rejections[view.label_ids(key)[rows]]
            kinds = rejected if kinds is None else np.maximum(kinds, rejected)
        return None if kinds is None else Rejections(kinds, _REASONS.__getitem__)

    # Score

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> ScoreState | Skip:
        terms = pod.terms
        if self._args.ignorePreferredTermsOfExistingPods and not (terms.preferred or terms.preferred_anti):
            return SKIP
        scores: ScoreState = {}
        for sign, weighted_terms in ((1, terms.preferred), (-1, terms.preferred_anti)):
            for term, weight in weighted_terms:
                counts = self._cluster.matches.count(PodQuery((self._scope(term),), skip_terminating=False))
                _add_scores(scores, term.topology_key, counts, sign * weight)
        namespace_labels = self._cluster.listers.namespace_labels(pod.namespace)
        for carried, counts in self._cluster.carried.matching(pod, namespace_labels):
            carried_weight = self._weight(carried)
            if carried_weight is not None:
                _add_scores(scores, carried.term.topology_key, counts, carried_weight)
        return scores or SKIP

    def _weight(self, carried: CarriedTerm) -> int | None:
        """Return the weight of a term of a pod that has a node; None if the term is not scored."""
        if carried.kind is TermKind.PREFERRED:
            return carried.weight
        if carried.kind is TermKind.PREFERRED_ANTI:
            return -carried.weight
        if carried.kind is TermKind.REQUIRED:
            return self._args.hardPodAffinityWeight or None
        return None

    def score_rows(self, state: ScoreState, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        scores: IntArray | None = None
        for key, by_domain in state.items():
            on_rows = by_domain[view.label_ids(key)[rows]]
            scores = on_rows if scores is None else scores + on_rows
        assert scores is not None
        return scores

    def normalize(self, state: ScoreState, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray) -> IntArray:
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros(len(scores), np.int64)
        return (MAX_SCORE * ((scores - lowest) / (highest - lowest))).astype(np.int64)


class _Shifts:
    """Changes of the pod counts, by topology key and domain."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.amounts: dict[tuple[str, int], int] = {}

    def add(self, key: str, change: Change) -> None:
        domain = int(self._cluster.nodes.labels.column(key).ids[change.row])
        if domain != ABSENT:
            self.amounts[key, domain] = self.amounts.get((key, domain), 0) + (1 if change.added else -1)

    @property
    def key(self) -> Hashable:
        """A cache key, equal for equal changes."""
        return frozenset(self.amounts.items())

    def applied_to(self, counts: CountsByKey) -> CountsByKey:
        shifted = dict(counts)
        for key in {key for key, _ in self.amounts}:
            size = len(self._cluster.nodes.labels.column(key).values)
            shifted[key] = counts[key].copy() if key in counts else np.zeros(size, np.int32)
        for (key, domain), amount in self.amounts.items():
            shifted[key][domain] += amount
        return shifted


def _add_up(sums: CountsByKey, key: str, counts: RowCounts) -> None:
    known = sums.get(key)
    sums[key] = counts.by_domain(key) if known is None else known + counts.by_domain(key)


def _add_scores(scores: ScoreState, key: str, counts: RowCounts, weight: int) -> None:
    by_domain = counts.by_domain(key)
    if counts.total == by_domain[ABSENT]:
        return
    weighted: IntArray = np.multiply(by_domain, weight, dtype=np.int64)
    weighted[ABSENT] = 0
    known = scores.get(key)
    if known is None:
        scores[key] = weighted
    else:
        known += weighted


# When to retry. As in kube-scheduler, hints match namespaces by the names in a term, and evaluate its namespace
# selector on empty labels.


def _pod_changed(waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    terms = _terms_of(waiting)
    if old is not None and new is not None:
        matches_affinity_now = not _match_all(terms.required, old) and _match_all(terms.required, new)
        conflicts_no_longer = _match_any(terms.required_anti, old) and not _match_any(terms.required_anti, new)
        return matches_affinity_now or conflicts_no_longer
    if new is not None:
        return _match_all(terms.required, new)
    assert old is not None
    return _match_any(terms.required_anti, old) or _match_any(_terms_of(old).required_anti, waiting)


def _node_changed(waiting: Pod, old: Node | None, new: Node) -> bool:
    terms = _terms_of(waiting)
    after = new.metadata.labels
    if old is None:
        # For anti-affinity: the new node may be in a new domain, or in none.
        return bool(terms.required_anti) or any(term.topology_key in after for term in terms.required)
    before = old.metadata.labels
    joined = any(
        term.topology_key in after and before.get(term.topology_key) != after[term.topology_key]
        for term in terms.required
    )
    left = any(
        term.topology_key in before and before[term.topology_key] != after.get(term.topology_key)
        for term in terms.required_anti
    )
    return joined or left


def _terms_of(pod: Pod) -> AffinityTerms:
    return affinity_terms(pod.metadata.namespace, pod.spec.affinity)


def _match_all(terms: Sequence[Term], pod: Pod) -> bool:
    """Return whether a pod satisfies affinity terms."""
    meta = pod.metadata
    return bool(terms) and all(term.matches(meta.namespace, meta.labels, {}) for term in terms)


def _match_any(terms: Sequence[Term], pod: Pod) -> bool:
    """Return whether a pod violates anti-affinity terms."""
    meta = pod.metadata
    return any(term.matches(meta.namespace, meta.labels, {}) for term in terms)
