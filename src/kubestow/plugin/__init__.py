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

from typing import TYPE_CHECKING, Any

from kubestow.api.custom_kinds import CustomObject, ObjectMeta, custom_resource, unstructured
from kubestow.api.meta import RawQuantity
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.requests import format_quantities, parse_quantities
from kubestow.api.workloads import PriorityClass
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pod_index import PodIndex
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.declarations import watch
from kubestow.scheduler.framework.handle import Handle, WaitingPod
from kubestow.scheduler.framework.placements import GroupVictims, PlacedPods, Placement, TriedGroup, VictimUnit
from kubestow.scheduler.framework.plain import NodeRow
from kubestow.scheduler.framework.plugin import (
    Bind,
    FailedEvaluation,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    QueueSort,
    Requeues,
    Reserve,
    Score,
)
from kubestow.scheduler.framework.polling import PolledValue, Timer
from kubestow.scheduler.framework.registry import not_a_hook
from kubestow.scheduler.framework.results import (
    MAX_SCORE,
    SKIP,
    Candidates,
    Code,
    Narrowed,
    PluginError,
    PostFilterResult,
    Rejection,
    Skip,
    Wait,
    unresolvable,
    unschedulable,
)
from kubestow.scheduler.framework.scope import Index, Objects

if TYPE_CHECKING:
    from kubestow.plugin.preemption import Preemption

__all__ = [
    "MAX_SCORE",
    "SKIP",
    "Action",
    "Bind",
    "Candidates",
    "Code",
    "CustomObject",
    "FailedEvaluation",
    "Filter",
    "GroupVictims",
    "Handle",
    "Index",
    "Narrowed",
    "Node",
    "NodeRow",
    "ObjectMeta",
    "Objects",
    "Permit",
    "PlacedPods",
    "Placement",
    "PluginError",
    "Pod",
    "PodIndex",
    "PodInfo",
    "PolledValue",
    "PostBind",
    "PostFilter",
    "PostFilterResult",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "Preemption",
    "PriorityClass",
    "QueueSort",
    "RawQuantity",
    "Registration",
    "Rejection",
    "Requeues",
    "Reserve",
    "Resource",
    "Score",
    "Skip",
    "Timer",
    "TriedGroup",
    "VictimUnit",
    "Wait",
    "WaitingPod",
    "custom_resource",
    "format_quantities",
    "not_a_hook",
    "on",
    "parse_quantities",
    "unresolvable",
    "unschedulable",
    "unstructured",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Load the engine of preemption only if a plugin needs it: this module is loaded at the start of a scheduler."""
    if name == "Preemption":
        from kubestow.plugin.preemption import Preemption

        return Preemption
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
