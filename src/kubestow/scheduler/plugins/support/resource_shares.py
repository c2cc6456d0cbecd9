"""Capacity, use and request by resource and row: the input of scoring strategies.

Amounts are whole numbers. They are stored as floats for speed, unless a capacity is too large to be exact: see
`Capacities`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubestow.api.requests import CPU as CPU_NAME
from kubestow.api.requests import MEMORY as MEMORY_NAME
from kubestow.api.requests import TO_SCORE, is_scalar_resource
from kubestow.scheduler.cluster.arrays import FloatArray, IntArray, NDArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.nodes import CPU, EXACT_IN_FLOAT, MEMORY
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.plugin import RowsOfPods
from kubestow.scheduler.plugins.support.device_counts import DeviceCounts

_CPU_AND_MEMORY = [CPU, MEMORY]


ScoredResources = tuple[tuple[str, int, int], ...]
"""(name, weight, requested amount) of each scored resource."""
JoinedResources = tuple[tuple[str, int, IntArray], ...]
"""(name, weight, requested amount by row) of each scored resource, for several pods."""
Amounts = NDArray[Any]
"""Whole numbers, stored as integers or floats."""


class Shares(msgspec.Struct, frozen=True):
    """Amounts by resource and row: `[r, i]` is resource `r` on row `i`."""

    weights: Sequence[int]
    capacity: Amounts
    """Read-only: may be a view of shared data."""
    held: IntArray
    """The amount that pods on the node request."""
    wanted: Amounts
    """The amount that the new pod requests: `[r, 0]`, or for several pods `[r, i]`."""
    is_everywhere: bool
    """Whether every row offers every resource. A resource does not count on rows that do not offer it."""

    @property
    def total(self) -> Amounts:
        """The requested amount including the new pod, as a new array."""
        total: Amounts = self.held.astype(self.capacity.dtype)
        total += self.wanted
        return total


def scored_of(pod: PodInfo, resources: Sequence[tuple[str, int]]) -> ScoredResources:
    """Return the pod's requests of (name, weight) resources, with the default cpu and memory if it requests none."""
    # kube-scheduler ignores pod-level requests here, although they count for pods on nodes.
    requests = pod.requests_by(TO_SCORE)
    wanted = {**requests.amounts, CPU_NAME: requests.non_zero_cpu, MEMORY_NAME: requests.non_zero_memory}
    return tuple([(name, weight, wanted.get(name, 0)) for name, weight in resources])


def join_scored(of: Sequence[ScoredResources], rows: RowsOfPods) -> JoinedResources | None:
    """Return the resources of several pods by row; None if the pods' scored resources may differ."""
    if any(is_scalar_resource(name) for name, _, _ in of[0]):
        return None
    joined = []
    for same in zip(*of, strict=True):
        name, weight, _ = same[0]
        joined.append((name, weight, rows.spread([wanted for _, _, wanted in same])))
    return tuple(joined)


def shares(
    view: NodeView,
    rows: Rows,
    resources: ScoredResources | JoinedResources,
    *,
    non_zero: bool,
    devices: DeviceCounts | None = None,
) -> Shares:
    """Return the shares of the given resources; with `non_zero`, cpu and memory requests count with their defaults.

    Scalar resources that the pod does not request do not count, nor do those that no node offers. `devices` adds the
    devices that back a resource on nodes without an own amount of it.
    """
    columns, weights, amounts, by_devices = [], [], [], []
    for name, weight, amount in resources:
        if devices is not None and devices.back_resource(name):
            if isinstance(amount, int) and amount:
                by_devices.append((name, weight, amount))
            continue
        column = view.resource_index.get(name)
        if column is None or column >= len(view.allocatable) or (is_scalar_resource(name) and amount == 0):
            continue
        columns.append(column)
        weights.append(weight)
        amounts.append(amount)
    capacity, is_everywhere = _capacity(view, columns, rows)
    held = _gather([view.non_zero, view.requested] if non_zero else [view.requested], columns, rows)
    wanted = np.array(amounts, capacity.dtype).reshape(len(columns), -1) if columns else np.zeros((0, 1))
    if devices is not None and by_devices:
        numbers = row_numbers(rows)
        for name, weight, amount in by_devices:
            weights.append(weight)
            own, of_devices = _offered(view, numbers, name), devices.counts(name, view.source_rows()[numbers])
            more = [np.where(own[0] > 0, *both) for both in zip(own, of_devices, strict=True)]
            capacity, held = np.vstack([capacity, more[0]]), np.vstack([held, more[1]])
            wanted = np.vstack([wanted, np.full((1, wanted.shape[1]), amount)])
        is_everywhere = bool(capacity.min(initial=1) > 0)
    return Shares(weights, capacity, held, wanted, is_everywhere)


