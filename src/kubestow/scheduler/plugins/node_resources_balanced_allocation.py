"""NodeResourcesBalancedAllocation: prefers nodes whose resources are used more evenly with the pod than without."""

from collections.abc import Hashable, Sequence

import numpy as np

from kubestow.api.requests import RequestRules
from kubestow.config.plugin_args import NodeResourcesBalancedAllocationArgs
from kubestow.scheduler.cluster.arrays import FloatArray, IntArray, Rows, largest, row_count
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead, RowsOfPods
from kubestow.scheduler.framework.results import MAX_SCORE, SKIP, Skip
from kubestow.scheduler.plugins.support.device_counts import DeviceCounts
from kubestow.scheduler.plugins.support.resource_shares import (
    JoinedResources,
    ScoredResources,
    Shares,
    join_scored,
    row_shares,
    shares,
)

_HALF = MAX_SCORE // 2


class NodeResourcesBalancedAllocation:
    """Prefers nodes whose resources the pod would bring into balance."""

    name = "NodeResourcesBalancedAllocation"
    reads_pods = PodsRead.SUMS

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        self._scored = tuple((spec.name, spec.weight) for spec in args.resources)
        features = handle.features
        self._counts = DeviceCounts(handle.cluster.devices)
        self._rules = RequestRules(
            status=features.in_place_pod_vertical_scaling,
            pod_level=features.pod_level_resources,
            pod_level_status=features.in_place_pod_level_resources_vertical_scaling,
        )

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if self._counts.are_requested_by(pod) else pod.requests_signature

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> ScoredResources | Skip:
        return self._scored_of(pod) or SKIP

    def _scored_of(self, pod: PodInfo) -> ScoredResources:
        """Return the scored resources with the pod's requests, empty if it requests none of them."""
        wanted = pod.requests_by(self._rules).amounts
        scored = tuple([(name, weight, wanted.get(name, 0)) for name, weight in self._scored])
        return scored if any([amount for _, _, amount in scored]) else ()  # noqa: C419 - twice as fast

    def score_rows(
        self, state: ScoredResources | JoinedResources | None, pod: PodInfo, view: NodeView, rows: Rows
    ) -> IntArray:
        if state is None and not (state := self._scored_of(pod)):
            return np.zeros(row_count(rows), np.int64)
        found = shares(view, rows, state, non_zero=False, devices=self._counts)
        if len(found.weights) < 2:
            # One resource is always in balance with itself.
            return np.full(row_count(rows), _HALF + _HALF // 2, np.int64)
        before, after = _balance(found)
        # 50 to 100; 75 if the balance does not change.
        after -= before
        after *= 0.5
        after += _HALF + _HALF // 2
        scores: IntArray = after.astype(np.int64)
        return scores

    def join_score_states(self, states: Sequence[ScoredResources], rows: RowsOfPods) -> JoinedResources | None:
        return join_scored(states, rows)

    def row_score(self, state: ScoredResources | None, view: NodeView, row: int) -> int | None:
        """Return the score of one row, computed with Python numbers; None for more than two resources."""
        if state is None:
            return None
        found = row_shares(view, row, state)
        if len(found) > 2:
            return None
        if len(found) < 2:
            return _HALF + _HALF // 2
        (capacity, held, wanted), (other, other_held, other_wanted) = found
        parts = held / capacity, other_held / other, (held + wanted) / capacity, (other_held + other_wanted) / other
        if parts[2] > 1.0 or parts[3] > 1.0:
            parts = min(parts[0], 1.0), min(parts[1], 1.0), min(parts[2], 1.0), min(parts[3], 1.0)
        before, after = abs((parts[0] - parts[1]) / 2), abs((parts[2] - parts[3]) / 2)
        return _HALF + (_HALF + int((1 - after) * MAX_SCORE) - int((1 - before) * MAX_SCORE)) // 2


def _balance(found: Shares) -> FloatArray:
    """Return the balance of each row without and with the pod: 100 minus the deviation of the used fractions."""
    # Both at once and in place, because allocating arrays would take much of the time.
    parts: FloatArray = np.empty((2, *found.capacity.shape))
    divisor = found.capacity if found.is_everywhere else np.maximum(found.capacity, 1)
    used = found.held.astype(np.float64)
    np.divide(used, divisor, out=parts[0])
    used += found.wanted
    np.divide(used, divisor, out=parts[1])
    # No fraction is smaller with the pod than without it.
    if parts.size and largest(parts[1]) > 1.0:
        np.minimum(parts, 1.0, out=parts)
    if len(found.weights) == 2 and found.is_everywhere:
        deviation = parts[:, 0]
        deviation -= parts[:, 1]
        np.abs(deviation, out=deviation)
        deviation *= 0.5
    else:
        counts = found.capacity > 0
        deviation = np.stack([_deviation(parts[0], counts), _deviation(parts[1], counts)])
    np.subtract(1.0, deviation, out=deviation)
    deviation *= MAX_SCORE
    return np.floor(deviation, out=deviation)


def _deviation(parts: FloatArray, counts: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> FloatArray:
    """Return the standard deviation over the resources that count on each row; for two, that is half their distance."""
    number = counts.sum(axis=0)
    counted = np.where(counts, parts, 0.0)
    mean = counted.sum(axis=0) / np.maximum(number, 1)
    squares = np.where(counts, (parts - mean) ** 2, 0.0).sum(axis=0)
    of_many = np.sqrt(squares / np.maximum(number, 1))
    of_two = (np.where(counts, parts, -1.0).max(axis=0) - np.where(counts, parts, 2.0).min(axis=0)) / 2
    return np.where(number > 2, of_many, np.where(number == 2, of_two, 0.0))
