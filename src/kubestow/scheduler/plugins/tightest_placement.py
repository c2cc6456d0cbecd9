"""TightestPlacement: places a pod group in the smallest topology domain that fits, with the least CPU left over.

Large domains stay free for large groups. kube-scheduler does not have this plugin; it must be enabled by name.
"""

from collections.abc import Sequence

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.nodes import CPU
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import PlacedPods, TriedGroup
from kubestow.scheduler.framework.results import MAX_SCORE


class TightestPlacement:
    """Prefers placements with few nodes, then with the least CPU left."""

    name = "TightestPlacement"

    def __init__(self, args: None, handle: Handle) -> None:
        self._nodes = handle.cluster.nodes

    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> IntArray:
        keys = [(len(placed.placement.rows), self._cpu_left(placed)) for placed in candidates]
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        worst = max(len(ranks) - 1, 1)
        return np.array([MAX_SCORE * (worst - ranks[key]) // worst for key in keys], np.int64)

    def _cpu_left(self, placed: PlacedPods) -> int:
        """Return the free CPU of the placement after its pods are placed."""
        rows, nodes = placed.placement.rows, self._nodes
        free = int((nodes.allocatable[CPU][rows] - nodes.requested[CPU][rows]).sum())
        return free - sum(pod.requests.amounts.get("cpu", 0) for pod in placed.pods)
