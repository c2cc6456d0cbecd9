"""For plugins that must be fast: the vector form, signatures, and forms that follow changes.

A plugin gains from these in a large cluster only. `kubestow.testing.check_forms` shows that they say what the plain
form says.
"""

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.plugin import Change, PodsRead, RowsOfPods
from kubestow.scheduler.framework.results import Rejections

__all__ = ["BoolArray", "Change", "IntArray", "NodeView", "PodsRead", "Rejections", "Rows", "RowsOfPods"]
