"""PodGroupPodsCount: prefers placements that fit more pods of a group."""

from collections.abc import Sequence

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import PlacedPods, TriedGroup
from kubestow.scheduler.framework.results import MAX_SCORE


class PodGroupPodsCount:
    """Prefers placements that fit more pods of a group. Scheduled pods count too, which reduces differences."""

    name = "PodGroupPodsCount"

    def __init__(self, args: None, handle: Handle) -> None:
        self._groups = handle.cluster.groups

    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> IntArray:
        scheduled = 0 if self._groups is None or group.group is None else len(self._groups.scheduled(group.group))
        counts: IntArray = np.array([scheduled + len(placed.pods) for placed in candidates], np.int64)
        highest = int(counts.max(initial=0))
        if highest == 0:
            raise ValueError("no pods from pod group are assigned to any of the candidate placements")
        return counts * MAX_SCORE // highest
