"""The extension points, and which of them each in-tree plugin implements."""

from collections.abc import Mapping
from typing import TypeAlias

PluginPoints: TypeAlias = Mapping[str, frozenset[str]]
"""Plugins that exist, and the extension points each implements."""

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
)
"""In the order in which they are resolved."""

SCORING_POINTS = frozenset({"score", "placementScore"})
"""Those at which a plugin's weight counts."""


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
"""Plugins that kube-scheduler no longer has, and that a Policy or a profile may still name here."""

OWN = _points({"TightestPlacement": "placementScore"})
"""Plugins that kube-scheduler does not have."""

IN_TREE: PluginPoints = {**LEGACY, **OWN} | _points(
    {
        "DefaultBinder": "bind",
        "DefaultPreemption": "preEnqueue postFilter",
        "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
        "GangScheduling": "preEnqueue permit",
        "ImageLocality": "score",
        "InterPodAffinity": "preFilter filter preScore score",
        "NodeAffinity": "preFilter filter preScore score",
        "NodeDeclaredFeatures": "preFilter filter",
        "NodeName": "filter",
        "NodePorts": "preFilter filter",
        "NodeResourcesBalancedAllocation": "preScore score",
        "NodeResourcesFit": "preFilter filter preScore score placementScore",
        "NodeUnschedulable": "filter",
        "NodeVolumeLimits": "preFilter filter",
        "PodGroupPodsCount": "placementScore",
        "PodTopologySpread": "preFilter filter preScore score",
        "PrioritySort": "queueSort",
        "SchedulingGates": "preEnqueue",
        "TaintToleration": "filter preScore score",
        "TopologyPlacementGenerator": "placementGenerate",
        "VolumeBinding": "preFilter filter reserve preBind preScore score",
        "VolumeRestrictions": "preFilter filter",
        "VolumeZone": "preFilter filter",
    }
)

GATE_OF_PLUGIN = {
    "DynamicResources": "DynamicResourceAllocation",
    "GangScheduling": "GangScheduling",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
}
"""Plugins that are enabled by default only where a feature gate is on. All of them exist either way."""
