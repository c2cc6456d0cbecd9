"""Normalization of scores to the range 0..MAX_SCORE."""

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray, largest
from kubestow.scheduler.framework.results import MAX_SCORE


def proportional(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Scale scores so that the highest becomes MAX_SCORE; with `reverse`, low scores become high ones."""
    highest = largest(scores) if len(scores) else 0
    if highest <= 0:
        return np.full(len(scores), MAX_SCORE, np.int64) if reverse else scores
    shares = MAX_SCORE * scores // highest
    return MAX_SCORE - shares if reverse else shares
