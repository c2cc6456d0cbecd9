"""PodTopologySpread: spreads selected pods evenly over the domains of a topology key.

Filter rejects domains in which one more pod would exceed the maximum skew relative to the domain with the fewest pods;
Score prefers domains with few pods. Verdicts and scores are computed per domain; each row takes those of its domain.
"""

import math
from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.scheduler.cluster.arrays import BoolArray, CountArray, FloatArray, IntArray, Rows
from kubestow.scheduler.cluster.counts import PodQuery, Scope
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.labels import ABSENT
from kubestow.scheduler.cluster.pods import PodInfo
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
from kubestow.scheduler.plugins.support.spread_constraints import HOSTNAME, Constraint, ConstraintReader
from kubestow.scheduler.plugins.support.spread_domains import Distributions, Domains

_LEAST_WITHOUT_DOMAINS = 2**31 - 1
_SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
_UNLABELLED = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


class _Spread(msgspec.Struct, frozen=True):
    """A hard constraint in one cycle."""

    constraint: Constraint
    domains: Domains
    included: BoolArray | None
    """By row, whether the node counts; None: all do."""
    rejections: IntArray | None
    """The kind of rejection by domain, 0 for none; None: no domain is rejected."""


HardState = tuple[_Spread, ...]

_Shift = dict[int, int]
"""The change in the number of counted pods, by domain."""


class _DomainScores(msgspec.Struct, frozen=True):
    key: str
    scores: FloatArray
    """Scores by label value id; 0 for nodes without the label."""


class _RowScores(msgspec.Struct, frozen=True):
    """The scores of a constraint over hostnames, where each node is a domain."""

    counts: CountArray
    weight: float
    base: int
    unlabelled: BoolArray | None
    """By row, whether the node lacks the hostname label; None: none does."""


class SoftState(msgspec.Struct, frozen=True):
    parts: tuple[_DomainScores | _RowScores, ...]
    whole: IntArray | None
    """The rounded scores by domain, if the only constraint is not over hostnames."""
    ignored: BoolArray | None
    """By row, whether the node lacks a required label and is not scored; None: none does."""


