"""Which rows will do for the claims of a pod, and how well.

Where extended resources stand for devices, rows differ in what has to be allocated: a resource that a node offers
itself is no matter there. Rows that need the same claims are judged together.
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
from kubestow.scheduler.cluster.node_matching import node_terms_match
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.results import Code, FilterError, Rejection, Rejections, unresolvable
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError, AllocationTimeoutError
from kubestow.scheduler.plugins.dynamic_resources.extended import NodeClaim, node_claim
from kubestow.scheduler.plugins.dynamic_resources.shapes import (
    ENOUGH,
    FAILED,
    INVALID_POOLS,
    MOST_ALTERNATIVES,
    TOO_LITTLE,
    Allocator,
)
from kubestow.scheduler.plugins.dynamic_resources.state import Place, State

_NAME = "DynamicResources"

_NOT_AVAILABLE, _LEFT_BEHIND, _CANNOT_FIT, _FIRST_FAILURE = range(FAILED, FAILED + 4)
"""Kinds of refusals; before these come the allocator's, counted from ENOUGH."""
_WORDS = {
    TOO_LITTLE - ENOUGH: unresolvable("cannot allocate all claims"),
    INVALID_POOLS - ENOUGH: unresolvable("invalid resource pools were encountered"),
    _NOT_AVAILABLE: unresolvable("resourceclaim not available on the node"),
    _LEFT_BEHIND: unresolvable("cannot schedule extended resource claim"),
    _CANNOT_FIT: unresolvable("cannot fit resource"),
}


class Wanted(msgspec.Struct, frozen=True):
    """What is to be allocated on some nodes."""

    claims: Sequence[ResourceClaim]
    node_claim: NodeClaim | None


class Judge:
    """Judges rows for pods with claims."""

    def __init__(self, devices: Devices, allocator: Allocator) -> None:
        self._devices = devices
        self._allocator = allocator

    def refusals(self, state: State, hopeless: Sequence[int], place: Place) -> Rejections | None:
        """Which rows will not do; some claims have devices that nobody makes ready."""
        failures: list[Rejection] = []
        kinds: ByteArray | IntArray
        if not state.resources and len(state.unallocated) == len(state.claims):
            kinds = self._judged(state.wanted, place.source, failures)
        else:
            kinds = np.zeros(len(place.rows), np.int64)
            for positions, wanted in self._by_claims(state, place, kinds):
                kinds[positions] = self._judged(wanted.claims, place.source[positions], failures)
            _refuse_unavailable(state, hopeless, place, kinds)
        if are_all_zero(kinds):
            return None
        return Rejections(
            kinds.astype(np.int64),
            lambda kind: _WORDS[kind] if kind < _FIRST_FAILURE else failures[kind - _FIRST_FAILURE],
            failures[0] if failures else None,
        )

    def scores(self, state: State, place: Place) -> IntArray:
        """How good the options are that lists come down to on rows that will do."""
        scores: IntArray = np.zeros(len(place.rows), np.int64)
        before = sum(_score_of(claim) for claim in state.claims)
        for positions, wanted in self._by_claims(state, place, scores.copy()):
            shape = self._allocator.shape_of(wanted.claims)
            scores[positions] = before + self._allocator.scores(shape, wanted.claims, place.source[positions])
        return scores

    def allocate(self, state: State, nodes: NodeView, row: int) -> tuple[Wanted, list[AllocationResult]]:
        """What is allocated on a row of the cluster."""
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
        """Positions that need the same claims to be allocated; some rows may be refused."""
        if not state.resources:
            return [(slice(0, len(place.rows)), Wanted(state.wanted, None))] if state.wanted else []
        if state.left_behind is not None:
            kinds[:] = _LEFT_BEHIND
            return []
        kinds[_lacks_others(state, place)] = _CANNOT_FIT
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
        """What is to be allocated on nodes that need devices for some extended resources."""
        named = state.wanted[:-1]
        if not needed:
            return Wanted(named, None)
        found = node_claim(state.claims[-1], state.pod.pod, needed, self._devices.classes)
        return Wanted([*named, found.claim], found)

    def _judged(
        self, claims: Sequence[ResourceClaim], rows: IntArray, failures: list[Rejection]
    ) -> ByteArray | IntArray:
        """The kinds of refusals of rows for which the same claims are to be allocated; failures are added."""
        try:
            shape = self._allocator.shape_of(claims)
            judged = self._allocator.judge(shape, claims, rows)
        except AllocationTimeoutError as error:
            raise FilterError(_NAME, _failure(error).message) from None
        except AllocationError as error:
            failures.append(_failure(error))
            return np.full(len(rows), _FIRST_FAILURE + len(failures) - 1)
        kinds: ByteArray = judged - ENOUGH
        if not shape.has_failed:
            return kinds
        told = kinds.astype(np.int64)
        for position in np.flatnonzero(judged == FAILED).tolist():
            row = int(rows[position])
            try:
                # What went wrong names a device of this very node.
                self._allocator.allocate(shape, claims, row, self._devices.node_name(row))
            except AllocationError as error:
                told[position] = _FIRST_FAILURE + len(failures)
                failures.append(_failure(error))
        return told


def _failure(error: AllocationError) -> Rejection:
    return Rejection((f'running "{_NAME}" filter plugin: {error}',), Code.ERROR)


def _refuse_unavailable(state: State, hopeless: Sequence[int], place: Place, kinds: IntArray) -> None:
    """Refuse rows on which claims that have devices cannot be used."""
    otherwise_good = kinds == 0
    for number, claim in enumerate(state.claims):
        allocation = claim.status.allocation
        if allocation is None:
            continue
        missing: BoolArray = np.full(len(place.rows), number in hopeless)
        if allocation.nodeSelector is not None:
            missing |= ~node_terms_match(place.view, place.rows, compile_node_selector(allocation.nodeSelector))
        missing &= otherwise_good
        if missing.any():
            kinds[missing] = _NOT_AVAILABLE
            state.unavailable.add(number)


def _lacks_others(state: State, place: Place) -> BoolArray:
    """Which rows know nothing of an extended resource that no devices stand for."""
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
    """Which rows offer nothing of a resource."""
    column = place.view.resource_index.get(resource)
    if column is None or column >= len(place.view.allocatable):
        return np.ones(len(place.rows), np.bool_)
    missing: BoolArray = place.view.allocatable[column][place.rows] == 0
    return missing


def _score_of(claim: ResourceClaim) -> int:
    """What the options are worth that an allocation came down to."""
    if claim.status.allocation is None:
        return 0
    allocated = {result.request for result in claim.status.allocation.devices.results}
    return sum(
        MOST_ALTERNATIVES - rank
        for request in claim.spec.devices.requests
        for rank, option in enumerate(request.firstAvailable)
        if f"{request.name}/{option.name}" in allocated
    )
