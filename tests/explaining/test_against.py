"""What it takes to land on a node where one change is not enough, or another node scores higher."""

from typing import Any

import pytest

from explaining.trying import ZONE, bound_claim, in_any, landing, volume
from kubestow.api.pod import Pod
from kubestow.testing import make_node, make_pod
from plugins.device_world import allocated, claim, claiming, device_class, device_slice, gpus

CONTRADICTION = in_any([("disk", "DoesNotExist"), ("disk", "In", "ssd")])
ALONE = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
HERMIT = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ALONE]}}}

PORTS = [{"containerPort": 80, "hostPort": 80, "hostIP": address} for address in ("10.0.0.1", "10.0.0.2")]
TWO_PORTS = {"containers": [{"name": "main", "ports": PORTS}]}


def test_one_change_that_meets_two_conditions_is_a_single_change() -> None:
    """Neither condition can be dropped by itself, but both are of the same label."""
    pod = make_pod("x", node_selector={"disk": "ssd"}, spec=in_any([("disk", "In", "ssd")]))
    told = landing([make_node("a")], pod, "a")
    assert [(one.change, one.chosen) for one in told.changes] == [("label disk=ssd added to node a", "a")]
    assert told.together == ()


@pytest.mark.parametrize(
    ("objects", "pod", "said"),
    [
        (
            # Once the label has another value, whether it exists is beyond doubt.
            [make_node("b", labels={"disk": "hdd"}, unschedulable=True)],
            make_pod("x", spec=in_any([("disk", "Exists"), ("disk", "NotIn", "hdd")])),
            ["node b uncordoned", "label disk of node b set to true"],
        ),
        (
            # A label that is not there cannot be removed.
            [make_node("b", cpu=1)],
            make_pod("x", cpu=2, spec=CONTRADICTION),
            [
                "label disk=ssd added to node b",
                "request of cpu lowered from 2 to 1",
                "node affinity disk DoesNotExist dropped",
            ],
        ),
        (
            [make_node("b", taints=["t:NoSchedule"])],
            make_pod("x", spec=in_any([("disk", "In", "ssd")], [("arch", "In", "arm")])),
            ["toleration of t:NoSchedule added", "label disk=ssd added to node b"],
        ),
        (
            # Both ports have the same number, and both must go: that is said once.
            [make_node("b", taints=["t:NoSchedule"]), make_pod("y", node="b", host_ports=[80], priority=10)],
            make_pod("x", spec=TWO_PORTS),
            ["toleration of t:NoSchedule added", "host port 80/TCP dropped"],
        ),
    ],
)
def test_no_change_is_told_that_is_not_needed(objects: list[Any], pod: Pod, said: list[str]) -> None:
    """Each of them can be made, and without it the others are not enough."""
    assert landing(objects, pod, "b").together == tuple(said)


@pytest.mark.parametrize(
    ("around", "pod", "said"),
    [
        ([volume(zone="a"), bound_claim()], make_pod("x", claims=["data"]), f"volume pv in {ZONE}=b"),
        (
            [make_pod("y", node="b", priority=5, spec=HERMIT), make_pod("z", node="b", priority=5)],
            make_pod("x", labels={"app": "web"}, priority=10),
            "pods of lower priority gone from node b: default/y",
        ),
        (
            [volume(), bound_claim("ReadWriteOncePod"), make_pod("y", node="a", claims=["data"], priority=10)],
            make_pod("x", claims=["data"]),
            "claim default/data freed by default/y",
        ),
    ],
)
def test_changes_of_the_cluster_are_made_beside_others(around: list[Any], pod: Pod, said: str) -> None:
    """Where neither the pod nor the node can be changed enough."""
    nodes = [make_node("a", zone="a", unschedulable=True), make_node("b", zone="b", taints=["t:NoSchedule"])]
    assert landing([*nodes, *around], pod, "b").together == ("toleration of t:NoSchedule added", said)


def test_a_volume_is_where_the_node_is() -> None:
    """However many other zones there are, and however many labels say where it is."""
    here, there = ([{"key": key, "operator": "In", "values": ["a"]} for key in (ZONE, "rack")], {"rack": "7"})
    others = [make_node(f"n{number}", zone=f"z{number % 15}", labels={"rack": "a"}) for number in range(30)]
    pv = volume(nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}})
    told = landing(
        [*others, make_node("b", zone="b", labels=there), pv, bound_claim()], make_pod("x", claims=["data"]), "b"
    )
    assert told.together == (f"volume pv in {ZONE}=b", "volume pv in rack=7")


