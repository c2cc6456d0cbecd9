"""How full nodes would be, resource by resource: what scoring strategies look at.

Amounts are exact integers; quotients are computed in float64, which is exact for integer results as long as
capacities stay below 2**45 (35 TB of memory on one node); beyond that, integer division is used.
"""

from typing import NamedTuple

import numpy as np

from kubestow.cluster.arrays import IntArray, Rows, row_count
from kubestow.cluster.nodes import CPU, EPHEMERAL_STORAGE, MEMORY
from kubestow.cluster.view import NodeView
from kubestow.model.requests import is_scalar_resource

_EXACT_IN_FLOAT = 1 << 45
_FIXED = {"cpu": CPU, "memory": MEMORY, "ephemeral-storage": EPHEMERAL_STORAGE}


class Share(NamedTuple):
    """One resource over some rows. Where the capacity is 0 the resource does not count."""

    weight: int
    capacity: IntArray
    held: IntArray
    """What pods on the node request already."""
    wanted: int
    """What the new pod adds."""

    @property
    def total(self) -> IntArray:
        return self.held + self.wanted


def shares(view: NodeView, rows: Rows, resources: tuple[tuple[str, int, int], ...], *, non_zero: bool) -> list[Share]:
    """The shares of resources, given as (name, weight, wanted); with `non_zero`, cpu and memory count their defaults.

    A countable resource that the pod does not want does not count.
    """
    found = []
    for name, weight, wanted in resources:
        if wanted == 0 and is_scalar_resource(name):
            continue
        column = _FIXED.get(name)
        if column is None:
            column = view.resource_index.get(name)
        if column is None or column >= len(view.allocatable):
            continue
        held = view.non_zero[column] if non_zero and column in (CPU, MEMORY) else view.requested[column]
        found.append(Share(weight, view.allocatable[column][rows], held[rows], wanted))
    return found


def percent(part: IntArray, whole: IntArray) -> IntArray:
    """100 * part // whole for 0 <= part <= whole; 0 where the whole is 0."""
    divisor = np.maximum(whole, 1)
    if len(whole) and int(divisor.max()) >= _EXACT_IN_FLOAT:
        return 100 * part // divisor
    quotient: IntArray = (part * 100.0 / divisor).astype(np.int64)
    return quotient


def weighted_mean(scores: list[tuple[IntArray, Share]], rows: Rows) -> IntArray:
    """The mean of scores by weight, rounded down, over the resources that count on each row."""
    if not scores:
        return np.zeros(row_count(rows), np.int64)
    if all(bool(share.capacity.all()) for _, share in scores):
        total = sum(score * share.weight for score, share in scores)
        return total // sum(share.weight for _, share in scores)  # type: ignore[return-value]
    total = np.zeros(row_count(rows), np.int64)
    weights: IntArray = np.zeros(row_count(rows), np.int64)
    for score, share in scores:
        counts = share.capacity > 0
        total += score * share.weight * counts
        weights += share.weight * counts
    return total // np.maximum(weights, 1)
