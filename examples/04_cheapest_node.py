"""Prefer cheap nodes: the label `cost` is the price per hour; nodes without it count as the most expensive ones."""

import numpy as np

from kubestow.plugin import MAX_SCORE

MOST_EXPENSIVE = 1_000_000_000


class CheapestNode:
    name = "CheapestNode"

    def __init__(self, args, handle):
        pass

    def score(self, state, pod, node):
        # In thousandths, because scores are whole numbers; `normalize` inverts them.
        try:
            return round(float(node.labels["cost"]) * 1000)
        except (KeyError, ValueError, OverflowError):
            return MOST_EXPENSIVE

    def normalize(self, state, pod, view, rows, scores):
        highest, lowest = scores.max(), scores.min()
        if highest == lowest:
            return np.full_like(scores, MAX_SCORE)
        return (highest - scores) * MAX_SCORE // (highest - lowest)
