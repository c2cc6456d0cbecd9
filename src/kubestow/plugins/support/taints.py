"""Taints over columns: each distinct list of taints is judged once, and the rows take the verdict of theirs."""

from collections.abc import Callable

import numpy as np

from kubestow.cluster.arrays import IntArray, Rows
from kubestow.cluster.view import NodeView
from kubestow.model.node import Taint

REPELLING = ("NoSchedule", "NoExecute")
"""Effects that keep a pod off a node."""


def by_taints(view: NodeView, rows: Rows, judge: Callable[[tuple[Taint, ...]], int]) -> IntArray:
    """A number for each row, which depends on its taints alone."""
    lists = view.taint_sets.taints
    return np.fromiter(map(judge, lists), np.int64, len(lists))[view.taint_set[rows]]
