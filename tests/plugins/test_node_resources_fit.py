"""NodeResourcesFit: a node must have room for what the pod requests; how full it is makes it better or worse."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.devices import DeviceClass
from kubestow.config.plugin_args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubestow.scheduler.framework.results import unresolvable, unschedulable
from kubestow.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing.builders import make_node, make_pod
from plugins.asking import cluster_of, hint, make, refused, scores

GPU = "example.com/gpu"


def plugin(args: NodeResourcesFitArgs | None = None, **features: Any) -> Any:
    return make(NodeResourcesFit, args or NodeResourcesFitArgs(), **features)


def strategy(kind: str, *resources: tuple[str, int], shape: Any = None) -> NodeResourcesFitArgs:
    points = tuple(UtilizationShapePoint(*point) for point in shape) if shape else ()
    param = RequestedToCapacityRatioParam(points) if shape else None
    specs = tuple(ResourceSpec(*spec) for spec in resources or (("cpu", 1), ("memory", 1)))
    return NodeResourcesFitArgs(scoringStrategy=ScoringStrategy(kind, specs, param))


USED = cluster_of(
    make_node("n", cpu="4", memory="8Gi", resources={"ephemeral-storage": "10Gi", GPU: 2}),
    make_pod("x", node="n", cpu="3", memory="2Gi", resources={GPU: 1}),
)


@pytest.mark.parametrize(
    ("requests", "reasons"),
    [
        ({"cpu": "1", "memory": "6Gi"}, None),
        ({"cpu": "1001m"}, unschedulable("Insufficient cpu")),
        ({"memory": "7Gi", "cpu": "2"}, unschedulable("Insufficient cpu", "Insufficient memory")),
        ({"cpu": "5"}, unresolvable("Insufficient cpu")),
        ({"resources": {"ephemeral-storage": "11Gi"}}, unresolvable("Insufficient ephemeral-storage")),
        ({"resources": {GPU: 1}}, None),
        ({"resources": {GPU: 2}}, unschedulable(f"Insufficient {GPU}")),
        ({"resources": {"example.com/unknown": 1}}, unresolvable("Insufficient example.com/unknown")),
        ({}, None),
    ],
)
def test_requests_must_fit(requests: dict[str, Any], reasons: Any) -> None:
    """Each resource that is short is named; where the node is too small even when empty, preempting is no help."""
    found = refused(plugin(), USED, make_pod("p", **requests)).get("n")
    assert (found and (set(found.reasons), found.code)) == (reasons and (set(reasons.reasons), reasons.code))


def test_too_many_pods() -> None:
    """A node takes only so many, whatever they request."""
    cluster = cluster_of(make_node("n", pods=1), make_pod("x", node="n"))
    assert refused(plugin(), cluster, make_pod("p")) == {"n": unschedulable("Too many pods")}
    assert refused(plugin(), cluster, make_pod("p", cpu="9")) == {
        "n": unresolvable("Too many pods", "Insufficient cpu")
    }


@pytest.mark.parametrize(
    "args",
    [NodeResourcesFitArgs(ignoredResources=(GPU,)), NodeResourcesFitArgs(ignoredResourceGroups=("example.com",))],
)
def test_ignored_resources(args: NodeResourcesFitArgs) -> None:
    """By name or group; only those that Kubernetes does not know itself."""
    assert refused(plugin(args), USED, make_pod("p", resources={GPU: 9})) == {}
    cpu = NodeResourcesFitArgs(ignoredResources=("cpu",))
    assert refused(plugin(cpu), USED, make_pod("p", cpu="2")) == {"n": unschedulable("Insufficient cpu")}


HALF = cluster_of(
    make_node("empty", cpu="4", memory="8Gi"),
    make_node("half", cpu="4", memory="8Gi"),
    make_pod("x", node="half", cpu="2", memory="4Gi"),
)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (strategy("LeastAllocated"), {"empty": 75, "half": 25}),
        (strategy("LeastAllocated", ("cpu", 3), ("memory", 1)), {"empty": 75, "half": 25}),
        (strategy("MostAllocated"), {"empty": 25, "half": 75}),
        (strategy("RequestedToCapacityRatio", shape=[(0, 0), (100, 10)]), {"empty": 25, "half": 75}),
        (strategy("RequestedToCapacityRatio", shape=[(0, 10), (50, 0)]), {"empty": 50, "half": 0}),
    ],
)
def test_strategies(args: NodeResourcesFitArgs, expected: dict[str, int]) -> None:
    """Empty nodes, full nodes, or a shape of one's own, with the pod counted in."""
    assert scores(plugin(args), HALF, make_pod("p", cpu="1", memory="2Gi")) == expected


