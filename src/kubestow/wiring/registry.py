"""The plugins that come with the scheduler."""

from importlib import import_module
from typing import Any

from kubestow.framework.registry import Factory, Registry
from kubestow.plugins.default_binder import DefaultBinder
from kubestow.plugins.default_preemption import DefaultPreemption
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.gang_scheduling import GangScheduling
from kubestow.plugins.image_locality import ImageLocality
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.node_affinity import NodeAffinity
from kubestow.plugins.node_declared_features import NodeDeclaredFeatures
from kubestow.plugins.node_name import NodeName
from kubestow.plugins.node_ports import NodePorts
from kubestow.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_unschedulable import NodeUnschedulable
from kubestow.plugins.node_volume_limits import NodeVolumeLimits
from kubestow.plugins.pod_group_pods_count import PodGroupPodsCount
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.plugins.priority_sort import PrioritySort
from kubestow.plugins.scheduling_gates import SchedulingGates
from kubestow.plugins.taint_toleration import TaintToleration
from kubestow.plugins.tightest_placement import TightestPlacement
from kubestow.plugins.topology_placement_generator import TopologyPlacementGenerator
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.plugins.volume_restrictions import VolumeRestrictions
from kubestow.plugins.volume_zone import VolumeZone

IN_TREE: dict[str, Factory] = {
    "DefaultBinder": DefaultBinder,
    "DefaultPreemption": DefaultPreemption,
    "DynamicResources": DynamicResources,
    "GangScheduling": GangScheduling,
    "ImageLocality": ImageLocality,
    "InterPodAffinity": InterPodAffinity,
    "NodeAffinity": NodeAffinity,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
    "NodeName": NodeName,
    "NodePorts": NodePorts,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "NodeResourcesFit": NodeResourcesFit,
    "NodeUnschedulable": NodeUnschedulable,
    "NodeVolumeLimits": NodeVolumeLimits,
    "PodGroupPodsCount": PodGroupPodsCount,
    "PodTopologySpread": PodTopologySpread,
    "PrioritySort": PrioritySort,
    "SchedulingGates": SchedulingGates,
    "TaintToleration": TaintToleration,
    "TightestPlacement": TightestPlacement,
    "TopologyPlacementGenerator": TopologyPlacementGenerator,
    "VolumeBinding": VolumeBinding,
    "VolumeRestrictions": VolumeRestrictions,
    "VolumeZone": VolumeZone,
}


LEGACY = {
    "NodeLabel": "node_label",
    "NodePreferAvoidPods": "node_prefer_avoid_pods",
    "NodeResourcesLeastAllocated": "node_resources_least_allocated",
    "NodeResourcesMostAllocated": "node_resources_most_allocated",
    "RequestedToCapacityRatio": "requested_to_capacity_ratio",
    "ServiceAffinity": "service_affinity",
}
"""Plugins that few still name: their modules, imported when one is asked for."""


def in_tree_registry() -> Registry:
    """A registry to which plugins of one's own can be added."""
    return Registry({**IN_TREE, **{name: _legacy(name) for name in LEGACY}})


def plugin_class(name: str) -> Any:
    """The class of a plugin that comes with the scheduler."""
    if name in LEGACY:
        return getattr(import_module(f"kubestow.plugins.legacy.{LEGACY[name]}"), name)
    return IN_TREE[name]


def _legacy(name: str) -> Factory:
    return lambda args, handle: plugin_class(name)(args, handle)
