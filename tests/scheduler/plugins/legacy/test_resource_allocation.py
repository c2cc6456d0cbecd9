"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.config.plugin_args import (
    NodeResourcesLeastAllocatedArgs,
    NodeResourcesMostAllocatedArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    UtilizationShapePoint,
)
from kubestow.scheduler.plugins.legacy.node_resources_least_allocated import NodeResourcesLeastAllocated
from kubestow.scheduler.plugins.legacy.node_resources_most_allocated import NodeResourcesMostAllocated
from kubestow.scheduler.plugins.legacy.requested_to_capacity_ratio import RequestedToCapacityRatio
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, make, scores

CLUSTER = cluster_of(
    make_node("empty", cpu="4", memory="4Gi", resources={"x.io/gpu": 4}),
    make_node("half", cpu="4", memory="4Gi"),
    make_pod("there", node="half", cpu="1", memory="1Gi"),
)
POD = make_pod("p", cpu="1", memory="1Gi")
RISING = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))


def found(plugin: Any, args: Any, pod: Pod = POD) -> list[int]:
    return list((scores(make(plugin, args), CLUSTER, pod) or {}).values())


def test_least_and_most() -> None:
    """The free and the used fraction in percent."""
    assert found(NodeResourcesLeastAllocated, NodeResourcesLeastAllocatedArgs()) == [75, 50]
    assert found(NodeResourcesMostAllocated, NodeResourcesMostAllocatedArgs()) == [25, 50]


def test_weights_of_resources() -> None:
    """The mean is weighted; a resource that is listed twice has the last weight."""
    resources = (ResourceSpec("cpu", 9), ResourceSpec("memory", 1), ResourceSpec("cpu", 3))
    pod = make_pod("p", cpu="2", memory="1Gi")
    assert found(NodeResourcesMostAllocated, NodeResourcesMostAllocatedArgs(resources), pod) == [43, 68]


@pytest.mark.parametrize(
    ("resources", "pod", "wanted"),
    [
        ((ResourceSpec("cpu", 1),), POD, [25, 50]),
        ((ResourceSpec("cpu", 1), ResourceSpec("x.io/gpu", 3)), POD, [25, 50]),
        ((ResourceSpec("x.io/gpu", 3),), make_pod("p", resources={"x.io/gpu": 2}), [50, 0]),
        ((ResourceSpec("x.io/gpu", 3),), POD, [0, 0]),
        ((), POD, [0, 0]),
    ],
)
def test_the_resources_that_count(resources: tuple[ResourceSpec, ...], pod: Pod, wanted: list[int]) -> None:
    """The listed resources, except extended ones that the pod does not request; without any, all scores are equal."""
    assert found(RequestedToCapacityRatio, RequestedToCapacityRatioArgs(RISING, resources), pod) == wanted
