"""NodeResourcesBalancedAllocation: scores by the change of balance."""

from typing import Any

import pytest

from kubestow.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from kubestow.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, make, scores

GPU = "example.com/gpu"


def plugin(*resources: str) -> Any:
    specs = tuple(ResourceSpec(name, 1) for name in resources or ("cpu", "memory"))
    return make(NodeResourcesBalancedAllocation, NodeResourcesBalancedAllocationArgs(specs))


NODES = cluster_of(
    make_node("even", cpu="4", memory="8Gi"),
    make_node("busy", cpu="4", memory="8Gi"),
    make_node("filled", cpu="4", memory="8Gi"),
    make_pod("x", node="busy", cpu="2"),
    make_pod("y", node="filled", memory="4Gi"),
)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ({"cpu": "2", "memory": "4Gi"}, {"even": 75, "busy": 75, "filled": 75}),
        ({"cpu": "2"}, {"even": 62, "busy": 62, "filled": 87}),
        ({"memory": "4Gi"}, {"even": 62, "busy": 87, "filled": 62}),
    ],
)
def test_balance_before_and_after(requests: dict[str, Any], expected: dict[str, int]) -> None:
    """75 without a change, more if the pod improves the balance, less if it makes it worse."""
    assert scores(plugin(), NODES, make_pod("p", **requests)) == expected


def test_one_resource_is_always_in_balance() -> None:
    """A single resource scores 75, also next to resources that the node does not offer."""
    assert set(scores(plugin("cpu"), NODES, make_pod("p", cpu="2")).values()) == {75}  # type: ignore[union-attr]
    pod = make_pod("p", cpu="2", resources={GPU: 1})
    assert set(scores(plugin("cpu", GPU), NODES, pod).values()) == {75}  # type: ignore[union-attr]


def test_three_resources() -> None:
    """Balance is the standard deviation of the used fractions."""
    cluster = cluster_of(make_node("n", cpu="4", memory="8Gi", resources={GPU: 4}))
    pod = make_pod("p", cpu="4", memory="8Gi", resources={GPU: 1})
    assert scores(plugin("cpu", "memory", GPU), cluster, pod) == {"n": 57}


def test_overfull_nodes_count_as_full() -> None:
    """Requests beyond the capacity do not reduce the balance."""
    cluster = cluster_of(make_node("n", cpu="1", memory="8Gi"))
    assert scores(plugin(), cluster, make_pod("p", cpu="1")) == scores(plugin(), cluster, make_pod("p", cpu="9"))


def test_a_pod_without_any_of_the_resources_is_not_scored() -> None:
    """PreScore skips the plugin."""
    assert scores(plugin(), NODES, make_pod("p")) is None
    assert scores(plugin(GPU), NODES, make_pod("p", cpu="1")) is None
