"""TightestPlacement: a pod group goes to the smallest topology domain that takes it, and leaves little unused there.

Large domains stay free for large groups. It is not one of kube-scheduler's plugins, and enabled only by name.
"""

from collections.abc import Sequence

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.nodes import CPU
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import PlacedPods, TriedGroup
from kubestow.scheduler.framework.results import MAX_SCORE


class TightestPlacement:
    """Prefers placements with few nodes, and of those the one with the least CPU left."""

    name = "TightestPlacement"

    def __init__(self, args: None, handle: Handle) -> None:
        self._nodes = handle.cluster.nodes

    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> IntArray:
        loose = [(len(placed.placement.rows), self._left(placed)) for placed in candidates]
        ranks = {key: rank for rank, key in enumerate(sorted(set(loose)))}
        worst = max(len(ranks) - 1, 1)
        return np.array([MAX_SCORE * (worst - ranks[key]) // worst for key in loose], np.int64)

    def _left(self, placed: PlacedPods) -> int:
        """What would be left of the CPUs."""
        rows, nodes = placed.placement.rows, self._nodes
        free = int((nodes.allocatable[CPU][rows] - nodes.requested[CPU][rows]).sum())
        return free - sum(pod.requests.amounts.get("cpu", 0) for pod in placed.pods)
