"""Scores as a piecewise linear function of utilization, given by the score at some utilizations."""

from collections.abc import Sequence

import numpy as np

from kubestow.config.plugin_args import UtilizationShapePoint
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.framework.results import MAX_SCORE

_SCALE = MAX_SCORE // 10
"""Scores of points are from 0 to 10."""


def score_table(shape: Sequence[UtilizationShapePoint]) -> IntArray:
    """Return the score for every utilization from 0 to 100."""
    points = [(point.utilization, point.score * _SCALE) for point in shape]
    return np.array([_on_line(points, utilization) for utilization in range(101)], np.int64)


def _on_line(points: list[tuple[int, int]], utilization: int) -> int:
    for i, (end, score) in enumerate(points):
        if utilization <= end:
            if i == 0:
                return score
            start, before = points[i - 1]
            rise = (score - before) * (utilization - start)
            # Rounds towards zero, also where the line falls.
            return before + int(rise / (end - start))
    return points[-1][1] if points else 0