def _capacity(view: NodeView, columns: list[int], rows: Rows) -> tuple[Amounts, bool]:
    """Return the capacity by resource and row, and whether every row offers every resource."""
    if columns == _CPU_AND_MEMORY:
        # The default resources are precomputed in adjacent rows of one array: a single operation at most.
        floats, are_everywhere = view.capacities
        if floats is not None and are_everywhere:
            return floats[:, rows] if isinstance(rows, slice) else floats.take(rows, axis=1), True
    capacity = _gather([view.allocatable], columns, rows)
    is_everywhere = bool(capacity.min(initial=1) > 0)
    return capacity if capacity.max(initial=0) >= EXACT_IN_FLOAT else capacity.astype(np.float64), is_everywhere


def _offered(view: NodeView, rows: IntArray, resource: str) -> tuple[IntArray, IntArray]:
    """Return the nodes' own capacity of a resource, and the amount of it that is requested."""
    column = view.resource_index.get(resource)
    if column is None or column >= len(view.allocatable):
        nothing: IntArray = np.zeros(len(rows), np.int64)
        return nothing, nothing
    return view.allocatable[column][rows], view.requested[column][rows]


def _gather(tables: Sequence[IntArray], columns: list[int], rows: Rows) -> IntArray:
    """Return the given columns for some rows, each from the first table that has it."""
    first = tables[0]
    if columns == _CPU_AND_MEMORY:
        return first[:2, rows] if isinstance(rows, slice) else first[:2].take(rows, axis=1)
    if not columns:
        return np.zeros((0, row_count(rows)), np.int64)
    return np.stack([next(of for of in tables if column < len(of))[column][rows] for column in columns])


def row_shares(view: NodeView, row: int, resources: ScoredResources) -> list[tuple[int, int, int]]:
    """Return (capacity, held, wanted) of each resource that counts on one row, as Python numbers."""
    index, offered, requested = view.resource_index, view.allocatable.item, view.requested.item
    found = []
    for name, _, wanted in resources:
        column = index.get(name)
        if column is None or (not wanted and is_scalar_resource(name)):
            continue
        capacity = offered(column, row)
        if capacity:
            found.append((capacity, requested(column, row), wanted))
    return found


def percent(part: Amounts, found: Shares) -> Amounts:
    """Return 100 * part // capacity for 0 <= part <= capacity, computed in place; 0 where the capacity is 0."""
    divisor = found.capacity if found.is_everywhere else np.maximum(found.capacity, 1)
    part *= 100
    if part.dtype == np.float64:
        part /= divisor
        return np.floor(part, out=part)
    part //= divisor
    return part


def weighted_mean(scores: Amounts, found: Shares) -> IntArray:
    """Return the weighted mean of the scores, rounded down, over the resources that count on each row."""
    if not found.is_everywhere:
        counts = found.capacity > 0
        mean = weighted_sum(scores * counts, found) // np.maximum(weighted_sum(counts, found), 1)
    else:
        mean = weighted_sum(scores, found)
        mean /= max(sum(found.weights), 1)
    return mean.astype(np.int64)


def weighted_sum(scores: Amounts, found: Shares) -> FloatArray:
    """Return the weighted sum over resources. Scores are small, so float sums are exact."""
    total: FloatArray = np.zeros(scores.shape[1])
    for weight, of in zip(found.weights, scores, strict=True):
        total += of if weight == 1 else of * weight
    return total
