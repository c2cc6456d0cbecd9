"""For plugins that must be fast: the vector form, signatures, and forms that follow changes.

A plugin gains from these in a large cluster only. `kubestow.testing.check_forms` shows that they say what the plain
form says.
"""

from kubestow.cluster.arrays import BoolArray, IntArray, Rows
from kubestow.cluster.view import NodeView
from kubestow.framework.plugin import Change, PodsRead, RowsOfPods
from kubestow.framework.results import Rejections

__all__ = ["BoolArray", "Change", "IntArray", "NodeView", "PodsRead", "Rejections", "Rows", "RowsOfPods"]
