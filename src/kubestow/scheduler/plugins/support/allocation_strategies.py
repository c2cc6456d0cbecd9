"""The scoring strategies of NodeResourcesFit: prefer empty nodes, full nodes, or a configured utilization."""

from collections.abc import Callable

import numpy as np

from kubestow.config.plugin_args import ScoringStrategy, UtilizationShapePoint
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.framework.broken_line import score_table
from kubestow.scheduler.plugins.support.resource_shares import Shares, percent, weighted_mean, weighted_sum

Strategy = Callable[[Shares], IntArray]


def least_allocated(found: Shares) -> IntArray:
    """Return higher scores for nodes with more free resources."""
    free = found.total
    np.subtract(found.capacity, free, out=free)
    np.maximum(free, 0, out=free)
    return weighted_mean(percent(free, found), found)


def most_allocated(found: Shares) -> IntArray:
    """Return higher scores for nodes with less free resources."""
    return weighted_mean(percent(np.minimum(found.total, found.capacity), found), found)


def requested_to_capacity_ratio(shape: tuple[UtilizationShapePoint, ...]) -> Strategy:
    """Return the strategy that maps utilization to a score, by linear interpolation between the points of `shape`."""
    table = score_table(shape)

    def strategy(found: Shares) -> IntArray:
        total = found.total
        used = percent(np.minimum(total, found.capacity), found).astype(np.int64)
        scores = table[np.where(total > found.capacity, 100, used)]
        counts = (found.capacity > 0) & (scores > 0)
        weights = weighted_sum(counts, found)
        # Halves are rounded up.
        return np.floor(weighted_sum(scores * counts, found) / np.maximum(weights, 1) + 0.5).astype(np.int64)

    return strategy


def strategy_of(scoring: ScoringStrategy) -> Strategy:
    """Return the configured strategy. Raises ValueError if it does not exist."""
    if scoring.type == "LeastAllocated":
        return least_allocated
    if scoring.type == "MostAllocated":
        return most_allocated
    if scoring.type == "RequestedToCapacityRatio" and scoring.requestedToCapacityRatio is not None:
        return requested_to_capacity_ratio(scoring.requestedToCapacityRatio.shape)
    raise ValueError(f"scoringStrategy.type {scoring.type!r} is not supported")
