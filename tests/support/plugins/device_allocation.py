"""Allocation of claims on one node."""

from typing import Any

from kubestow.api.devices import AllocationResult
from kubestow.config.features import Features
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.dynamic_resources import DynamicResources
from kubestow.testing import make_node
from support.plugins.device_world import (
    claiming,
    device_class,
)
from support.plugins.plugin_calls import rejected


def cluster_of(*objects: Any, features: Features | None = None) -> tuple[Cluster, DynamicResources]:
    """Return node `n` in zone z, class `gpu`, and these objects."""
    cluster = Cluster(features)
    cluster.set_node(make_node("n", zone="z"))
    for thing in (device_class(), *objects):
        cluster.set_object(thing)
    return cluster, DynamicResources(DynamicResourcesArgs(), offline_handle(cluster, features))


def got(*objects: Any, features: Features | None = None, claims: tuple[str, ...] = ("c",)) -> list[AllocationResult]:
    """Return the allocations for the claims of a pod on node `n`; empty if they cannot be allocated."""
    cluster, plugin = cluster_of(*objects, features=features)
    pod = claiming("p", *claims)
    if rejected(plugin, cluster, pod):
        return []
    state: Any = plugin.pre_filter(PodInfo(pod))
    plugin.reserve(state, PodInfo(pod), "n")
    return list(state.allocations.values())


def names(allocations: list[AllocationResult]) -> list[str]:
    return [f"{of.pool}/{of.device}" for allocation in allocations for of in allocation.devices.results]