def test_a_pod_that_would_go_elsewhere_is_pinned_besides() -> None:
    """The smallest change, and what keeps it from the nodes that score higher."""
    told = landing([make_node("a", cpu=8), make_node("b", cpu=1)], make_pod("x", cpu=4), "b")
    assert [(one.change, one.chosen) for one in told.changes] == [
        ("3 more cpu on node b", "a"),
        ("request of cpu lowered from 4 to 1", "a"),
    ]
    assert told.together == ("3 more cpu on node b", "node selector kubernetes.io/hostname=b added")


def test_a_pod_that_might_go_elsewhere_is_pinned_besides() -> None:
    """Which of equal nodes it is, chance decides, unless the pod says."""
    told = landing([make_node("a"), make_node("b", taints=["t:NoSchedule"])], make_pod("x"), "b")
    assert told.changes[0].ties == 1
    assert told.together == ("toleration of t:NoSchedule added", "node selector kubernetes.io/hostname=b added")


def test_several_changes_send_it_there_too() -> None:
    """A node that will do is not yet the one where the pod goes."""
    told = landing([make_node("a"), make_node("b", cpu=1, taints=["t:NoSchedule"])], make_pod("x", cpu=2), "b")
    assert told.together == (
        "toleration of t:NoSchedule added",
        "request of cpu lowered from 2 to 1",
        "node selector kubernetes.io/hostname=b added",
    )


def test_what_sends_the_pod_there_comes_first() -> None:
    """Before smaller changes, after which it goes elsewhere."""
    shunned = make_node("a", cpu=8, taints=["broken:PreferNoSchedule"])
    told = landing(
        [shunned, make_node("b", taints=["broken:NoSchedule", "broken:NoExecute"])], make_pod("x", cpu=2), "b"
    )
    assert [(one.change, one.chosen) for one in told.changes] == [
        ("taint broken removed from node b", "b"),
        ("toleration of broken added", "a"),
    ]
    assert told.together == ()


def test_a_node_that_is_not_called_by_its_name_is_not_pinned_to() -> None:
    """No node has the label: the pod would fit nowhere."""
    bare = make_node("b", cpu=4)
    bare.metadata.labels.clear()
    told = landing([make_node("a", cpu=8), bare], make_pod("x", cpu=2), "b")
    assert told.behind
    assert told.changes == ()


def test_a_device_is_freed_where_the_node_has_it() -> None:
    """Those of other nodes are of no use there, however many there are."""
    nodes = [make_node(f"n{number}", taints=["t:NoSchedule"] if number == 7 else []) for number in range(40)]
    slices = [device_slice(f"n{number}", gpus(1)) for number in range(40)]
    claims = [allocated(f"c{number}", f"n{number}", "gpu-0") for number in range(40)]
    objects = [*nodes, *slices, *claims, device_class(), claim("mine")]
    told = landing(objects, claiming("x", "mine"), "n7")
    assert told.together == ("toleration of t:NoSchedule added", "resource claim default/c7 freed")


def test_a_condition_of_several_terms_is_told_once() -> None:
    """It is dropped from all of them."""
    needed = in_any([("arch", "In", "arm"), ("disk", "In", "ssd")], [("arch", "In", "arm"), ("disk", "In", "nvme")])
    told = landing([make_node("a", labels={"arch": "x86"}, cpu=1)], make_pod("x", cpu=2, spec=needed), "a")
    assert told.together
    assert len(set(told.together)) == len(told.together)


AWAY = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "p"}}, "topologyKey": ZONE}
            ]
        }
    }
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "p"}},
}


def test_a_change_that_does_harm_keeps_no_others_from_being_told() -> None:
    """A zone would be of use to the spread constraint, but a pod there wants the new one to be elsewhere."""
    nodes = [make_node("a", taints=["t:NoSchedule"]), make_node("b", zone="zb", taints=["t:NoSchedule"])]
    pod = make_pod("p", labels={"app": "p"}, spec={"topologySpreadConstraints": [SPREAD]})
    told = landing([*nodes, make_pod("x", node="b", priority=9, spec=AWAY)], pod, "a")
    assert told.together == ("toleration of t:NoSchedule added", f"spread of pods app=p by {ZONE} dropped")


def test_a_pod_on_another_node_has_to_go_besides() -> None:
    """One of lower priority that keeps the pod out of the whole zone."""
    nodes = [make_node(name, zone="z", taints=["t:NoSchedule"]) for name in ("a", "b")]
    pod = make_pod("p", labels={"app": "p"}, priority=9)
    told = landing([*nodes, make_pod("x", node="b", spec=AWAY)], pod, "a")
    assert told.together[:2] == (
        "toleration of t:NoSchedule added",
        "pods of lower priority gone from node b: default/x",
    )