class PodTopologySpread:
    """Rejects nodes where a pod would exceed the maximum skew; prefers nodes that reduce the skew."""

    name = "PodTopologySpread"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._constraints = ConstraintReader(args, handle.features, handle.cluster)
        self._distributions = Distributions(handle.cluster, handle.features.taint_toleration_comparison_operators)
        self._shifts_of: HardState = ()
        self._known_shifts: dict[Hashable, HardState] = {}

    def sign(self, pod: PodInfo) -> Hashable | None:
        """Return a signature for pods without constraints only: they pass everywhere and are not scored."""
        is_unconstrained = not pod.pod.spec.topologySpreadConstraints and not (
            self._constraints.hard(pod.pod) or self._constraints.soft(pod.pod)
        )
        return "" if is_unconstrained else None

    # Filter

    def pre_filter(self, pod: PodInfo) -> HardState | Skip:
        constraints = self._constraints.hard(pod.pod)
        if not constraints:
            return SKIP
        inclusion = self._distributions.inclusion(pod, constraints, needs_every_key=True)
        spreads = []
        for number, constraint in enumerate(constraints):
            included = inclusion.rows(constraint)
            domains = self._distributions.by_domain(pod, constraint, included)
            rejections = self._rejections(pod, constraint, domains, _kind(len(constraints) - number))
            spreads.append(_Spread(constraint, domains, included, rejections))
        return tuple(spreads)

    def _rejections(self, pod: PodInfo, constraint: Constraint, domains: Domains, skewed: int) -> IntArray | None:
        number = domains.number
        least = 0 if number < constraint.min_domains else domains.least if number else _LEAST_WITHOUT_DOMAINS
        own = 1 if constraint.selector.matches(pod.labels) else 0
        rejections: IntArray = np.multiply(
            domains.counts > constraint.max_skew + least - own, skewed, dtype=np.int64, casting="unsafe"
        )
        nodes = self._cluster.nodes
        some_unlabelled = nodes.labels.column(constraint.key).labelled < nodes.count
        rejections[ABSENT] = skewed + 1 if some_unlabelled else 0
        return rejections if rejections.any() else None

    def counted_rows(self, state: HardState, pod: PodInfo) -> BoolArray:
        size, namespaces = self._cluster.nodes.size, frozenset((pod.namespace,))
        counted: BoolArray = np.zeros(size, np.bool_)
        for spread in state:
            question = PodQuery((Scope(namespaces, spread.constraint.selector),), skip_terminating=False)
            counted |= self._cluster.matches.count(question).by_row(size) > 0
        return counted

    def with_changes(self, state: HardState, pod: PodInfo, changes: Sequence[Change]) -> HardState:
        """Return the state after changes; as in kube-scheduler, they count pods that `pre_filter` ignores."""
        columns = [self._cluster.nodes.labels.column(spread.constraint.key).ids for spread in state]
        shifts = tuple(_Shift() for _ in state)
        for other, row, added in changes:
            if other.namespace != pod.namespace:
                continue
            matching = [n for n, spread in enumerate(state) if spread.constraint.selector.matches(other.labels)]
            if matching and all(ids[row] != ABSENT for ids in columns):
                for number in matching:
                    included, domain = state[number].included, int(columns[number][row])
                    if included is None or included[row]:
                        shifts[number][domain] = shifts[number].get(domain, 0) + (1 if added else -1)
        return self._shifted(state, pod, shifts) if any(shifts) else state

    def _shifted(self, state: HardState, pod: PodInfo, shifts: Sequence[_Shift]) -> HardState:
        """Return the state with shifted counts. The same shifts return the same object, because changes on one node
        often equal those on others."""
        if self._shifts_of is not state:
            self._shifts_of, self._known_shifts = state, {}
        key = tuple(tuple(sorted(shift.items())) for shift in shifts)
        found = self._known_shifts.get(key)
        if found is None:
            found = self._known_shifts[key] = tuple(
                self._shift(spread, pod, shift, _kind(len(state) - number)) if shift else spread
                for number, (spread, shift) in enumerate(zip(state, shifts, strict=True))
            )
        return found

    def _shift(self, spread: _Spread, pod: PodInfo, shift: _Shift, skewed: int) -> _Spread:
        counts = spread.domains.counts.copy()
        for domain, number in shift.items():
            counts[domain] += number
        domains = replace(spread.domains, counts=counts)
        return replace(spread, domains=domains, rejections=self._rejections(pod, spread.constraint, domains, skewed))

    def filter_rows(self, state: HardState, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        kinds: IntArray | None = None
        for spread in state:
            if spread.rejections is not None:
                rejected = spread.rejections[view.label_ids(spread.constraint.key)[rows]]
                kinds = rejected if kinds is None else np.maximum(kinds, rejected)
        return None if kinds is None else Rejections(kinds, _rejection_of)

    # Score

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> SoftState | Skip:
        constraints = self._constraints.soft(pod.pod)
        if not constraints:
            return SKIP
        needs_every_key = self._constraints.needs_every_key(pod.pod)
        ignored = self._unlabelled(view, constraints) if needs_every_key else None
        scored = rows if ignored is None else rows[~ignored[rows]]
        inclusion = self._distributions.inclusion(pod, constraints, needs_every_key=needs_every_key)
        parts: list[_DomainScores | _RowScores] = []
        for constraint in constraints:
            if constraint.key == HOSTNAME:
                parts.append(self._row_scores(pod, constraint, view, len(scored)))
            else:
                domains = self._distributions.by_domain(pod, constraint, inclusion.rows(constraint))
                parts.append(self._domain_scores(constraint, domains, view, scored, needs_every_key=needs_every_key))
        only = parts[0]
        whole = _rounded(only.scores) if len(parts) == 1 and isinstance(only, _DomainScores) else None
        return SoftState(tuple(parts), whole, ignored)

    def _unlabelled(self, view: NodeView, constraints: Sequence[Constraint]) -> BoolArray | None:
        """Return by row whether the node lacks one of the labels; None if no node does."""
        nodes = self._cluster.nodes
        unlabelled: BoolArray | None = None
        for key in {constraint.key for constraint in constraints}:
            if nodes.labels.column(key).labelled < nodes.count:
                lacking = view.label_ids(key)[: view.size] == ABSENT
                unlabelled = lacking if unlabelled is None else unlabelled | lacking
        return unlabelled

    def _row_scores(self, pod: PodInfo, constraint: Constraint, view: NodeView, scored: int) -> _RowScores:
        nodes = self._cluster.nodes
        counts = self._distributions.matching(pod, constraint)
        by_row: CountArray = np.zeros(nodes.size, np.int32) if counts is None else counts.by_row(nodes.size)
        if view is not nodes:
            by_row = by_row[view.source_rows()]
        return _RowScores(by_row, _weight(scored), constraint.max_skew - 1, self._unlabelled(view, (constraint,)))

    def _domain_scores(
        self, constraint: Constraint, domains: Domains, view: NodeView, scored: IntArray, *, needs_every_key: bool
    ) -> _DomainScores:
        nodes = self._cluster.nodes
        column = nodes.labels.column(constraint.key)
        counts = domains.counts
        empty = column.id_of.get("", ABSENT)
        if empty != ABSENT and not needs_every_key:
            # Nodes without the label and nodes with an empty value are in the same domain.
            counts = counts.copy()
            counts[empty] += counts[ABSENT]
        if len(scored) == nodes.count:
            size = len(column.id_of)
            if column.labelled < nodes.count and empty == ABSENT:
                size += 1
        else:
            seen: BoolArray = np.zeros(len(column.values), np.bool_)
            seen[view.label_ids(constraint.key)[scored]] = True
            size = int(np.count_nonzero(seen))
            if empty != ABSENT and seen[empty] and seen[ABSENT]:
                size -= 1
        scores = _weighted(counts, _weight(size), constraint.max_skew - 1)
        scores[ABSENT] = 0
        return _DomainScores(constraint.key, scores)

    def score_rows(self, state: SoftState, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        if state.whole is not None:
            only = state.parts[0]
            assert isinstance(only, _DomainScores)
            scores = state.whole[view.label_ids(only.key)[rows]]
        else:
            total = _scores_of(state.parts[0], view, rows)
            for part in state.parts[1:]:
                total += _scores_of(part, view, rows)
            scores = _rounded(total)
        if state.ignored is not None:
            scores[state.ignored[rows]] = 0
        return scores

    def normalize(self, state: SoftState, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray) -> IntArray:
        ignored = None if state.ignored is None else state.ignored[rows]
        counted = scores if ignored is None else scores[~ignored]
        highest = max(int(counted.max()), 0) if len(counted) else 0
        if highest == 0:
            normalized: IntArray = np.full(len(scores), MAX_SCORE, np.int64)
        else:
            normalized = MAX_SCORE * (highest + int(counted.min()) - scores) // highest
        if ignored is not None:
            normalized[ignored] = 0
        return normalized

    # When to retry

    def requeue_on(self) -> Sequence[Registration]:
        pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        own_actions = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        node_actions = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return [
            on(Resource.ASSIGNED_POD, pod_actions, self._is_affected_by_pod, alike=True),
            on(Resource.TARGET_POD, own_actions, self._has_changed),
            on(Resource.NODE, node_actions, self._is_affected_by_node, alike=True),
        ]

    def _is_affected_by_pod(self, waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
        seen = new or old
        assert seen is not None
        if seen.metadata.namespace != waiting.metadata.namespace:
            return False
        constraints = self._constraints.hard(waiting)
        if old is not None and new is not None:
            return _counts_changed(old, new, constraints)
        return any(c.selector.matches(seen.metadata.labels) for c in constraints)

    def _has_changed(self, waiting: Pod, old: Pod, new: Pod) -> bool:
        constraints = self._constraints.hard(waiting)
        if old.spec.tolerations != new.spec.tolerations and any(c.honors_taints for c in constraints):
            return True
        return _counts_changed(old, new, constraints)

    def _is_affected_by_node(self, waiting: Pod, old: Node | None, new: Node | None) -> bool:
        constraints = self._constraints.hard(waiting)
        was_member = old is not None and _has_every_key(old, constraints)
        is_member = new is not None and _has_every_key(new, constraints)
        if old is None or new is None:
            return was_member or is_member
        if was_member != is_member:
            return True
        return is_member and (_moved(old, new, constraints) or old.spec.taints != new.spec.taints)


def _kind(rank: int) -> int:
    """Return the kind of rejection for too much skew; the next number is for a missing label. The first constraint has
    the highest rank, so that the largest number is the rejection to report."""
    return 2 * rank


def _rejection_of(kind: int) -> Rejection:
    return _UNLABELLED if kind % 2 else _SKEWED


def _weight(domains: int) -> float:
    """Return the weight that compensates for the smaller counts of topologies with many domains."""
    return math.log(domains + 2)


def _weighted(counts: CountArray, weight: float, base: int) -> FloatArray:
    scores: FloatArray = np.multiply(counts, weight, dtype=np.float64)
    scores += base
    return scores


def _scores_of(part: _DomainScores | _RowScores, view: NodeView, rows: Rows) -> FloatArray:
    if isinstance(part, _DomainScores):
        return part.scores[view.label_ids(part.key)[rows]]
    scores = _weighted(part.counts[rows], part.weight, part.base)
    if part.unlabelled is not None:
        scores[part.unlabelled[rows]] = 0
    return scores


def _rounded(scores: FloatArray) -> IntArray:
    """Round to the nearest integer, halves up."""
    whole = np.floor(scores)
    whole += scores - whole >= 0.5
    return whole.astype(np.int64)


def _counts_changed(old: Pod, new: Pod, constraints: Sequence[Constraint]) -> bool:
    """Return whether an update of a pod's labels changes which of the constraints count it."""
    before, after = old.metadata.labels, new.metadata.labels
    return any(c.selector.matches(before) != c.selector.matches(after) for c in constraints)


def _has_every_key(node: Node, constraints: Sequence[Constraint]) -> bool:
    return all(constraint.key in node.metadata.labels for constraint in constraints)


def _moved(old: Node, new: Node, constraints: Sequence[Constraint]) -> bool:
    """Return whether a node changed its domain for one of the constraints."""
    before, after = old.metadata.labels, new.metadata.labels
    return any(before.get(constraint.key, "") != after.get(constraint.key, "") for constraint in constraints)
