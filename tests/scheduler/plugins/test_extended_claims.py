"""The claim for extended resources: its requests by container and node."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.devices import DeviceClass, ResourceClaim
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import DynamicResourcesArgs, NodeResourcesFitArgs
from kubestow.scheduler.cluster.devices.classes import classes_by_resource
from kubestow.scheduler.cluster.listers import Store
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.dynamic_resources import DynamicResources
from kubestow.scheduler.plugins.dynamic_resources.extended import claim_for, node_claim
from kubestow.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_node, make_pod
from support.plugins.device_world import device_class, device_slice, gpus
from support.plugins.plugin_calls import hint, rejected

GPU, NIC = "example.com/gpu", "example.com/nic"
CLASSES = classes_by_resource(
    [device_class("gpu", extendedResourceName=GPU), device_class("nic", extendedResourceName=NIC)]
)


def container(name: str, policy: str | None = None, **requests: int) -> dict[str, Any]:
    named = {f"example.com/{resource}": amount for resource, amount in requests.items()}
    found: dict[str, Any] = {"name": name, "resources": {"requests": {"cpu": "1", **named}}}
    return found | ({"restartPolicy": policy} if policy else {})


def claim_requests(inits: list[dict[str, Any]], containers: list[dict[str, Any]], *resources: str) -> tuple[Any, Any]:
    """Return requests as name -> (class, count), and mappings as container -> requests."""
    pod = make_pod("p", spec={"containers": containers, "initContainers": inits})
    found = node_claim(claim_for(pod, Store()), pod, resources or (GPU,), CLASSES)
    requests = {
        request.name: (request.exactly.deviceClassName, request.exactly.count)
        for request in found.claim.spec.devices.requests
        if request.exactly is not None
    }
    mapped: dict[str, list[str]] = {}
    for mapping in found.mappings:
        mapped.setdefault(mapping.containerName, []).append(mapping.requestName)
    return requests, mapped


def test_a_request_for_each_container_and_resource() -> None:
    """Names have the indexes of container and resource; resources are ordered by name among all requests."""
    requests, mapped = claim_requests([], [container("a", gpu=1, nic=2), container("b", nic=1)], GPU, NIC)
    assert requests == {
        "container-0-request-1": ("gpu", 1),
        "container-0-request-2": ("nic", 2),
        "container-1-request-1": ("nic", 1),
    }
    assert mapped == {"a": ["container-0-request-1", "container-0-request-2"], "b": ["container-1-request-1"]}


def test_init_containers_reuse_devices_of_later_containers() -> None:
    """Additional devices are requested once, for the init container that needs most."""
    inits = [container("i0", gpu=3), container("i1", gpu=2), container("side", "Always", gpu=1)]
    requests, mapped = claim_requests(inits, [container("a", gpu=1)])
    assert requests == {
        "container-0-request-1": ("gpu", 1),
        "container-2-request-1": ("gpu", 1),
        "container-3-request-1": ("gpu", 1),
    }
    own, side, last = sorted(requests)
    assert mapped == {"i0": [side, last, own], "i1": [side, last], "side": [side], "a": [last]}


def test_several_init_containers_share_the_largest_request() -> None:
    """The mappings of all init containers name the largest request."""
    requests, mapped = claim_requests([container("i0", gpu=2), container("i1", gpu=4)], [container("a")])
    assert requests == {"container-1-request-1": ("gpu", 4)}
    assert mapped == {"i0": ["container-1-request-1"], "i1": ["container-1-request-1"]}


def test_the_newest_class_of_a_resource_is_used() -> None:
    """Of several classes for a resource, the newest is used, then the first by name."""

    def of(name: str, created: str) -> DeviceClass:
        meta = {"name": name, "creationTimestamp": created}
        return convert(DeviceClass, {"metadata": meta, "spec": {"extendedResourceName": GPU}})

    old, new, same = of("a", "2026-01-01T00:00:00Z"), of("c", "2026-02-01T00:00:00Z"), of("b", "2026-02-01T00:00:00Z")
    found = classes_by_resource([new, old, same])
    assert found[GPU].metadata.name == "b"
    assert found["deviceclass.resource.kubernetes.io/a"].metadata.name == "a"


def test_a_claim_of_an_earlier_attempt_is_found() -> None:
    """It is found by its owner."""
    pod = make_pod("p")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.metadata.uid, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    meta = {"name": "x", "namespace": "default", "ownerReferences": [owner], "annotations": annotations}
    cluster = Cluster()
    cluster.set_object(convert(ResourceClaim, {"metadata": meta}))
    assert claim_for(pod, cluster.listers.resource_claims).metadata.name == "x"
    assert claim_for(make_pod("q"), cluster.listers.resource_claims).metadata.name == "<extended-resources>"


@pytest.fixture
def cluster() -> Cluster:
    """Return node `plain` with an own amount of two GPUs, `devices` with two devices, `bare` with none."""
    cluster = Cluster()
    cluster.set_object(device_class("gpu", extendedResourceName=GPU))
    cluster.set_node(make_node("plain", resources={GPU: 2}))
    cluster.set_node(make_node("devices"))
    cluster.set_node(make_node("bare"))
    cluster.set_object(device_slice("devices", gpus(2)))
    return cluster


def test_each_node_is_filtered_by_one_plugin(cluster: Cluster) -> None:
    """NodeResourcesFit filters nodes with an own amount of the resource, DynamicResources the others."""
    handle = offline_handle(cluster)
    fit = NodeResourcesFit(NodeResourcesFitArgs(), handle)
    devices = DynamicResources(DynamicResourcesArgs(), handle)
    small, large = make_pod("p", resources={GPU: 2}), make_pod("p", resources={GPU: 3})
    assert rejected(fit, cluster, small) == {}
    assert rejected(fit, cluster, large).keys() == {"plain"}
    assert rejected(devices, cluster, small).keys() == {"bare"}
    assert rejected(devices, cluster, large).keys() == {"devices", "bare"}
    assert fit.sign(PodInfo(small)) is None
    assert fit.sign(PodInfo(make_pod("p", cpu=1))) is not None
    row = cluster.nodes.row_of["plain"]
    assert fit.row_rejection(fit.pre_filter(PodInfo(small)), cluster.nodes, row) is None
    assert fit.row_rejection(fit.pre_filter(PodInfo(small)), cluster.nodes, cluster.nodes.row_of["bare"]) is None
    passing = fit.passing_rows(fit.pre_filter(PodInfo(large)), PodInfo(large), cluster.nodes, slice(0, 3))
    assert passing.tolist() == [False, True, True]


def test_an_unknown_resource_rejects_nodes(cluster: Cluster) -> None:
    """An extended resource without devices rejects nodes that do not offer it."""
    plugin = DynamicResources(DynamicResourcesArgs(), offline_handle(cluster))
    found = rejected(plugin, cluster, make_pod("p", resources={GPU: 1, NIC: 1}))
    assert {rejection.message for rejection in found.values()} == {"cannot fit resource"}


def test_nodes_that_may_have_devices_requeue(cluster: Cluster) -> None:
    """A node without an own amount of the resource may have devices for it."""
    fit = NodeResourcesFit(NodeResourcesFitArgs(), offline_handle(cluster))
    pod: Pod = make_pod("p", cpu=1, resources={GPU: 2})
    assert hint(fit, pod, None, make_node("new")) is True
    assert hint(fit, pod, None, make_node("new", cpu="500m")) is False
    assert hint(fit, pod, None, make_node("new", resources={GPU: 1})) is False
    assert hint(fit, pod, make_node("old"), make_node("old", memory="64Gi")) is True
