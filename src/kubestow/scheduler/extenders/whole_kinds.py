"""Which objects are kept whole, because extenders are sent them as the API server has them."""

from collections.abc import Sequence

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.whole_objects import WholeNode, WholePendingPod, WholePod
from kubestow.config import configuration


def whole_kinds(configured: Sequence[configuration.Extender]) -> dict[type, type]:
    """The kinds of which extenders are sent all the JSON, and what stands for them so that it is kept."""
    kinds: dict[type, type] = {}
    if any(e.filterVerb or e.prioritizeVerb or e.preemptVerb for e in configured):
        victims_are_sent = any(e.preemptVerb and not e.nodeCacheCapable for e in configured)
        kinds[Pod] = WholePod if victims_are_sent else WholePendingPod
    if any((e.filterVerb or e.prioritizeVerb) and not e.nodeCacheCapable for e in configured):
        kinds[Node] = WholeNode
    return kinds
