"""How well pods fit into the zones of nodes, from 0 to 100."""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from kubestow.contrib.numa.alignment import ABSENT, Zones
from kubestow.contrib.numa.demand import Amounts, Demand
from kubestow.plugin import MAX_SCORE
from kubestow.plugin.fast import BoolArray, IntArray

_UNKNOWN_DISTANCE = 255

Weights = Mapping[str, int]
Strategy = Callable[[Zones, Amounts, Weights], IntArray]
"""Scores each zone; 0 means that the zone cannot take the amounts."""


def least_allocated(zones: Zones, amounts: Amounts, weights: Weights) -> IntArray:
    """Prefer zones in which much stays free."""
    return _weighted(zones, amounts, weights, lambda amount, free: free - amount)


def most_allocated(zones: Zones, amounts: Amounts, weights: Weights) -> IntArray:
    """Prefer zones in which little stays free."""
    return _weighted(zones, amounts, weights, lambda amount, free: np.full_like(free, amount))


def balanced_allocation(zones: Zones, amounts: Amounts, weights: Weights) -> IntArray:
    """Prefer zones of which similar shares of all resources are taken."""
    del weights
    shares = []
    for name, amount in amounts.items():
        free = _units(name, zones.free(name))
        shares.append(np.where(free == 0, 1.0, _units(name, amount) / np.maximum(free, 1)))
    if not shares:
        return np.zeros(zones.shape, np.int64)
    table = np.stack(shares)
    deviations = table - table.mean(axis=0)
    squares, correction = (deviations**2).sum(axis=0), deviations.sum(axis=0) ** 2 / len(shares)
    variance = (squares - correction) / max(len(shares) - 1, 1)
    return np.where((table > 1).any(axis=0) | ~zones.exist, 0, ((1 - variance) * MAX_SCORE).astype(np.int64))


STRATEGIES: Mapping[str, Strategy] = {
    "LeastAllocated": least_allocated,
    "MostAllocated": most_allocated,
    "BalancedAllocation": balanced_allocation,
}
LEAST_ZONES = "LeastNUMANodes"
"""The strategy that counts zones instead of scoring each; see `scores_by_zones_needed`."""


def _weighted(zones: Zones, amounts: Amounts, weights: Weights, used: Callable[[int, IntArray], IntArray]) -> IntArray:
    total, sum_of_weights = np.zeros(zones.shape, np.int64), 0
    for name, amount in amounts.items():
        exact, weight = zones.free(name), max(weights.get(name, 1), 1)
        free = _units(name, exact)
        share = used(_units(name, amount), free) * MAX_SCORE // np.maximum(free, 1)
        total += np.where((exact <= 0) | (amount > exact), 0, share) * weight
        sum_of_weights += weight
    return total // max(sum_of_weights, 1)


def _units(name: str, amount: int | IntArray) -> Any:
    """Return whole units, rounded up; ABSENT is 0."""
    if name != "cpu":
        return np.maximum(amount, 0) if isinstance(amount, np.ndarray) else amount
    return -(-amount // 1000)


def scores_by_strategy(zones: Zones, demand: Demand, strategy: Strategy, weights: Weights, *, pod: bool) -> IntArray:
    """Return the score of the worst zone that can take the pod, or the average over its containers."""

    def worst(amounts: Amounts) -> IntArray:
        scores = strategy(zones, amounts, weights)
        lowest: IntArray = np.where(scores == 0, MAX_SCORE + 1, scores).min(axis=0)
        return np.where(lowest > MAX_SCORE, 0, lowest)

    if pod:
        return worst(demand.whole)
    parts = [*[amounts for amounts, _ in demand.inits], *demand.containers]
    total: IntArray = sum((worst(amounts) for amounts in parts), np.zeros(zones.shape[1], np.int64))
    return total // max(len(parts), 1)


def scores_by_zones_needed(zones: Zones, demand: Demand, *, pod: bool) -> IntArray:
    """Prefer nodes on which the pod, or its widest container, spans few zones that are close to each other."""
    parts = [demand.whole] if pod else [*[amounts for amounts, _ in demand.inits], *demand.containers]
    most = np.zeros(zones.shape[1], np.int64)
    all_closest, all_fit = np.ones_like(most, np.bool_), np.ones_like(most, np.bool_)
    distances = _distances(zones)
    for number, amounts in enumerate(parts, 1):
        in_zones = np.zeros_like(all_fit)
        for name in amounts:
            in_zones |= (zones.free(name) != ABSENT).any(axis=0)
        chosen, closest = _fewest_zones(zones, amounts, distances)
        count = chosen.sum(axis=0)
        all_fit &= ~in_zones | (count > 0)
        all_closest &= ~in_zones | closest
        most = np.maximum(most, np.where(in_zones, count, 0))
        if number < len(parts):
            _take_in_order(zones, amounts, chosen)
    share = MAX_SCORE // zones.columns.get("max zones", zones.view, zones.rows)
    scores = np.where(most == 0, MAX_SCORE, MAX_SCORE - most * share + np.where(all_closest, share // 2, 0))
    return np.where(all_fit, np.maximum(scores, 0), 0)


def _distances(zones: Zones) -> IntArray:
    """Return the distances between zones, as an array (from, to, node)."""
    found = np.stack([zones.stacked("distance", to) for to in range(zones.shape[0])], axis=1)
    return np.where(found == ABSENT, _UNKNOWN_DISTANCE, found)


def _fewest_zones(zones: Zones, amounts: Amounts, distances: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return the smallest set of zones that can take the amounts, and whether no set of its size is closer."""
    count, columns = zones.shape
    exist = zones.exist
    chosen, closest = np.zeros(zones.shape, np.bool_), np.zeros(columns, np.bool_)
    open_nodes = np.ones(columns, np.bool_)
    for size in range(1, count + 1):
        nearest, best = np.full(columns, float(_UNKNOWN_DISTANCE)), np.full(columns, np.inf)
        for some in map(list, combinations(range(count), size)):
            there = exist[some].all(axis=0)
            distance = distances[np.ix_(some, some)].sum(axis=(0, 1)) / size**2
            nearest = np.where(there, np.minimum(nearest, distance), nearest)
            better = open_nodes & there & (distance < best)
            for name, amount in amounts.items():
                free = zones.free(name)[some]
                better &= (free != ABSENT).all(axis=0) & (free.sum(axis=0) >= amount)
            best[better] = distance[better]
            chosen[:, better] = False
            chosen[np.ix_(some, better)] = True
        found = best < np.inf
        closest |= found & (best == nearest)
        open_nodes &= ~found
        if not open_nodes.any():
            break
    return chosen, closest


def _take_in_order(zones: Zones, amounts: Amounts, chosen: BoolArray) -> None:
    for name, amount in amounts.items():
        free, left = zones.free(name), np.full(zones.shape[1], amount)
        for zone in range(zones.shape[0]):
            taken = np.where(chosen[zone], np.minimum(np.maximum(free[zone], 0), left), 0)
            free[zone] -= taken
            left -= taken
