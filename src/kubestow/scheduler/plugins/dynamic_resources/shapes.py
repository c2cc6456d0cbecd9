"""Cached search results for claims of one shape: the row states in which they can be allocated, and the scores.

Claims with equal requests and constraints have one shape. Rows with equal devices are in one row state, so that one
search serves all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kubestow.api.devices import AllocationResult, DeviceClass, ResourceClaim
from kubestow.clock import Clock
from kubestow.config.features import Features
from kubestow.rng import Rng
from kubestow.scheduler.cluster.arrays import ByteArray, IntArray, are_all_set, grown
from kubestow.scheduler.cluster.devices import Devices
from kubestow.scheduler.cluster.devices.pools import PoolProblem
from kubestow.scheduler.cluster.listers import Store, key_of
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError, AllocationTimeoutError
from kubestow.scheduler.plugins.dynamic_resources.requests import Compiler, Option, WantedClaim
from kubestow.scheduler.plugins.dynamic_resources.results import allocation_of
from kubestow.scheduler.plugins.dynamic_resources.search import Pick, Rules, Search, device_at
from kubestow.scheduler.plugins.dynamic_resources.selection import Selectors

UNKNOWN, FEASIBLE, INFEASIBLE, INVALID_POOLS, FAILED = range(5)
"""Results of a row state."""

MAX_ALTERNATIVES = 8
"""Maximum number of alternatives of a request; the first has the highest score."""

_MAX_SHAPES = 1_024


class Solution(NamedTuple):
    """The devices found in a row state, by their position, and the chosen alternatives, by claim."""

    picks: Sequence[Sequence[Pick]]
    chosen: Sequence[Mapping[int, Option]]


class Shape:
    """Compiled claims with their results by row state."""

    def __init__(self, wanted: Sequence[WantedClaim]) -> None:
        self.wanted = wanted
        self.solutions: dict[int, Solution] = {}
        self.kinds: ByteArray = np.zeros(0, np.uint8)
        self.scores: IntArray = np.zeros(0, np.int64)
        self.has_failed = False
        """Whether the search failed with an error in some row state."""


class Allocator:
    """Allocates devices for claims; results are cached by shape."""

    def __init__(
        self,
        devices: Devices,
        classes: Store[DeviceClass],
        features: Features,
        clock: Clock,
        rng: Rng,
        seconds: float,
    ) -> None:
        self._devices = devices
        self._clock = clock
        self._rng = rng
        self._seconds = seconds if features.dra_scheduler_filter_timeout else 0.0
        self._rules = Rules(
            partitions=features.dra_partitionable_devices,
            taints=features.dra_device_taints,
            conditions=features.dra_device_binding_conditions and features.dra_resource_claim_device_status,
            shares=features.dra_consumable_capacity,
            groups=features.dra_device_compatibility_groups,
            operations=features.dra_optional_node_operations,
        )
        # With these features kube-scheduler uses its newest allocator; the others do not know of skipped operations.
        self._checks_operations = (
            features.dra_list_type_attributes
            or features.dra_optional_node_operations
            or features.dra_derived_attributes
            or features.dra_device_compatibility_groups
        )
        self._selectors = Selectors()
        self._compiler = Compiler(classes, self._selectors, features)
        self._shapes: dict[bytes, Shape] = {}
        self._epoch = devices.epoch
        self._latest: tuple[Sequence[ResourceClaim], Shape] | None = None
        """The latest claims and their shape: claims of one pod, and of pods of one controller, are often equal."""

    def shape_of(self, claims: Sequence[ResourceClaim]) -> Shape:
        """Return the shape of claims. Raises AllocationError if they are invalid."""
        self._devices.renumber_if_needed()
        if self._epoch != self._devices.epoch:
            self._epoch = self._devices.epoch
            self._shapes, self._latest = {}, None
            self._selectors.clear()
        if self._latest is not None and _have_equal_requests(claims, self._latest[0]):
            self._latest = (claims, self._latest[1])
            return self._latest[1]
        key = msgspec.json.encode([(claim.spec.devices.requests, claim.spec.devices.constraints) for claim in claims])
        shape = self._shapes.pop(key, None)
        if shape is None:
            shape = Shape([self._compiler.compile(claim) for claim in claims])
            while len(self._shapes) >= _MAX_SHAPES:
                del self._shapes[next(iter(self._shapes))]
        self._shapes[key] = shape
        self._latest = (claims, shape)
        return shape

    def evaluate(self, shape: Shape, claims: Sequence[ResourceClaim], rows: IntArray) -> ByteArray:
        """Return by row whether the claims can be allocated: FEASIBLE, INFEASIBLE, INVALID_POOLS or FAILED."""
        row_states = self._devices.row_states(rows)
        count = self._devices.row_state_count
        if count > len(shape.kinds):
            shape.kinds = grown(shape.kinds, 2 * count)
            shape.scores = grown(shape.scores, 2 * count)
        kinds = shape.kinds.take(row_states)
        if not are_all_set(kinds):
            unknown = np.flatnonzero(kinds == UNKNOWN)
            for row_state, first in zip(*np.unique(row_states[unknown], return_index=True), strict=True):
                self._evaluate(shape, claims, int(row_state), int(rows[unknown[first]]))
            kinds = shape.kinds.take(row_states)
        return kinds

    def scores(self, shape: Shape, claims: Sequence[ResourceClaim], rows: IntArray) -> IntArray:
        """Return the score of the chosen alternatives by row."""
        self.evaluate(shape, claims, rows)
        return shape.scores[self._devices.row_states(rows)]

    def _evaluate(self, shape: Shape, claims: Sequence[ResourceClaim], row_state: int, row: int) -> None:
        try:
            solution = self._search(shape, claims, row)
        except AllocationTimeoutError:
            raise
        except AllocationError:
            shape.kinds[row_state] = FAILED
            shape.has_failed = True
            return
        if solution is not None:
            chosen = [option for of_claim in solution.chosen for option in of_claim.values()]
            shape.kinds[row_state] = FEASIBLE
            shape.scores[row_state] = sum(MAX_ALTERNATIVES - option.rank for option in chosen)
            shape.solutions[row_state] = solution
        else:
            is_invalid = any(pool.problem is PoolProblem.INVALID for pool in self._devices.pools_of(row))
            shape.kinds[row_state] = INVALID_POOLS if is_invalid else INFEASIBLE

    def allocate(
        self, shape: Shape, claims: Sequence[ResourceClaim], row: int, node: str
    ) -> list[AllocationResult] | None:
        """Return the allocations of the claims on a node; None if not all can be allocated. Raises AllocationError."""
        solution = shape.solutions.get(self._devices.row_state(row)) or self._search(shape, claims, row)
        if solution is None:
            return None
        # The positions may have been found on another node in the same row state; the devices are those of this node.
        pools = self._devices.pools_of(row)
        return [
            allocation_of(
                claim,
                wanted,
                picks,
                [device_at(pools, pick.position) for pick in picks],
                chosen,
                node,
                self._rng,
                self._rules,
            )
            for claim, wanted, picks, chosen in zip(claims, shape.wanted, *solution, strict=True)
        ]

    def _search(self, shape: Shape, claims: Sequence[ResourceClaim], row: int) -> Solution | None:
        keys, pools = [key_of(claim) for claim in claims], self._devices.pools_of(row)
        may_skip = not self._checks_operations or (self._rules.operations and self._devices.may_skip_operations(row))
        search = Search(shape.wanted, keys, pools, self._rules, self._time_check(row), may_skip=may_skip)
        if not search.run():
            return None
        chosen: list[dict[int, Option]] = [{} for _ in claims]
        for (claim, request), option in search.chosen.items():
            chosen[claim][request] = option
        return Solution(search.picks, chosen)

    def _time_check(self, row: int) -> Callable[[], None]:
        end = self._clock.now() + self._seconds

        def check() -> None:
            if self._seconds and self._clock.now() > end:
                name = self._devices.node_name(row)
                raise AllocationTimeoutError(f"node {name}: timed out trying to allocate devices")

        return check


def _have_equal_requests(claims: Sequence[ResourceClaim], others: Sequence[ResourceClaim]) -> bool:
    if claims is others or len(claims) != len(others):
        return claims is others
    for claim, other in zip(claims, others, strict=True):
        own, its = claim.spec.devices, other.spec.devices
        if own is not its and (own.requests != its.requests or own.constraints != its.constraints):
            return False
    return True
