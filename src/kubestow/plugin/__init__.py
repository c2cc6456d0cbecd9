"""The public API for authors of plugins: all names that a plugin needs.

    from kubestow.plugin import unschedulable

    class OnlySsd:
        name = "OnlySsd"

        def __init__(self, args, handle): ...

        def filter(self, state, pod, node):
            return None if node.labels.get("disk") == "ssd" else "node has no SSD"

`kubestow.plugin.fast` has optional forms for performance; `kubestow.testing` runs a plugin without a cluster.

Promise: a change to these names, or to the objects passed to plugins, has an entry in the changelog.
"""

from kubestow.scheduler.cluster.events import Action, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import GroupVictims, PlacedPods, Placement, TriedGroup, VictimUnit
from kubestow.scheduler.framework.plain import NodeRow
from kubestow.scheduler.framework.results import (
    MAX_SCORE,
    SKIP,
    Code,
    Narrowed,
    PluginError,
    PostFilterResult,
    Rejection,
    Wait,
    unresolvable,
    unschedulable,
)

__all__ = [
    "MAX_SCORE",
    "SKIP",
    "Action",
    "Code",
    "GroupVictims",
    "Handle",
    "Narrowed",
    "NodeRow",
    "PlacedPods",
    "Placement",
    "PluginError",
    "PodInfo",
    "PostFilterResult",
    "Rejection",
    "Resource",
    "TriedGroup",
    "VictimUnit",
    "Wait",
    "on",
    "unresolvable",
    "unschedulable",
]
