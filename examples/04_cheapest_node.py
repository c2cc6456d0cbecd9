"""Prefer cheap nodes: nodes carry what they cost an hour in the label `cost`; those without it count as dearest."""

import numpy as np

from kubestow.plugin import MAX_SCORE

DEAREST = 1_000_000_000


class CheapestNode:
    name = "CheapestNode"

    def __init__(self, args, handle):
        pass

    def score(self, state, pod, node):
        # In thousandths, because scores are whole numbers; `normalize` turns them round.
        try:
            return round(float(node.labels["cost"]) * 1000)
        except (KeyError, ValueError, OverflowError):
            return DEAREST

    def normalize(self, state, pod, view, rows, scores):
        dearest, cheapest = scores.max(), scores.min()
        if dearest == cheapest:
            return np.full_like(scores, MAX_SCORE)
        return (dearest - scores) * MAX_SCORE // (dearest - cheapest)
