"""NodeResourcesFit: rejects nodes without the free resources that a pod requests; scores nodes by utilization."""

from collections import Counter
from collections.abc import Container, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.api.devices import DeviceClass
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.requests import (
    PODS,
    RequestRules,
    is_extended_resource,
    is_scalar_resource,
    pod_requests,
    resize_is_deferred,
    resource_amounts,
)
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, is_any_set
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.nodes import MEMORY
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import PlacedPods, TriedGroup
from kubestow.scheduler.framework.plugin import PodsRead, RowsOfPods
from kubestow.scheduler.framework.results import MAX_SCORE, Code, Rejection, Rejections
from kubestow.scheduler.plugins.support.allocation_strategies import least_allocated, strategy_of
from kubestow.scheduler.plugins.support.device_counts import DeviceCounts
from kubestow.scheduler.plugins.support.resource_shares import (
    JoinedResources,
    ScoredResources,
    join_scored,
    scored_of,
    shares,
)

_TOO_MANY_PODS = 1
_FIRST_RESOURCE_BIT = 1
_NEVER_FITS = 1 << 62
"""Set if the node is too small for the pod even when empty."""


class State(NamedTuple):
    """The amounts that must fit, in the order of the bits of a rejection's kind."""

    amounts: Sequence[tuple[str, int | IntArray]]
    """(resource, amount) pairs; for several pods, the amounts are arrays by row."""
    by_devices: Container[str] = ()
    """Extended resources backed by devices: a node without an own amount of them may still provide them."""
    totals: Sequence[int] = ()
    """For a pod on its node, whose `amounts` are what it lacks there: its requests, in the same order."""


