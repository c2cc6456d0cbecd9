"""Scores by extended resources that are backed by devices equal those of resources that nodes offer."""

import logging

import pytest

from kubestow.config.features import Features
from kubestow.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_node, make_pod
from support.plugins.device_world import DRIVER, allocated, device, device_class, device_slice, gpus
from support.plugins.plugin_calls import make, scores

GPU = "example.com/gpu"
BY_CLASS = "deviceclass.resource.kubernetes.io/gpu"


def fit(kind: str = "LeastAllocated", *resources: str) -> NodeResourcesFitArgs:
    specs = tuple(ResourceSpec(name, 1) for name in resources or (GPU,))
    return NodeResourcesFitArgs(scoringStrategy=ScoringStrategy(kind, specs))


def cluster_with_devices(*selectors: str, features: Features | None = None) -> Cluster:
    """Return nodes with 4 devices (1 allocated), 2 devices, an own amount of 10 (2 used), and none."""
    cluster = Cluster(features)
    for name in ("four", "two", "none"):
        cluster.set_node(make_node(name))
    cluster.set_node(make_node("itself", resources={GPU: 10}))
    cluster.set_pod(make_pod("x", node="itself", resources={GPU: 2}))
    cluster.set_object(device_class("gpu", *selectors, extendedResourceName=GPU))
    cluster.set_object(device_slice("four", gpus(4, model="a")))
    cluster.set_object(device_slice("two", [device("one", model="a"), device("other", model="b")]))
    cluster.set_object(device_slice("itself", gpus(4, model="a")))
    cluster.set_object(allocated("c", "four", "gpu-0"))
    return cluster


def scored(cluster: Cluster, args: NodeResourcesFitArgs, resource: str = GPU) -> dict[str, int]:
    plugin = make(NodeResourcesFit, args, cluster)
    return scores(plugin, cluster, make_pod("p", resources={resource: 1})) or {}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LeastAllocated", {"four": 50, "two": 50, "itself": 70, "none": 0}),
        ("MostAllocated", {"four": 50, "two": 50, "itself": 30, "none": 0}),
    ],
)
def test_devices_count_on_nodes_without_own_amount(kind: str, expected: dict[str, int]) -> None:
    """Allocated devices count as used; devices on nodes with an own amount do not count."""
    assert scored(cluster_with_devices(), fit(kind)) == expected


def test_only_devices_of_the_class_count() -> None:
    """The expressions of the class select devices; its implicit resource counts in the same way."""
    cluster = cluster_with_devices(f"device.attributes['{DRIVER}'].model == 'b'")
    assert scored(cluster, fit()) == {"four": 0, "two": 0, "itself": 70, "none": 0}
    assert scored(cluster, fit("MostAllocated", BY_CLASS), BY_CLASS) == {"four": 0, "two": 100, "itself": 0, "none": 0}


def test_devices_need_not_be_allocatable() -> None:
    """Devices of an incomplete pool count; those for other nodes do not."""
    cluster = cluster_with_devices()
    cluster.set_object(device_slice("none", gpus(2), slices=2))
    choosy = [device("here", nodeName="none"), device("there", nodeName="two")]
    cluster.set_object(device_slice("", choosy, pool="shared", perDeviceNodeSelection=True))
    assert scored(cluster, fit()) == {"four": 50, "two": 66, "itself": 70, "none": 66}


def test_an_expression_that_fails_counts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The error is logged, and pods are still scheduled."""
    caplog.set_level(logging.ERROR)
    cluster = cluster_with_devices(f"device.attributes['{DRIVER}'].unknown == 1")
    assert scored(cluster, fit()) == {"four": 0, "two": 0, "itself": 70, "none": 0}
    assert "Failed to calculate DRA resource capacity and allocated" in caplog.text


def test_without_the_gate_only_own_amounts_count() -> None:
    """Without the gate, devices do not count."""
    cluster = cluster_with_devices(features=Features(dra_extended_resource=False))
    assert scored(cluster, fit()) == {"four": 0, "two": 0, "itself": 70, "none": 0}


def test_balance_counts_devices() -> None:
    """A node with used CPU and free devices is brought into balance."""
    cluster = cluster_with_devices()
    cluster.set_pod(make_pod("busy", node="two", cpu="2"))
    args = NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)))
    plugin = make(NodeResourcesBalancedAllocation, args, cluster)
    found = scores(plugin, cluster, make_pod("p", resources={GPU: 1})) or {}
    assert found["two"] > found["none"] == 75 > found["four"]


def test_pods_with_device_requests_have_no_signature() -> None:
    """The free devices are not part of the state that equal pods share."""
    cluster = cluster_with_devices()
    pod, other = PodInfo(make_pod("p", resources={GPU: 1})), PodInfo(make_pod("q", cpu="1"))
    args = NodeResourcesBalancedAllocationArgs()
    for plugin in (make(NodeResourcesFit, fit(), cluster), make(NodeResourcesBalancedAllocation, args, cluster)):
        assert plugin.sign(pod) is None
        assert plugin.sign(other) is not None
