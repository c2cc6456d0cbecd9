"""InterPodAffinity: places pods near the pods they want to be with, and away from those they do not.

Filter honours required terms: the pod's own, and the anti-affinity of pods that are already placed. Score adds up
preferred terms, the pod's own and those of placed pods. Both are found per topology domain; rows take those of their
domain.
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
from kubestow.scheduler.cluster.counts import Question, RowCounts, Scope
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
"""What a node is refused for: the largest of those that apply."""

_WORDS = {
    _EXISTING_ANTI: unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
    _ANTI: unschedulable("node(s) didn't match pod anti-affinity rules"),
    _AFFINITY: unresolvable("node(s) didn't match pod affinity rules"),
}

_MOST_NAMESPACE_SELECTORS = 1_000
_MOST_SHIFTS = 64
"""Each may be as large as the cluster has nodes."""

CountsByKey = dict[str, CountArray]
"""Pods by label value id, for each topology key."""


class Demands(msgspec.Struct, frozen=True):
    """What a pod's required terms are about, and its namespace's labels."""

    near: tuple[Scope, ...]
    """Pods to be with: those in every one of these."""
    near_keys: tuple[str, ...]
    away: tuple[tuple[Scope, str], ...]
    """Pods to be away from, each with the topology key."""
    namespace_labels: Mapping[str, str]

    def are_near(self, pod: PodInfo) -> bool:
        """Whether a pod is one to be with."""
        return bool(self.near) and all(scope.covers(pod.namespace, pod.labels) for scope in self.near)


class FilterState(msgspec.Struct, frozen=True):
    demands: Demands
    near: CountsByKey
    away: CountsByKey
    objecting: CountsByKey
    """Placed pods that want to be away from this one."""
    refusals: dict[str, IntArray]
    """By topology key, what the filter says of each domain."""


ScoreState = dict[str, IntArray]
"""Scores by label value id, for each topology key."""


class InterPodAffinity:
    """Refuses nodes that break required affinity or anti-affinity; scores by preferred."""

    name = "InterPodAffinity"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._args = args
        self._cluster = handle.cluster
        self._selected_namespaces: dict[Selector, tuple[int, frozenset[str]]] = {}
        self._shifts_of: FilterState | None = None
        self._known_shifts: dict[Hashable, FilterState] = {}

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, _pod_changed, alike=True),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _node_changed, alike=True),
        ]

    def sign(self, pod: PodInfo) -> Hashable | None:
        """Of a pod without terms there is nothing to say, unless a placed pod has one about it."""
        affinity = pod.pod.spec.affinity
        if affinity is not None and (affinity.podAffinity is not None or affinity.podAntiAffinity is not None):
            return None
        namespace_labels = self._cluster.listers.namespace_labels(pod.namespace)
        return "" if next(self._cluster.carried.about(pod, namespace_labels), None) is None else None

    # Filter

    def pre_filter(self, pod: PodInfo) -> FilterState | Skip | Rejection:
        try:
            terms = pod.terms
        except SelectorError as error:
            return unresolvable(f"parsing pod: {error}")
        namespace_labels = self._cluster.listers.namespace_labels(pod.namespace)
        objecting: CountsByKey = {}
        for carried, counts in self._cluster.carried.about(pod, namespace_labels):
            if carried.kind is TermKind.REQUIRED_ANTI:
                _add_up(objecting, carried.term.topology_key, counts)
        if not terms.required and not terms.required_anti and not any(c[1:].any() for c in objecting.values()):
            return SKIP
        demands = Demands(
            near=tuple(self._scope(term) for term in terms.required),
            near_keys=tuple(dict.fromkeys(term.topology_key for term in terms.required)),
            away=tuple((self._scope(term), term.topology_key) for term in terms.required_anti),
            namespace_labels=namespace_labels,
        )
        near: CountsByKey = {}
        if demands.near:
            counts = self._cluster.matches.ask(Question(demands.near, skip_terminating=False))
            near = {key: counts.by_domain(key) for key in demands.near_keys}
        away: CountsByKey = {}
        for scope, key in demands.away:
            _add_up(away, key, self._cluster.matches.ask(Question((scope,), skip_terminating=False)))
        return self._state(pod, demands, near, away, objecting)

    def _state(
        self, pod: PodInfo, demands: Demands, near: CountsByKey, away: CountsByKey, objecting: CountsByKey
    ) -> FilterState:
        # The first of a group of pods that want to be together may go anywhere.
        is_first = not any(counts[1:].any() for counts in near.values()) and demands.are_near(pod)
        nodes = self._cluster.nodes
        refusals: dict[str, IntArray] = {}
        for key in dict.fromkeys((*objecting, *away, *near)):
            column = nodes.labels.column(key)
            refused = refusals[key] = np.zeros(len(column.values), np.int64)
            if key in objecting:
                refused[objecting[key] > 0] = _EXISTING_ANTI
            if key in away:
                refused[away[key] > 0] = _ANTI
            if key in near and not is_first:
                refused[near[key] <= 0] = _AFFINITY
            refused[ABSENT] = _AFFINITY if key in near and column.labelled < nodes.count else 0
            if not refused.any():
                del refusals[key]
        return FilterState(demands, near, away, objecting, refusals)

    def _scope(self, term: Term) -> Scope:
        """The pods that a term of the pod to be scheduled is about."""
        selector = term.namespace_selector
        if selector is None:
            return Scope(term.namespaces, term.selector)
        if selector.matches({}):
            # kube-scheduler resolves the selector to names, and then still tries it on empty labels.
            return Scope(None, term.selector)
        return Scope(term.namespaces | self._namespaces_selected_by(selector), term.selector)

    def _namespaces_selected_by(self, selector: Selector) -> frozenset[str]:
        version = self._cluster.listed_version
        known = self._selected_namespaces.get(selector)
        if known is not None and known[0] == version:
            return known[1]
        if len(self._selected_namespaces) >= _MOST_NAMESPACE_SELECTORS:
            self._selected_namespaces.clear()
        names = frozenset(
            namespace.metadata.name
            for namespace in self._cluster.listers.namespaces
            if selector.matches(namespace.metadata.labels)
        )
        self._selected_namespaces[selector] = (version, names)
        return names

    def counted_rows(self, state: FilterState, pod: PodInfo) -> BoolArray:
        demands, size = state.demands, self._cluster.nodes.size
        scopes = [(scope,) for scope, _ in demands.away] + ([demands.near] if demands.near else [])
        counted: BoolArray = np.zeros(size, np.bool_)
        for scope in scopes:
            counted |= self._cluster.matches.ask(Question(scope, skip_terminating=False)).by_row(size) > 0
        for carried, counts in self._cluster.carried.about(pod, demands.namespace_labels):
            if carried.kind is TermKind.REQUIRED_ANTI:
                counted |= counts.by_row(size) > 0
        return counted

    def with_changes(self, state: FilterState, pod: PodInfo, changes: Sequence[Change]) -> FilterState:
        demands = state.demands
        near, away, objecting = _Shifts(self._cluster), _Shifts(self._cluster), _Shifts(self._cluster)
        for change in changes:
            other = change.pod
            if demands.are_near(other):
                for key in demands.near_keys:
                    near.add(key, change)
            for scope, key in demands.away:
                if scope.covers(other.namespace, other.labels):
                    away.add(key, change)
            for term in other.terms.required_anti:
                if term.matches(pod.namespace, pod.labels, demands.namespace_labels):
                    objecting.add(term.topology_key, change)
        if not (near.amounts or away.amounts or objecting.amounts):
            return state
        return self._shifted(state, pod, near, away, objecting)

    def _shifted(
        self, state: FilterState, pod: PodInfo, near: "_Shifts", away: "_Shifts", objecting: "_Shifts"
    ) -> FilterState:
        """A state with other counts; the very same for the same shifts, as what happens on one node is often like what
        happens on others."""
        if self._shifts_of is not state or len(self._known_shifts) >= _MOST_SHIFTS:
            self._shifts_of, self._known_shifts = state, {}
        key = (near.key, away.key, objecting.key)
        found = self._known_shifts.get(key)
        if found is None:
            found = self._known_shifts[key] = self._state(
                pod,
                state.demands,
                near.applied_to(state.near),
                away.applied_to(state.away),
                objecting.applied_to(state.objecting),
            )
        return found

    def filter_rows(self, state: FilterState, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        kinds: IntArray | None = None
        for key, refusals in state.refusals.items():
            refused = refusals[view.label_ids(key)[rows]]
            kinds = refused if kinds is None else np.maximum(kinds, refused)
        return None if kinds is None else Rejections(kinds, _WORDS.__getitem__)

    # Score

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> ScoreState | Skip:
        terms = pod.terms
        if self._args.ignorePreferredTermsOfExistingPods and not (terms.preferred or terms.preferred_anti):
            return SKIP
        scores: ScoreState = {}
        for sign, weighted_terms in ((1, terms.preferred), (-1, terms.preferred_anti)):
            for term, weight in weighted_terms:
                counts = self._cluster.matches.ask(Question((self._scope(term),), skip_terminating=False))
                _add_scores(scores, term.topology_key, counts, sign * weight)
        namespace_labels = self._cluster.listers.namespace_labels(pod.namespace)
        for carried, counts in self._cluster.carried.about(pod, namespace_labels):
            carried_weight = self._weight(carried)
            if carried_weight is not None:
                _add_scores(scores, carried.term.topology_key, counts, carried_weight)
        return scores or SKIP

    def _weight(self, carried: CarriedTerm) -> int | None:
        """What a term of a placed pod is worth; None: nothing, and it is not looked at."""
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
    """Changes of counts by domain."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.amounts: dict[tuple[str, int], int] = {}

    def add(self, key: str, change: Change) -> None:
        domain = int(self._cluster.nodes.labels.column(key).ids[change.row])
        if domain != ABSENT:
            self.amounts[key, domain] = self.amounts.get((key, domain), 0) + (1 if change.added else -1)

    @property
    def key(self) -> Hashable:
        """Equal for equal changes."""
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
    worth: IntArray = np.multiply(by_domain, weight, dtype=np.int64)
    worth[ABSENT] = 0
    known = scores.get(key)
    if known is None:
        scores[key] = worth
    else:
        known += worth


# When to retry. As kube-scheduler does, hints judge namespaces by the names in a term; its namespace selector is tried
# on no labels.


def _pod_changed(waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    if old is not None and new is not None and new.metadata.uid == waiting.metadata.uid:
        # Its labels have changed: others may no longer object to it.
        return True
    if not all(pod.spec.nodeName or pod.status.nominatedNodeName for pod in (old, new) if pod is not None):
        return False
    terms = _terms_of(waiting)
    if old is not None and new is not None:
        came_near = not _match_all(terms.required, old) and _match_all(terms.required, new)
        went_away = _match_all(terms.required_anti, old) and not _match_all(terms.required_anti, new)
        return came_near or went_away
    if new is not None:
        return _match_all(terms.required, new)
    assert old is not None
    return _match_all(terms.required_anti, old) or _match_all(_terms_of(old).required_anti, waiting)


def _node_changed(waiting: Pod, old: Node | None, new: Node) -> bool:
    terms = _terms_of(waiting)
    after = new.metadata.labels
    if old is None:
        # Anti-affinity: the new node may be in a new domain, or in none.
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
    meta = pod.metadata
    return bool(terms) and all(term.matches(meta.namespace, meta.labels, {}) for term in terms)
