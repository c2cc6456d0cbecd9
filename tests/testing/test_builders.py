"""The builders set the fields that scheduling reads."""

import pytest

from kubestow import testing
from kubestow.api.node import Taint
from kubestow.api.pod import Toleration
from kubestow.api.topology import zone_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node, make_pod


def test_a_node_has_the_given_fields() -> None:
    """Resources, topology, labels, taints and images."""
    node = make_node(
        "n1",
        cpu="2",
        resources={"example.com/gpu": 4},
        zone="a",
        labels={"disk": "ssd"},
        taints=["dedicated=db:NoSchedule", "slow:PreferNoSchedule"],
        images={"app:1": 1000},
        unschedulable=True,
    )
    assert node.status.allocatable == {"cpu": "2", "memory": "32Gi", "pods": 110, "example.com/gpu": 4}
    assert node.metadata.labels == {
        "kubernetes.io/hostname": "n1",
        "topology.kubernetes.io/zone": "a",
        "disk": "ssd",
    }
    assert zone_of(node.metadata.labels) == zone_of(make_node("n2", zone="a").metadata.labels)
    assert node.spec.taints == (Taint("dedicated", "db", "NoSchedule"), Taint("slow", "", "PreferNoSchedule"))
    assert node.status.images[0].names == ("app:1",)
    assert node.spec.unschedulable


def test_a_pod_has_the_given_fields() -> None:
    """Requests, ports, claims, gates, tolerations; other fields of the spec as in a manifest."""
    pod = make_pod(
        "p",
        cpu="100m",
        resources={"example.com/gpu": 1},
        priority=7,
        tolerations=["dedicated=db:NoSchedule", "slow"],
        host_ports=[80],
        claims=["data"],
        gates=["later"],
        spec={"preemptionPolicy": "Never"},
        status={"nominatedNodeName": "n1"},
    )
    info = PodInfo(pod)
    assert info.requests.amounts == {"cpu": 100, "example.com/gpu": 1}
    assert [port.port for port in info.ports] == [80]
    assert info.claim_names == ("data",)
    assert info.priority == 7
    assert pod.spec.tolerations == (
        Toleration("dedicated", "Equal", "db", "NoSchedule"),
        Toleration("slow", "Exists", "", ""),
    )
    assert pod.spec.schedulingGates[0].name == "later"
    assert pod.spec.preemptionPolicy == "Never"
    assert pod.status.nominatedNodeName == "n1"
    assert pod.spec.schedulerName == "default-scheduler"


def test_a_taint_without_an_effect_is_rejected() -> None:
    """The message shows how to write it."""
    with pytest.raises(ValueError, match="key=value:Effect"):
        make_node("n", taints=["dedicated"])


def test_the_public_names_can_be_imported() -> None:
    """The package has every public name and no other."""
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    assert set(testing._MODULES) == set(testing.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = testing.nonsense
