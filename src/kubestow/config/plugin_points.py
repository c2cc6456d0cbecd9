"""The extension points, and those that each in-tree plugin implements."""

from collections.abc import Mapping
from typing import TypeAlias

PluginPoints: TypeAlias = Mapping[str, frozenset[str]]
"""The extension points that each existing plugin implements."""

EXTENSION_POINTS = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
"""All extension points, in the order in which they are resolved."""

SCORING_POINTS = frozenset({"score", "placementScore"})
"""Extension points at which plugins have a weight."""


def _points(table: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {name: frozenset(points.split()) for name, points in table.items()}


LEGACY = _points(
    {
        "NodeLabel": "filter score",
        "NodePreferAvoidPods": "score",
        "NodeResourcesLeastAllocated": "score",
        "NodeResourcesMostAllocated": "score",
        "RequestedToCapacityRatio": "score",
        "ServiceAffinity": "preFilter filter score",
    }
)
"""Plugins that kube-scheduler no longer has; a Policy or a profile can still enable them here."""

OWN = _points({"TightestPlacement": "placementScore"})
"""Plugins that only exist here, not in kube-scheduler."""

IN_TREE: PluginPoints = {**LEGACY, **OWN} | _points(
    {
        "DefaultBinder": "bind",
        "DefaultPreemption": "preEnqueue postFilter podGroupPostFilter",
        "DeferredPodScheduling": "preFilter filter permit",
        "DynamicResources": "preEnqueue preFilter filter postFilter podGroupPostFilter score reserve preBind",
        "GangScheduling": "preEnqueue permit",
        "ImageLocality": "score",
        "InterPodAffinity": "preFilter filter preScore score",
        "NodeAffinity": "preFilter filter preScore score",
        "NodeDeclaredFeatures": "preFilter filter",
        "NodeName": "preFilter filter",
        "NodePorts": "preFilter filter",
        "NodeResourcesBalancedAllocation": "preScore score",
        "NodeResourcesFit": "preFilter filter preScore score placementScore",
        "NodeUnschedulable": "preFilter filter",
        "NodeVolumeLimits": "preFilter filter",
        "PodGroupPodsCount": "placementScore",
        "PodTopologySpread": "preFilter filter preScore score",
        "PrioritySort": "queueSort",
        "SchedulingGates": "preEnqueue",
        "TaintToleration": "preFilter filter preScore score",
        "TopologyPlacementGenerator": "placementGenerate",
        "VolumeBinding": "preFilter filter reserve preBind preScore score",
        "VolumeRestrictions": "preFilter filter",
        "VolumeZone": "preFilter filter",
    }
)

GATE_OF_PLUGIN = {
    "DeferredPodScheduling": "InPlacePodVerticalScalingSchedulerPreemption",
    "DynamicResources": "DynamicResourceAllocation",
    "GangScheduling": "GenericWorkload",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
}
"""Plugins that are enabled by default only if a feature gate is on. They exist in either case."""
