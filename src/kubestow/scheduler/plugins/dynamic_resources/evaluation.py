"""Verdicts and scores of rows for the claims of a pod.

With device-backed extended resources, the claims to allocate differ between rows: a resource of which a node has an own
amount needs no devices there. Rows that need the same claims are evaluated together.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from kubestow.api.devices import AllocationResult, ResourceClaim
from kubestow.api.node_selector import compile_node_selector
from kubestow.api.requests import is_extended_resource
from kubestow.scheduler.cluster.arrays import BoolArray, ByteArray, IntArray, Rows, are_all_zero
from kubestow.scheduler.cluster.devices import Devices
from kubestow.scheduler.cluster.devices.classes import CLASS_PREFIX
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.node_matching import node_terms_match
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.results import Code, FilterError, Rejection, Rejections, unresolvable
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError, AllocationTimeoutError
from kubestow.scheduler.plugins.dynamic_resources.extended import NodeClaim, node_claim
from kubestow.scheduler.plugins.dynamic_resources.shapes import (
    FAILED,
    FEASIBLE,
    INFEASIBLE,
    INVALID_POOLS,
    MAX_ALTERNATIVES,
    Allocator,
)
from kubestow.scheduler.plugins.dynamic_resources.state import Place, State

_NAME = "DynamicResources"

_NOT_AVAILABLE, _STALE_CLAIM, _CANNOT_FIT, _FIRST_FAILURE = range(FAILED, FAILED + 4)
"""Kinds of rejection, after those of the allocator counted from FEASIBLE."""
_REASONS = {
    INFEASIBLE - FEASIBLE: unresolvable("cannot allocate all claims"),
    INVALID_POOLS - FEASIBLE: unresolvable("invalid resource pools were encountered"),
    _NOT_AVAILABLE: unresolvable("resourceclaim not available on the node"),
    _STALE_CLAIM: unresolvable("cannot schedule extended resource claim"),
    _CANNOT_FIT: unresolvable("cannot fit resource"),
}


class Wanted(msgspec.Struct, frozen=True):
    """The claims to allocate on some nodes."""

    claims: Sequence[ResourceClaim]
    node_claim: NodeClaim | None


class RowEvaluator:
    """Filters and scores rows for pods with claims."""

    def __init__(self, devices: Devices, allocator: Allocator) -> None:
        self._devices = devices
        self._allocator = allocator

    def rejections(self, state: State, failed: Sequence[int], place: Place) -> Rejections | None:
        """Return the rejected rows. `failed` are the numbers of claims whose devices will not become ready."""
        failures: list[Rejection] = []
        kinds: ByteArray | IntArray
        if not state.resources and len(state.unallocated) == len(state.claims):
            kinds = self._kinds(state.wanted, place.source, failures)
        else:
            kinds = np.zeros(len(place.rows), np.int64)
            for positions, wanted in self._by_claims(state, place, kinds):
                kinds[positions] = self._kinds(wanted.claims, place.source[positions], failures)
            self._reject_without_operations(state, place, kinds, failures)
            self._reject_unavailable(state, failed, place, kinds)
        if are_all_zero(kinds):
            return None
        return Rejections(
            kinds.astype(np.int64),
            lambda kind: _REASONS[kind] if kind < _FIRST_FAILURE else failures[kind - _FIRST_FAILURE],
            next((failure for failure in failures if failure.code is Code.ERROR), None),
        )

    def scores(self, state: State, place: Place) -> IntArray:
        """Return the score of each row by the rank of the alternatives that are chosen there."""
        scores: IntArray = np.zeros(len(place.rows), np.int64)
        before = sum(_score_of(claim) for claim in state.claims)
        for positions, wanted in self._by_claims(state, place, scores.copy()):
            shape = self._allocator.shape_of(wanted.claims)
            scores[positions] = before + self._allocator.scores(shape, wanted.claims, place.source[positions])
        return scores

    def allocate(self, state: State, nodes: NodeView, row: int) -> tuple[Wanted, list[AllocationResult]]:
        """Return the claims to allocate on a row of the cluster, and their allocations. Raises AllocationError."""
        wanted = Wanted(state.wanted, None)
        if state.resources:
            place = Place(nodes, np.array([row]), np.array([row]))
            groups = self._by_claims(state, place, np.zeros(1, np.int64))
            wanted = groups[0][1] if groups else Wanted((), None)
        if not wanted.claims:
            return wanted, []
        shape = self._allocator.shape_of(wanted.claims)
        found = self._allocator.allocate(shape, wanted.claims, row, self._devices.node_name(row))
        if found is None:
            raise AllocationError("claim allocation not found for node")
        return wanted, found

    def _by_claims(self, state: State, place: Place, kinds: IntArray) -> list[tuple[Rows, Wanted]]:
        """Group positions by the claims to allocate there; set the kinds of rows that are rejected without a search."""
        if not state.resources:
            return [(slice(0, len(place.rows)), Wanted(state.wanted, None))] if state.wanted else []
        if state.stale_claim is not None:
            kinds[:] = _STALE_CLAIM
            return []
        kinds[_lacks_other_resources(state, place)] = _CANNOT_FIT
        codes: IntArray = np.zeros(len(place.rows), np.int64)
        for bit, name in enumerate(state.resources):
            codes |= _is_missing(place, name).astype(np.int64) << bit
        groups: list[tuple[Rows, Wanted]] = []
        for code in np.unique(codes[kinds == 0]).tolist():
            needed = [name for bit, name in enumerate(state.resources) if code & (1 << bit)]
            wanted = self._wanted(state, needed)
            if wanted.claims:
                groups.append((np.flatnonzero((codes == code) & (kinds == 0)), wanted))
        return groups

    def _wanted(self, state: State, needed: Sequence[str]) -> Wanted:
        """Return the claims to allocate on nodes that need devices for the given extended resources."""
        named = state.wanted[:-1]
        if not needed:
            return Wanted(named, None)
        found = node_claim(state.claims[-1], state.pod.pod, needed, self._devices.classes)
        return Wanted([*named, found.claim], found)

    def _kinds(
        self, claims: Sequence[ResourceClaim], rows: IntArray, failures: list[Rejection]
    ) -> ByteArray | IntArray:
        """Return the kinds of rejection of rows that need the same claims; errors are appended to `failures`."""
        try:
            shape = self._allocator.shape_of(claims)
            results = self._allocator.evaluate(shape, claims, rows)
        except AllocationTimeoutError as error:
            raise FilterError(_NAME, _failure(error).message) from None
        except AllocationError as error:
            failures.append(_failure(error))
            return np.full(len(rows), _FIRST_FAILURE + len(failures) - 1)
        kinds: ByteArray = results - FEASIBLE
        if not shape.has_failed:
            return kinds
        detailed = kinds.astype(np.int64)
        for position in np.flatnonzero(results == FAILED).tolist():
            row = int(rows[position])
            try:
                # The message names a device of this node, so that it cannot be shared.
                self._allocator.allocate(shape, claims, row, self._devices.node_name(row))
            except AllocationError as error:
                detailed[position] = _FIRST_FAILURE + len(failures)
                failures.append(_failure(error))
        return detailed

    def _lack_operations(self, allocation: AllocationResult, place: Place) -> BoolArray | None:
        """Return by row whether the kubelet cannot skip the operations that an allocation skips; None: no row."""
        if not any(result.skipNodeOperations for result in allocation.devices.results):
            return None
        return np.array([not self._devices.may_skip_operations(row) for row in place.source.tolist()], np.bool_)

    def _reject_without_operations(
        self, state: State, place: Place, kinds: IntArray, failures: list[Rejection]
    ) -> None:
        """Reject rows on which the pending allocations of other pods of the group cannot be used."""
        for number in sorted(state.shared):
            claim = state.claims[number]
            lacking = None if claim.status.allocation is None else self._lack_operations(claim.status.allocation, place)
            if lacking is not None:
                kinds[lacking & (kinds == 0)] = _FIRST_FAILURE + len(failures)
                problem = "allocation requires DRAOptionalNodeOperations feature on the node"
                failures.append(unresolvable(f"resource claim {key_of(claim)} {problem}"))

    def _reject_unavailable(self, state: State, failed: Sequence[int], place: Place, kinds: IntArray) -> None:
        """Reject rows on which allocated claims cannot be used."""
        feasible = kinds == 0
        for number, claim in enumerate(state.claims):
            allocation = claim.status.allocation
            if allocation is None:
                continue
            missing: BoolArray = np.full(len(place.rows), number in failed)
            if allocation.nodeSelector is not None:
                missing |= ~node_terms_match(place.view, place.rows, compile_node_selector(allocation.nodeSelector))
            lacking = self._lack_operations(allocation, place)
            if lacking is not None:
                missing |= lacking
            missing &= feasible
            if missing.any():
                kinds[missing] = _NOT_AVAILABLE
                state.unavailable.add(number)


def _failure(error: AllocationError) -> Rejection:
    return Rejection((f'running "{_NAME}" filter plugin: {error}',), Code.ERROR)


def _lacks_other_resources(state: State, place: Place) -> BoolArray:
    """Return by row whether the node lacks an extended resource that is not backed by devices."""
    lacking: BoolArray = np.zeros(len(place.rows), np.bool_)
    for name, amount in state.pod.requests.amounts.items():
        is_extended = is_extended_resource(name) or name.startswith(CLASS_PREFIX)
        if not is_extended or not amount or name in state.resources:
            continue
        for position in np.flatnonzero(_is_missing(place, name)).tolist():
            node = place.view.nodes[int(place.rows[position])]
            lacking[position] |= node is None or name not in node.status.allocatable
    return lacking


def _is_missing(place: Place, resource: str) -> BoolArray:
    """Return by row whether the node has no own amount of a resource."""
    column = place.view.resource_index.get(resource)
    if column is None or column >= len(place.view.allocatable):
        return np.ones(len(place.rows), np.bool_)
    missing: BoolArray = place.view.allocatable[column][place.rows] == 0
    return missing


def _score_of(claim: ResourceClaim) -> int:
    """Return the score of the alternatives in a claim's allocation."""
    if claim.status.allocation is None:
        return 0
    allocated = {result.request for result in claim.status.allocation.devices.results}
    return sum(
        MAX_ALTERNATIVES - rank
        for request in claim.spec.devices.requests
        for rank, option in enumerate(request.firstAvailable)
        if f"{request.name}/{option.name}" in allocated
    )
