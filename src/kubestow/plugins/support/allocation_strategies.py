"""Scoring strategies of NodeResourcesFit: prefer empty nodes, full nodes, or a shape of one's own."""

from collections.abc import Callable

import numpy as np

from kubestow.cluster.arrays import IntArray, Rows, row_count
from kubestow.config.plugin_args import ScoringStrategy, UtilizationShapePoint
from kubestow.framework.broken_line import score_table
from kubestow.plugins.support.resource_shares import Share, percent, weighted_mean

Strategy = Callable[[list[Share], Rows], IntArray]


def least_allocated(found: list[Share], rows: Rows) -> IntArray:
    """The emptier, the better."""
    return weighted_mean([(percent(np.maximum(s.capacity - s.total, 0), s), s) for s in found], rows)


def most_allocated(found: list[Share], rows: Rows) -> IntArray:
    """The fuller, the better."""
    return weighted_mean([(percent(np.minimum(s.total, s.capacity), s), s) for s in found], rows)


def requested_to_capacity_ratio(shape: tuple[UtilizationShapePoint, ...]) -> Strategy:
    """As good as a broken line through the points of the shape says for the utilization."""
    table = score_table(shape)

    def strategy(found: list[Share], rows: Rows) -> IntArray:
        total: IntArray = np.zeros(row_count(rows), np.int64)
        weights: IntArray = np.zeros(row_count(rows), np.int64)
        for share in found:
            used = np.minimum(share.total, share.capacity)
            utilization = np.where(share.total > share.capacity, 100, percent(used, share))
            score = table[utilization]
            counts = (share.capacity > 0) & (score > 0)
            total += score * share.weight * counts
            weights += share.weight * counts
        # Halves are rounded up.
        return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)

    return strategy


def strategy_of(scoring: ScoringStrategy) -> Strategy:
    """The strategy that the arguments ask for; raises ValueError for one that does not exist."""
    if scoring.type == "LeastAllocated":
        return least_allocated
    if scoring.type == "MostAllocated":
        return most_allocated
    if scoring.type == "RequestedToCapacityRatio" and scoring.requestedToCapacityRatio is not None:
        return requested_to_capacity_ratio(scoring.requestedToCapacityRatio.shape)
    raise ValueError(f"scoringStrategy.type {scoring.type!r} is not supported")
