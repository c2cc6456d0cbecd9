"""Optional forms for fast plugins: the vector form, signatures, and `with_changes`, which adapts a state.

They improve performance in large clusters only. `kubestow.testing.check_forms` verifies that their results equal those
of the plain form.
"""

from kubestow.scheduler.cluster.arrays import BoolArray, FloatArray, IntArray, Rows
from kubestow.scheduler.cluster.node_columns import NodeColumns
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.plugin import (
    Change,
    FilterRows,
    NormalizeScore,
    PodsRead,
    PreScore,
    RowsOfPods,
    ScoreRows,
    Signs,
)
from kubestow.scheduler.framework.results import Rejections

__all__ = [
    "BoolArray",
    "Change",
    "FilterRows",
    "FloatArray",
    "IntArray",
    "NodeColumns",
    "NodeView",
    "NormalizeScore",
    "PodsRead",
    "PreScore",
    "Rejections",
    "Rows",
    "RowsOfPods",
    "ScoreRows",
    "Signs",
]
