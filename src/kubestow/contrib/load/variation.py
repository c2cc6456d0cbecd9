"""LoadVariationRiskBalancing: avoids nodes whose utilization is high or varies much."""

import math
from collections.abc import Hashable

import numpy as np

from kubestow.contrib.containers import signature_of
from kubestow.contrib.load.scorer import LoadScorer
from kubestow.contrib.load.sources import LoadArgs
from kubestow.contrib.load.usage import RESOURCES, rounded, usage_of
from kubestow.plugin import MAX_SCORE, Handle, PodInfo
from kubestow.plugin.fast import FloatArray, NodeView, Rows


class LoadVariationRiskBalancingArgs(LoadArgs, frozen=True, kw_only=True):
    """The arguments of the plugin."""

    safeVarianceMargin: float = 1.0
    """The weight of the standard deviation."""
    safeVarianceSensitivity: float = 1.0
    """The root of the standard deviation that counts: with 2, small variations weigh more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("safeVarianceMargin", "safeVarianceSensitivity"):
            if getattr(self, field) < 0:
                raise ValueError(f"{field}: Invalid value: {getattr(self, field)}: must not be negative")


class LoadVariationRiskBalancing(LoadScorer):
    """Scores nodes by the average utilization with the pod, plus the deviation; the worse of CPU and memory counts."""

    name = "LoadVariationRiskBalancing"

    def __init__(self, args: LoadVariationRiskBalancingArgs, handle: Handle) -> None:
        self._margin = args.safeVarianceMargin
        self._root = 1 / args.safeVarianceSensitivity if args.safeVarianceSensitivity else math.inf
        super().__init__(args, handle)

    def sign(self, pod: PodInfo) -> Hashable:
        return usage_of(signature_of(pod.pod)).requests

    def rate(self, pod: PodInfo, view: NodeView, rows: Rows) -> FloatArray:
        requests = usage_of(signature_of(pod.pod)).requests
        found = []
        for name, request in zip(RESOURCES, requests, strict=True):
            average, deviation = self.columns.stack((name, (name, "deviation")), view, rows) / 100
            capacity = view.allocatable[view.resource_index[name]][rows]
            used = np.clip(average, 0, 1) + request / capacity
            spread = np.clip(deviation, 0, 1) ** self._root * self._margin
            risk = (np.clip(used, 0, 1) + np.clip(spread, 0, 1)) / 2
            found.append(np.where((capacity > 0) | np.isnan(average), (1 - risk) * MAX_SCORE, 0))
        # A resource without measurements does not count.
        scores: FloatArray = rounded(np.fmin(*found))
        return scores
