"""NodeResourcesFit: free resources filter nodes, and utilization scores them."""

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
from kubestow.scheduler.framework.results import Rejection, unresolvable, unschedulable
from kubestow.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected, scores

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
    """Every insufficient resource is named; preemption does not help on a node that is too small when empty."""
    found = rejected(plugin(), USED, make_pod("p", **requests)).get("n")
    assert (found and (set(found.reasons), found.code)) == (reasons and (set(reasons.reasons), reasons.code))


def test_too_many_pods() -> None:
    """The number of pods on a node is limited independently of their requests."""
    cluster = cluster_of(make_node("n", pods=1), make_pod("x", node="n"))
    assert rejected(plugin(), cluster, make_pod("p")) == {"n": unschedulable("Too many pods")}
    assert rejected(plugin(), cluster, make_pod("p", cpu="9")) == {
        "n": unresolvable("Too many pods", "Insufficient cpu")
    }


@pytest.mark.parametrize(
    "args",
    [NodeResourcesFitArgs(ignoredResources=(GPU,)), NodeResourcesFitArgs(ignoredResourceGroups=("example.com",))],
)
def test_ignored_resources(args: NodeResourcesFitArgs) -> None:
    """Extended resources are ignored by name or group."""
    assert rejected(plugin(args), USED, make_pod("p", resources={GPU: 9})) == {}
    cpu = NodeResourcesFitArgs(ignoredResources=("cpu",))
    assert rejected(plugin(cpu), USED, make_pod("p", cpu="2")) == {"n": unschedulable("Insufficient cpu")}


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
    """Scores for empty nodes, full nodes, or a configured shape, including the pod."""
    assert scores(plugin(args), HALF, make_pod("p", cpu="1", memory="2Gi")) == expected


def test_weights_of_resources() -> None:
    """CPU has three times the weight of memory."""
    args = strategy("LeastAllocated", ("cpu", 3), ("memory", 1))
    assert scores(plugin(args), HALF, make_pod("p", cpu="2", memory="2Gi")) == {"empty": 56, "half": 6}


def test_containers_without_requests_score_with_defaults() -> None:
    """The defaults are 100m CPU and 200 MB."""
    assert scores(plugin(strategy("LeastAllocated", ("cpu", 1))), HALF, make_pod("p")) == {"empty": 97, "half": 47}


def test_resources_that_a_node_lacks_do_not_count() -> None:
    """Scalar resources that the pod does not request do not count either."""
    cluster = cluster_of(make_node("with", resources={GPU: 4}), make_node("without"))
    args = strategy("MostAllocated", ("cpu", 1), (GPU, 1))
    assert scores(plugin(args), cluster, make_pod("p", cpu="2", resources={GPU: 4})) == {"with": 75, "without": 50}
    assert scores(plugin(args), cluster, make_pod("p", cpu="2")) == {"with": 50, "without": 50}


def test_an_unknown_strategy_is_rejected() -> None:
    """The constructor raises an error."""
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
def test_node_events_that_requeue(before: dict[str, Any] | None, after: dict[str, Any], worth: bool) -> None:
    """A new node that is large enough, or one with more of a requested resource."""
    old = None if before is None else make_node("n", **before)
    assert hint(plugin(), make_pod("p", cpu="2"), old, make_node("n", **after)) is worth


def test_pod_events_that_requeue() -> None:
    """A pod that leaves a node; with resizing, one that reduces a resource that the waiting pod requests."""
    waiting, running = make_pod("p", cpu="2"), make_pod("x", node="n", cpu="2")
    assert hint(plugin(), waiting, running, None) is True
    assert hint(plugin(), waiting, make_pod("x", status={"nominatedNodeName": "n"}), None) is True
    assert hint(plugin(), waiting, make_pod("x"), None) is None
    assert hint(plugin(), waiting, waiting, make_pod("p", cpu="1")) is True
    smaller, leaner = make_pod("x", node="n", cpu="1"), make_pod("x", node="n", cpu="2", memory="0")
    assert hint(plugin(), waiting, running, smaller) is True
    assert hint(plugin(), make_pod("p", memory="1Gi"), running, smaller) is False
    assert hint(plugin(), waiting, make_pod("x", node="n", cpu="2", memory="1Gi"), leaner) is False
    assert hint(plugin(in_place_pod_vertical_scaling=False), waiting, running, smaller) is None


def test_device_class_events_that_requeue() -> None:
    """With device-backed resources: a class for a requested resource."""
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


@pytest.mark.parametrize(
    ("grown", "expected"),
    [
        ("1500m", {}),
        ("2", {"n": unschedulable("Insufficient cpu")}),
        ("9", {"n": unresolvable("Insufficient cpu")}),
    ],
)
def test_a_pod_on_its_node_needs_what_it_lacks_there(grown: str, expected: dict[str, Rejection]) -> None:
    """What it holds there is counted already; preemption cannot help on a node that is too small for all of it."""
    held, other = make_pod("p", node="n", cpu="1"), make_pod("other", node="n", cpu="2500m")
    cluster = cluster_of(make_node("n", cpu="4"), held, other)
    fit = make(
        NodeResourcesFit, NodeResourcesFitArgs(), cluster, in_place_pod_vertical_scaling_scheduler_preemption=True
    )
    assert rejected(fit, cluster, make_pod("p", node="n", cpu=grown)) == expected
