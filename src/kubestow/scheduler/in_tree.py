"""The built-in plugins, each imported on demand.

A new one also needs its extension points in `config.plugin_points.IN_TREE`.
"""

from importlib import import_module
from typing import Any

from kubestow.scheduler.framework.registry import Factory, Registry

MODULES = {
    "DefaultBinder": "default_binder",
    "DefaultPreemption": "default_preemption",
    "DeferredPodScheduling": "deferred_pod_scheduling",
    "DynamicResources": "dynamic_resources",
    "GangScheduling": "gang_scheduling",
    "ImageLocality": "image_locality",
    "InterPodAffinity": "inter_pod_affinity",
    "NodeAffinity": "node_affinity",
    "NodeDeclaredFeatures": "node_declared_features",
    "NodeLabel": "legacy.node_label",
    "NodeName": "node_name",
    "NodePorts": "node_ports",
    "NodePreferAvoidPods": "legacy.node_prefer_avoid_pods",
    "NodeResourcesBalancedAllocation": "node_resources_balanced_allocation",
    "NodeResourcesFit": "node_resources_fit",
    "NodeResourcesLeastAllocated": "legacy.node_resources_least_allocated",
    "NodeResourcesMostAllocated": "legacy.node_resources_most_allocated",
    "NodeUnschedulable": "node_unschedulable",
    "NodeVolumeLimits": "node_volume_limits",
    "PodGroupPodsCount": "pod_group_pods_count",
    "PodTopologySpread": "pod_topology_spread",
    "PrioritySort": "priority_sort",
    "RequestedToCapacityRatio": "legacy.requested_to_capacity_ratio",
    "SchedulingGates": "scheduling_gates",
    "ServiceAffinity": "legacy.service_affinity",
    "TaintToleration": "taint_toleration",
    "TightestPlacement": "tightest_placement",
    "TopologyPlacementGenerator": "topology_placement_generator",
    "VolumeBinding": "volume_binding",
    "VolumeRestrictions": "volume_restrictions",
    "VolumeZone": "volume_zone",
}


def in_tree_registry() -> Registry:
    """Return a registry of the built-in plugins, to which others can be added."""
    return Registry({name: _factory(name) for name in MODULES})


def plugin_class(name: str) -> Any:
    """Return the class of a built-in plugin."""
    return getattr(import_module(f"kubestow.scheduler.plugins.{MODULES[name]}"), name)


def _factory(name: str) -> Factory:
    return lambda args, handle: plugin_class(name)(args, handle)
