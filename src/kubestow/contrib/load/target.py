"""TargetLoadPacking: fills nodes up to a utilization of their CPU, and avoids those above it."""

from collections.abc import Hashable
from math import inf

import numpy as np

from kubestow.contrib.containers import ByPod, signature_of
from kubestow.contrib.load.scorer import LoadScorer, Numbers
from kubestow.contrib.load.sources import LoadArgs
from kubestow.contrib.load.usage import expected_cpu, rounded
from kubestow.plugin import Handle, Pod, PodInfo, RawQuantity, parse_quantities
from kubestow.plugin.fast import FloatArray, NodeView, Rows

_REPORT_SECONDS = 60.0
"""The time until a new pod shows in measurements."""


class TargetLoadPackingArgs(LoadArgs, frozen=True, kw_only=True):
    """The arguments of the plugin."""

    defaultRequests: dict[str, RawQuantity] = {}
    """The CPU that a container without request and limit is expected to use; 1 by default."""
    defaultRequestsMultiplier: str = "1.5"
    """The expected use of a container without a limit, as a multiple of its request."""
    targetUtilization: int = 40
    """In percent."""

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            usable = 0 < float(self.defaultRequestsMultiplier) < inf
        except ValueError:
            usable = False
        if not usable:
            value = self.defaultRequestsMultiplier
            raise ValueError(f'defaultRequestsMultiplier: Invalid value: "{value}": must be a positive number')
        if not 0 < self.targetUtilization <= 100:
            raise ValueError(f"targetUtilization: Invalid value: {self.targetUtilization}: must be from 1 to 100")
        try:
            parse_quantities(self.defaultRequests)
        except ValueError as error:
            raise ValueError(f"defaultRequests: {error}") from None


class TargetLoadPacking(LoadScorer):
    """Scores nodes by the utilization of their CPU with the pod: the closer below the target, the better."""

    name = "TargetLoadPacking"

    def __init__(self, args: TargetLoadPackingArgs, handle: Handle) -> None:
        self._multiplier = float(args.defaultRequestsMultiplier)
        self._target = args.targetUtilization
        self._default = parse_quantities(args.defaultRequests or {"cpu": 1}).get("cpu", 0)
        super().__init__(args, handle)
        self._placed_at: dict[str, dict[str, float]] = {}
        """By node, when each of its pods was placed, by UID; pods that ran before this scheduler were placed at 0."""
        self._used = ByPod(self._used_by)
        self._pods = handle.pods.index_by(lambda pod: pod.pod.spec.nodeName or None, read_in_cycle=False)
        self._pods.on_change(self._pods_changed)

    def sign(self, pod: PodInfo) -> Hashable:
        return self._used_by(pod.pod)

    def rate(self, pod: PodInfo, view: NodeView, rows: Rows) -> FloatArray:
        measured, unmeasured, capacity = self.columns.stack(("latest cpu", "unmeasured", "capacity"), view, rows)
        added = 100 * (unmeasured + self._used_by(pod.pod)) / capacity
        percent = np.where(capacity == 0, 0 * measured, measured + added)
        target = self._target
        below = (100 - target) * percent / target + target
        above = target * (100 - percent) / np.maximum(100 - target, 1)
        scores: FloatArray = rounded(np.where(percent > 100, 0, np.where(percent > target, above, below)))
        return scores

    def numbers_of(self, node: str, measured: Numbers) -> Numbers:
        placed, since = self._placed_at.get(node, {}), self.measured_until - _REPORT_SECONDS
        recent = [pod for pod in self._pods.assigned(node) if placed.get(pod.uid, 0.0) > since]
        unmeasured = sum(self._used.of_node(node, recent))
        return {**measured, "unmeasured": unmeasured, "capacity": self.capacity(node).get("cpu", np.nan)}

    def _used_by(self, pod: Pod) -> int:
        return expected_cpu(signature_of(pod), self._multiplier, self._default)

    def _pods_changed(self, node: str) -> None:
        known, now = self._placed_at.get(node, {}), self.handle.clock.now()
        found = {
            pod.uid: known.get(pod.uid, now if pod.pod.status.phase == "Pending" else 0.0)
            for pod in self._pods.assigned(node)
        }
        if found == known:
            # A write of the same numbers declares that results have not changed.
            self.columns.set(node, self.columns.values_of(node))
            return
        if found:
            self._placed_at[node] = found
        else:
            self._placed_at.pop(node, None)
        self.update(node)
