"""How full nodes would be, resource by resource: what scoring strategies look at.

Amounts are exact integers; quotients are computed in float64, which is exact for integer results as long as
capacities stay below 2**45 (35 TB of memory on one node); beyond that, integer division is used.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kubestow.cluster.arrays import FloatArray, IntArray, Rows, row_count
from kubestow.cluster.nodes import CPU, MEMORY
from kubestow.cluster.view import NodeView
from kubestow.model.requests import is_scalar_resource

_EXACT_IN_FLOAT = 1 << 45


ScoredResources = tuple[tuple[str, int, int], ...]
"""Of each resource that counts: its name, its weight, and how much of it the pod asks for."""


class Share(NamedTuple):
    """One resource over some rows."""

    weight: int
    capacity: IntArray
    held: IntArray
    """What pods on the node request already."""
    wanted: int
    """What the new pod adds."""
    is_everywhere: bool
    """Whether every row offers the resource; where one does not, the resource does not count."""

    @property
    def total(self) -> IntArray:
        return self.held + self.wanted

    @property
    def divisor(self) -> FloatArray:
        """The capacity to divide by, 1 where there is none."""
        capacity = self.capacity if self.is_everywhere else np.maximum(self.capacity, 1)
        return capacity.astype(np.float64)


def shares(view: NodeView, rows: Rows, resources: ScoredResources, *, non_zero: bool) -> list[Share]:
    """The shares of resources, given as (name, weight, wanted); with `non_zero`, cpu and memory count their defaults.

    A countable resource that the pod does not want does not count.
    """
    found = []
    for name, weight, wanted in resources:
        if wanted == 0 and is_scalar_resource(name):
            continue
        column = view.resource_index.get(name)
        if column is None or column >= len(view.allocatable):
            continue
        held = view.non_zero[column] if non_zero and column in (CPU, MEMORY) else view.requested[column]
        capacity = view.allocatable[column][rows]
        found.append(Share(weight, capacity, held[rows], wanted, bool(capacity.all())))
    return found


def row_shares(
    view: NodeView, row: int, resources: ScoredResources, *, non_zero: bool
) -> Iterator[tuple[int, int, int, int]]:
    """The shares on one row that count there, as plain numbers: capacity, held, wanted, weight."""
    for name, weight, wanted in resources:
        if wanted == 0 and is_scalar_resource(name):
            continue
        column = view.resource_index.get(name)
        if column is None:
            continue
        capacity = view.allocatable.item(column, row)
        if capacity:
            held = view.non_zero if non_zero and column in (CPU, MEMORY) else view.requested
            yield capacity, held.item(column, row), wanted, weight


def percent(part: IntArray, share: Share) -> IntArray:
    """100 * part // capacity for 0 <= part <= capacity; 0 where the capacity is 0."""
    if len(part) and int(share.capacity.max()) >= _EXACT_IN_FLOAT:
        return 100 * part // np.maximum(share.capacity, 1)
    quotient = part * 100.0
    quotient /= share.divisor
    return quotient.astype(np.int64)


def weighted_mean(scores: list[tuple[IntArray, Share]], rows: Rows) -> IntArray:
    """The mean of scores by weight, rounded down, over the resources that count on each row."""
    total: IntArray = np.zeros(row_count(rows), np.int64)
    if all(share.is_everywhere for _, share in scores):
        for score, share in scores:
            total += score if share.weight == 1 else score * share.weight
        return total // max(sum(share.weight for _, share in scores), 1)
    weights: IntArray = np.zeros(row_count(rows), np.int64)
    for score, share in scores:
        counts = share.capacity > 0
        total += score * share.weight * counts
        weights += share.weight * counts
    return total // np.maximum(weights, 1)
