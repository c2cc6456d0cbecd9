"""The objects that are kept whole, because extenders get them as received from the API server."""

from collections.abc import Sequence

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.whole_objects import WholeNode, WholePendingPod, WholePod
from kubestow.config import configuration


def whole_kinds(configured: Sequence[configuration.Extender]) -> dict[type, type]:
    """Return the kinds of which extenders get the whole JSON, each with the type that keeps it."""
    kinds: dict[type, type] = {}
    if any(e.filterVerb or e.prioritizeVerb or e.preemptVerb for e in configured):
        victims_are_sent = any(e.preemptVerb and not e.nodeCacheCapable for e in configured)
        kinds[Pod] = WholePod if victims_are_sent else WholePendingPod
    if any((e.filterVerb or e.prioritizeVerb) and not e.nodeCacheCapable for e in configured):
        kinds[Node] = WholeNode
    return kinds
