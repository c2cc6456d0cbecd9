"""LowRiskOverCommitment: avoids nodes that are likely to use more than their pods request."""

from collections.abc import Hashable
from functools import lru_cache
from math import sqrt

import numpy as np

from kubestow.contrib.containers import ByPod, signature_of
from kubestow.contrib.load.beta import probability_below
from kubestow.contrib.load.scorer import LoadScorer, Numbers
from kubestow.contrib.load.sources import LoadArgs
from kubestow.contrib.load.usage import RESOURCES, rounded, usage_of
from kubestow.plugin import MAX_SCORE, Handle, PodInfo
from kubestow.plugin.fast import FloatArray, NodeView, Rows

_DEFAULT_WEIGHT = 0.5
_COLUMNS = ("measured", *((name, what) for name in RESOURCES for what in ("capacity", "requested", "limit", "risk")))
_LARGEST_VARIANCE = 0.99
"""The share of the largest possible variance up to which a distribution can be fitted."""


class LowRiskOverCommitmentArgs(LoadArgs, frozen=True, kw_only=True):
    """The arguments of the plugin."""

    smoothingWindowSize: int = 5
    """The number of measurements over which averages were taken, which makes them vary less."""
    riskLimitWeights: dict[str, float] = {}
    """By resource, the weight of the risk by limits, from 0 to 1; the rest is that of the risk by load."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("smoothingWindowSize")
        for name, weight in self.riskLimitWeights.items():
            if not 0 <= weight <= 1:
                raise ValueError(f"riskLimitWeights[{name}]: Invalid value: {weight}: must be from 0 to 1")


class LowRiskOverCommitment(LoadScorer):
    """Scores nodes by the risk that limits or measured load exceed the capacity; the worse of CPU and memory counts."""

    name = "LowRiskOverCommitment"

    def __init__(self, args: LowRiskOverCommitmentArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._smoothing = sqrt(args.smoothingWindowSize)
        self._weights = [args.riskLimitWeights.get(name, _DEFAULT_WEIGHT) for name in RESOURCES]
        self._usages = ByPod(lambda pod: usage_of(signature_of(pod)))
        self._pods = handle.pods.index_by(lambda pod: pod.pod.spec.nodeName or None, read_in_cycle=False)
        self._pods.on_change(self.update)

    def sign(self, pod: PodInfo) -> Hashable:
        return usage_of(signature_of(pod.pod))

    def rate(self, pod: PodInfo, view: NodeView, rows: Rows) -> FloatArray:
        usage = usage_of(signature_of(pod.pod))
        largest, *columns = self.columns.stack(_COLUMNS, view, rows)
        if not any((*usage.requests, *usage.limits)):
            return np.zeros_like(largest)
        for number in range(len(RESOURCES)):
            capacity, requested, limit, load_risk = columns[4 * number : 4 * number + 4]
            requested = np.minimum(requested + usage.requests[number], capacity)
            limit = limit + usage.limits[number]
            limit_risk = np.where(limit > capacity, (limit - capacity) / (limit - requested), 0)
            weight = self._weights[number]
            largest = np.maximum(largest, np.clip(weight * limit_risk + (1 - weight) * load_risk, 0, 1))
        scores: FloatArray = rounded((1 - largest) * MAX_SCORE)
        return scores

    def numbers_of(self, node: str, measured: Numbers) -> Numbers:
        nodes = self.handle.cluster.nodes
        row, found = nodes.row_of.get(node), dict[Hashable, float]()
        if row is None:
            return found
        usages = self._usages.of_node(node, self._pods.assigned(node))
        found["measured"] = 0.0
        for number, name in enumerate(RESOURCES):
            capacity = int(nodes.allocatable[nodes.resource_index[name], row])
            requested = min(sum(usage.requests[number] for usage in usages), capacity)
            limit = sum(usage.limits[number] for usage in usages)
            found[name, "capacity"], found[name, "requested"], found[name, "limit"] = capacity, requested, limit
            average = measured.get(name)
            found[name, "risk"] = 0.0
            if average is not None and capacity > 0:
                deviation = min(max(measured[name, "deviation"] / 100, 0.0), 1.0) * self._smoothing
                found[name, "risk"] = _risk_by_load(average / 100, deviation, requested, limit, capacity)
        return found


@lru_cache(maxsize=16384)
def _risk_by_load(average: float, deviation: float, requested: int, limit: int, capacity: int) -> float:
    """Return the probability that a node uses more than its pods request, given that it uses at most their limits."""
    average = min(max(average, 0.0), 1.0)
    deviation = min(deviation, sqrt(average * (1 - average) * _LARGEST_VARIANCE))
    threshold = requested / capacity
    fits = bool(average) and bool(deviation)
    below = probability_below(threshold, average, deviation) if fits else float(not average or average <= threshold)
    if limit < capacity and requested <= limit:
        if limit == 0:
            below = 1.0
        elif fits and (below_limit := probability_below(limit / capacity, average, deviation)) > 0:
            below = min(below / below_limit, 1.0)
    return 1 - below
