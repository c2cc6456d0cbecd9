"""NodePorts: host ports of the pod must be free."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import SKIP, unschedulable
from kubestow.scheduler.plugins.node_ports import NodePorts
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected

ANY = "0.0.0.0"  # noqa: S104
TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


def pod_with_ports(name: str, *ports: dict[str, Any], **more: Any) -> Pod:
    container = {"name": "main", "ports": [{"containerPort": 1, **port} for port in ports]}
    return make_pod(name, spec={"containers": [container]}, **more)


@pytest.mark.parametrize(
    ("used", "wanted", "conflict"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 81}, False),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 80, "hostIP": ANY}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
    ],
)
def test_ports_in_conflict(used: dict[str, Any], wanted: dict[str, Any], conflict: bool) -> None:
    """Ports conflict with the same port and protocol, on the same address or on all addresses."""
    cluster = cluster_of(make_node("a"), make_node("b"), pod_with_ports("x", used, node="a"))
    assert rejected(make(NodePorts), cluster, pod_with_ports("p", wanted)) == ({"a": TAKEN} if conflict else {})
    waiting = pod_with_ports("p", wanted)
    assert hint(make(NodePorts), waiting, pod_with_ports("x", used, node="a"), None) is conflict


def test_pods_without_host_ports_are_skipped() -> None:
    """They are not filtered."""
    assert make(NodePorts).pre_filter(PodInfo(pod_with_ports("p", {}))) is SKIP


def test_a_port_is_in_use_until_the_last_pod_is_deleted() -> None:
    """Several pods of a node may use it."""
    users = [pod_with_ports(name, {"hostPort": 80}, node="a") for name in "xy"]
    cluster = cluster_of(make_node("a"), *users)
    for user in users:
        assert rejected(make(NodePorts), cluster, pod_with_ports("p", {"hostPort": 80})) == {"a": TAKEN}
        cluster.remove_pod(user.metadata.uid)
    assert rejected(make(NodePorts), cluster, pod_with_ports("p", {"hostPort": 80})) == {}


def test_other_events_that_requeue() -> None:
    """A new node does; a pod without a node does not."""
    waiting = pod_with_ports("p", {"hostPort": 80})
    assert hint(make(NodePorts), waiting, None, make_node("n")) is True
    assert hint(make(NodePorts), waiting, pod_with_ports("x", {"hostPort": 80}), None) is None
    assert hint(make(NodePorts), waiting, None, pod_with_ports("x", {"hostPort": 80}, node="a")) is None