class NodeResourcesFit:
    """Rejects nodes without enough free resources; scores by the configured strategy."""

    name = "NodeResourcesFit"
    reads_pods = PodsRead.SUMS

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        features = handle.features
        self._ignored = frozenset(args.ignoredResources)
        self._ignored_groups = frozenset(args.ignoredResourceGroups)
        self._strategy = strategy_of(args.scoringStrategy)
        self._scored = tuple((spec.name, spec.weight) for spec in args.scoringStrategy.resources)
        self._rules = RequestRules(status=False, pod_level=features.pod_level_resources)
        self._resizing = features.in_place_pod_vertical_scaling
        self._pod_level_resizing = features.in_place_pod_level_resources_vertical_scaling
        self._devices_back_resources = features.dra_extended_resource
        self._preempting_for_resizes = features.in_place_pod_vertical_scaling_scheduler_preemption
        self._cluster = handle.cluster
        self._devices = handle.cluster.devices
        self._nodes = handle.cluster.nodes
        self._counts = DeviceCounts(self._devices)

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if self._counts.are_requested_by(pod) else pod.requests_signature

    def pre_filter(self, pod: PodInfo) -> State:
        amounts = pod.requests_by(self._rules).amounts
        if self._ignored or self._ignored_groups:
            amounts = {name: amount for name, amount in amounts.items() if not self._is_ignored(name)}
        wanted = [(name, amount) for name, amount in amounts.items() if amount > 0]
        # DynamicResources allocates device-backed resources on nodes that have no own amount of them.
        by_devices = self._devices.classes
        is_on_node = self._preempting_for_resizes and pod.pod.spec.nodeName
        placed = self._cluster.pod(pod.uid) if is_on_node else None
        if placed is None:
            return State(wanted, by_devices)
        held = placed.requests.amounts
        lacking = [(name, max(0, amount - held.get(name, 0))) for name, amount in wanted]
        return State(lacking, by_devices, [amount for _, amount in wanted])

    def join_states(self, states: Sequence[State], rows: RowsOfPods) -> State | None:
        names = [name for name, _ in states[0].amounts]
        if any([name for name, _ in state.amounts] != names for state in states):
            return None
        by_name = zip(names, zip(*(state.amounts for state in states), strict=True), strict=True)
        return State([(name, rows.spread([int(amount) for _, amount in same])) for name, same in by_name])

    def _is_ignored(self, resource: str) -> bool:
        return is_extended_resource(resource) and (
            resource in self._ignored or resource.split("/", 1)[0] in self._ignored_groups
        )

    def filter_rows(self, state: State | None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        amounts, by_devices, totals = state or self.pre_filter(pod)
        is_full: BoolArray = view.pod_count[rows] >= view.allowed_pods[rows]
        # Usually no row is rejected, so the array of kinds is created only when needed.
        kinds = is_full.astype(np.int64) if is_any_set(is_full) else None
        for bit, (resource, amount) in enumerate(amounts, _FIRST_RESOURCE_BIT):
            column = view.resource_index.get(resource)
            if column is None or column >= len(view.allocatable):
                if resource in by_devices:
                    continue
                capacity: IntArray = np.zeros(len(is_full), np.int64)
                lacks: BoolArray = np.ones(len(is_full), np.bool_)
            else:
                capacity = view.allocatable[column][rows]
                lacks = capacity - view.requested[column][rows] < amount
                if resource in by_devices:
                    lacks &= capacity > 0
            if is_any_set(lacks):
                if kinds is None:
                    kinds = np.zeros(len(is_full), np.int64)
                kinds[lacks] |= 1 << bit
                kinds[lacks & (capacity < (totals[bit - 1] if totals else amount))] |= _NEVER_FITS
        return None if kinds is None else Rejections(kinds, lambda kind: _rejection_of(kind, amounts))

    def passing_rows(self, state: State, pod: PodInfo, view: NodeView, rows: Rows) -> BoolArray:
        """Return by row whether the pod fits, without computing reasons."""
        passing: BoolArray = view.pod_count[rows] < view.allowed_pods[rows]
        for name, amount in state.amounts:
            column = view.resource_index.get(name)
            if column is None or column >= len(view.allocatable):
                if name not in state.by_devices:
                    return np.zeros(len(passing), np.bool_)
                continue
            capacity = view.allocatable[column][rows]
            fits = capacity - view.requested[column][rows] >= amount
            passing &= fits | (capacity == 0) if name in state.by_devices else fits
        return passing

    def row_rejection(self, state: State, view: NodeView, row: int) -> Rejection | None:
        """Return why one row is rejected, None if the pod fits; computed with Python numbers."""
        index, offered, width = view.resource_index, view.allocatable.item, len(view.allocatable)
        requested = view.requested.item
        kind, bit = int(view.pod_count.item(row) >= view.allowed_pods.item(row)), 1 << _FIRST_RESOURCE_BIT
        for name, amount in state.amounts:
            column = index.get(name, width)
            capacity = offered(column, row) if column < width else 0
            if capacity < amount:
                if capacity or name not in state.by_devices:
                    kind |= bit | _NEVER_FITS
            elif capacity - requested(column, row) < amount:
                kind |= bit
            bit <<= 1
        return _rejection_of(kind, state.amounts) if kind else None

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> ScoredResources:
        return scored_of(pod, self._scored)

    def join_score_states(self, states: Sequence[ScoredResources], rows: RowsOfPods) -> JoinedResources | None:
        return join_scored(states, rows)

    def score_rows(
        self, state: ScoredResources | JoinedResources | None, pod: PodInfo, view: NodeView, rows: Rows
    ) -> IntArray:
        if state is None:
            state = scored_of(pod, self._scored)
        return self._strategy(shares(view, rows, state, non_zero=True, devices=self._counts))

    def row_score(self, state: ScoredResources | None, view: NodeView, row: int) -> int | None:
        """Return the score of one row, computed with Python numbers; None for other strategies than LeastAllocated."""
        if state is None or self._strategy is not least_allocated:
            return None
        index, offered = view.resource_index, view.allocatable.item
        total = weights = 0
        for name, weight, wanted in state:
            column = index.get(name)
            if column is None or (not wanted and is_scalar_resource(name)):
                continue
            capacity = offered(column, row)
            if capacity:
                free = capacity - wanted - (view.non_zero if column <= MEMORY else view.requested).item(column, row)
                if free > 0:
                    total += weight * (free * MAX_SCORE // capacity)
                weights += weight
        return total // weights if weights else 0

    def copies_rows(self, state: State, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        """Return the number of copies of the pod that fit on each row."""
        copies: IntArray = view.allowed_pods[rows] - view.pod_count[rows]
        for name, amount in state.amounts:
            column = view.resource_index.get(name)
            if column is None or column >= len(view.allocatable):
                return np.zeros(len(copies), np.int64)
            np.minimum(copies, (view.allocatable[column][rows] - view.requested[column][rows]) // amount, out=copies)
        return np.maximum(copies, 0)

    # Pod groups

    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> IntArray:
        """Score placements by the utilization of their nodes taken together: higher is better."""
        nodes = self._nodes
        starts = np.cumsum([0, *(len(placed.placement.rows) for placed in candidates)])[:-1]
        rows = np.concatenate([placed.placement.rows for placed in candidates])
        scores = weights = np.zeros(len(candidates), np.int64)
        wanted = [_total(placed.pods, self._scored) for placed in candidates]
        for number, (name, weight) in enumerate(self._scored):
            column = nodes.resource_index.get(name)
            if column is None or column >= len(nodes.allocatable):
                continue
            held = nodes.non_zero if column < len(nodes.non_zero) else nodes.requested
            adds: IntArray = np.array([amounts[number] for amounts in wanted])
            capacity = np.add.reduceat(nodes.allocatable[column][rows], starts)
            if is_scalar_resource(name):
                capacity[adds == 0] = 0
            total = np.minimum(np.add.reduceat(held[column][rows], starts) + adds, capacity)
            scores = scores + weight * (total * MAX_SCORE // np.maximum(capacity, 1))
            weights = weights + weight * (capacity > 0)
        return scores // np.maximum(weights, 1)

    # When to retry

    def requeue_on(self) -> Sequence[Registration]:
        registrations = [
            on(Resource.ASSIGNED_POD, Action.DELETE, self._is_from_same_node if self._preempting_for_resizes else None),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._fits_now, alike=True),
        ]
        if self._devices_back_resources:
            registrations.append(
                on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, self._backs_requested_resource, alike=True)
            )
        if self._resizing:
            registrations.append(on(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, self._frees_resources))
            registrations.append(on(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN))
        if self._preempting_for_resizes:
            registrations.append(on(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_UP, self._competes))
            registrations.append(on(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_UP, self._is_resized))
        return registrations

    # A waiting pod with a node waits for the capacity of a resize, so other nodes are of no use to it.

    def _is_from_same_node(self, waiting: Pod, old: Pod, _new: None) -> bool:
        return waiting.spec.nodeName in ("", old.spec.nodeName)

    def _competes(self, waiting: Pod, _old: Pod, new: Pod) -> bool:
        return resize_is_deferred(waiting) and waiting.spec.nodeName == new.spec.nodeName

    def _is_resized(self, waiting: Pod, _old: Pod, _new: Pod) -> bool:
        return resize_is_deferred(waiting)

    def _frees_resources(self, waiting: Pod, old: Pod, new: Pod) -> bool:
        if waiting.spec.nodeName not in ("", new.spec.nodeName):
            return False
        rules = RequestRules(status=self._resizing, pod_level_status=self._pod_level_resizing)
        before, after = pod_requests(old, rules).amounts, pod_requests(new, rules).amounts
        return any(
            amount > 0 and before.get(name, 0) > after.get(name, 0)
            for name, amount in pod_requests(waiting, rules).amounts.items()
        )

    def _fits_now(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        if waiting.spec.nodeName not in ("", new.metadata.name):
            return False
        requests = pod_requests(waiting, self._rules).amounts
        offers = resource_amounts(new.status.allocatable)
        by_devices = {name for name in requests if name in self._devices.classes and not offers.get(name, 0)}
        wanted = {name: amount for name, amount in requests.items() if amount and name not in by_devices}
        if offers.get(PODS, 0) < 1 or any(offers.get(name, 0) < amount for name, amount in wanted.items()):
            return False
        if old is None or by_devices:
            return True
        offered = resource_amounts(old.status.allocatable)
        return offers.get(PODS, 0) > offered.get(PODS, 0) or any(
            offers.get(name, 0) > offered.get(name, 0) for name in wanted
        )

    def _backs_requested_resource(self, waiting: Pod, old: DeviceClass | None, new: DeviceClass) -> bool:
        requests = pod_requests(waiting, RequestRules(status=False)).amounts
        if old is None:
            if f"deviceclass.resource.kubernetes.io/{new.metadata.name}" in requests:
                return True
        elif (old.spec.extendedResourceName or "") == (new.spec.extendedResourceName or ""):
            return False
        return new.spec.extendedResourceName is not None and new.spec.extendedResourceName in requests


def _total(pods: Sequence[PodInfo], resources: Sequence[tuple[str, int]]) -> list[int]:
    """Return the sum of the pods' requests by resource; equal pods are evaluated once."""
    counts = Counter(pod.requests_signature for pod in pods)
    first = {pod.requests_signature: pod for pod in reversed(pods)}
    totals = [0] * len(resources)
    for signature, count in counts.items():
        same = [pod for pod in pods if pod.requests_signature is None] if signature is None else [first[signature]]
        for pod in same:
            for number, (_, _, wanted) in enumerate(scored_of(pod, resources)):
                totals[number] += wanted if signature is None else wanted * count
    return totals


def _rejection_of(kind: int, amounts: Sequence[tuple[str, int | IntArray]]) -> Rejection:
    reasons = ["Too many pods"] if kind & _TOO_MANY_PODS else []
    reasons += [
        f"Insufficient {resource}"
        for bit, (resource, _) in enumerate(amounts, _FIRST_RESOURCE_BIT)
        if kind & (1 << bit)
    ]
    return Rejection(tuple(reasons), Code.UNRESOLVABLE if kind & _NEVER_FITS else Code.UNSCHEDULABLE)