def test_weights_of_resources() -> None:
    """Three parts cpu, one part memory."""
    args = strategy("LeastAllocated", ("cpu", 3), ("memory", 1))
    assert scores(plugin(args), HALF, make_pod("p", cpu="2", memory="2Gi")) == {"empty": 56, "half": 6}


def test_containers_without_requests() -> None:
    """Score as if they asked for a tenth of a CPU and 200 MB."""
    assert scores(plugin(strategy("LeastAllocated", ("cpu", 1))), HALF, make_pod("p")) == {"empty": 97, "half": 47}


def test_resources_that_a_node_lacks_do_not_count() -> None:
    """Neither do countable ones that the pod does not want."""
    cluster = cluster_of(make_node("with", resources={GPU: 4}), make_node("without"))
    args = strategy("MostAllocated", ("cpu", 1), (GPU, 1))
    assert scores(plugin(args), cluster, make_pod("p", cpu="2", resources={GPU: 4})) == {"with": 75, "without": 50}
    assert scores(plugin(args), cluster, make_pod("p", cpu="2")) == {"with": 50, "without": 50}


def test_an_unknown_strategy() -> None:
    """Is refused when the plugin is made."""
    with pytest.raises(ValueError, match=r"scoringStrategy.type 'Luckiest' is not supported"):
        plugin(strategy("Luckiest"))


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [
        (None, {"cpu": "2"}, True),
        (None, {"cpu": "1"}, False),
        (None, {"pods": 0}, False),
        ({"cpu": "1"}, {"cpu": "2"}, True),
        ({"cpu": "2"}, {"cpu": "2", "memory": "64Gi"}, False),
        ({"pods": 1}, {"pods": 2}, True),
    ],
)
def test_nodes_worth_another_attempt(before: dict[str, Any] | None, after: dict[str, Any], worth: bool) -> None:
    """A new node that is large enough, or one that has grown in something the pod needs."""
    old = None if before is None else make_node("n", **before)
    assert hint(plugin(), make_pod("p", cpu="2"), old, make_node("n", **after)) is worth


def test_pods_worth_another_attempt() -> None:
    """One that leaves a node; one that shrinks in something that the waiting pod needs, if resizing is on."""
    waiting, running = make_pod("p", cpu="2"), make_pod("x", node="n", cpu="2")
    assert hint(plugin(), waiting, running, None) is True
    assert hint(plugin(), waiting, make_pod("x"), None) is False
    smaller, leaner = make_pod("x", node="n", cpu="1"), make_pod("x", node="n", cpu="2", memory="0")
    assert hint(plugin(), waiting, running, smaller) is True
    assert hint(plugin(), make_pod("p", memory="1Gi"), running, smaller) is False
    assert hint(plugin(), waiting, make_pod("x", node="n", cpu="2", memory="1Gi"), leaner) is False
    assert hint(plugin(in_place_pod_vertical_scaling=False), waiting, running, smaller) is None


def test_device_classes_worth_another_attempt() -> None:
    """With devices for extended resources: a class that offers the resource the pod asks for."""
    enabled = plugin(dra_extended_resource=True)
    waiting = make_pod("p", resources={GPU: 1})

    def device_class(resource: str | None) -> DeviceClass:
        return convert(DeviceClass, {"metadata": {"name": "c"}, "spec": {"extendedResourceName": resource}})

    assert hint(enabled, waiting, None, device_class(GPU)) is True
    assert hint(enabled, waiting, None, device_class("example.com/other")) is False
    assert hint(enabled, waiting, device_class(None), device_class(GPU)) is True
    assert hint(enabled, waiting, device_class(GPU), device_class(GPU)) in (None, False)
    implicit = make_pod("p", resources={"deviceclass.resource.kubernetes.io/c": 1})
    assert hint(enabled, implicit, None, device_class(None)) is True
    assert hint(plugin(dra_extended_resource=False), waiting, None, device_class(GPU)) is None
