"""Changes that send a pod to a node if one change is not enough, or another node has a higher score."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.testing import make_node, make_pod
from support.insight.objects import ZONE, bound_claim, in_any, landing, volume
from support.plugins.device_world import allocated, claim, claiming, device_class, device_slice, gpus

CONTRADICTION = in_any([("disk", "DoesNotExist"), ("disk", "In", "ssd")])
ALONE = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
HERMIT = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ALONE]}}}

PORTS = [{"containerPort": 80, "hostPort": 80, "hostIP": address} for address in ("10.0.0.1", "10.0.0.2")]
TWO_PORTS = {"containers": [{"name": "main", "ports": PORTS}]}


def test_one_change_that_meets_two_conditions_is_a_single_change() -> None:
    """Removing one condition is not enough, but both use the same label."""
    pod = make_pod("x", node_selector={"disk": "ssd"}, spec=in_any([("disk", "In", "ssd")]))
    result = landing([make_node("a")], pod, "a")
    assert [(one.change, one.chosen) for one in result.changes] == [("label disk=ssd added to node a", "a")]
    assert result.together == ()


@pytest.mark.parametrize(
    ("objects", "pod", "expected"),
    [
        (
            # After the label is set to another value, it exists.
            [make_node("b", labels={"disk": "hdd"}, unschedulable=True)],
            make_pod("x", spec=in_any([("disk", "Exists"), ("disk", "NotIn", "hdd")])),
            ["node b uncordoned", "label disk of node b set to true"],
        ),
        (
            # A missing label cannot be removed.
            [make_node("b", cpu=1)],
            make_pod("x", cpu=2, spec=CONTRADICTION),
            [
                "label disk=ssd added to node b",
                "request of cpu lowered from 2 to 1",
                "node affinity disk DoesNotExist removed",
            ],
        ),
        (
            [make_node("b", taints=["t:NoSchedule"])],
            make_pod("x", spec=in_any([("disk", "In", "ssd")], [("arch", "In", "arm")])),
            ["toleration of t:NoSchedule added", "label disk=ssd added to node b"],
        ),
        (
            # Two equal ports must be removed: the text is listed once.
            [make_node("b", taints=["t:NoSchedule"]), make_pod("y", node="b", host_ports=[80], priority=10)],
            make_pod("x", spec=TWO_PORTS),
            ["toleration of t:NoSchedule added", "host port 80/TCP removed"],
        ),
    ],
)
def test_only_necessary_changes_are_listed(objects: list[Any], pod: Pod, expected: list[str]) -> None:
    """Each change can be applied, and without it the others do not suffice."""
    assert landing(objects, pod, "b").together == tuple(expected)


@pytest.mark.parametrize(
    ("around", "pod", "expected"),
    [
        ([volume(zone="a"), bound_claim()], make_pod("x", claims=["data"]), f"volume pv moved to {ZONE}=b"),
        (
            [make_pod("y", node="b", priority=5, spec=HERMIT), make_pod("z", node="b", priority=5)],
            make_pod("x", labels={"app": "web"}, priority=10),
            "pods of lower priority removed from node b: default/y",
        ),
        (
            [volume(), bound_claim("ReadWriteOncePod"), make_pod("y", node="a", claims=["data"], priority=10)],
            make_pod("x", claims=["data"]),
            "claim default/data freed by default/y",
        ),
    ],
)
def test_changes_of_the_cluster_are_combined_with_others(around: list[Any], pod: Pod, expected: str) -> None:
    """They are used if changes of the pod and the node do not suffice."""
    nodes = [make_node("a", zone="a", unschedulable=True), make_node("b", zone="b", taints=["t:NoSchedule"])]
    assert landing([*nodes, *around], pod, "b").together == ("toleration of t:NoSchedule added", expected)


def test_a_volume_is_moved_to_the_node() -> None:
    """The place is found among many zones, and with several labels."""
    here, there = ([{"key": key, "operator": "In", "values": ["a"]} for key in (ZONE, "rack")], {"rack": "7"})
    others = [make_node(f"n{number}", zone=f"z{number % 15}", labels={"rack": "a"}) for number in range(30)]
    pv = volume(nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}})
    result = landing(
        [*others, make_node("b", zone="b", labels=there), pv, bound_claim()], make_pod("x", claims=["data"]), "b"
    )
    assert result.together == (f"volume pv moved to {ZONE}=b", "volume pv moved to rack=7")


def test_a_pod_with_a_better_node_gets_a_node_selector() -> None:
    """The smallest change is combined with a node selector, because other nodes have a higher score."""
    result = landing([make_node("a", cpu=8), make_node("b", cpu=1)], make_pod("x", cpu=4), "b")
    assert [(one.change, one.chosen) for one in result.changes] == [
        ("3 more cpu on node b", "a"),
        ("request of cpu lowered from 4 to 1", "a"),
    ]
    assert result.together == ("3 more cpu on node b", "node selector kubernetes.io/hostname=b added")


def test_a_pod_with_an_equal_node_gets_a_node_selector() -> None:
    """The choice between equal nodes is random without a node selector."""
    result = landing([make_node("a"), make_node("b", taints=["t:NoSchedule"])], make_pod("x"), "b")
    assert result.changes[0].ties == 1
    assert result.together == ("toleration of t:NoSchedule added", "node selector kubernetes.io/hostname=b added")


def test_several_changes_with_a_better_node_get_a_node_selector() -> None:
    """A feasible node is not necessarily the chosen one."""
    result = landing([make_node("a"), make_node("b", cpu=1, taints=["t:NoSchedule"])], make_pod("x", cpu=2), "b")
    assert result.together == (
        "toleration of t:NoSchedule added",
        "request of cpu lowered from 2 to 1",
        "node selector kubernetes.io/hostname=b added",
    )


def test_changes_that_send_the_pod_to_the_node_come_first() -> None:
    """They come before smaller changes after which another node is chosen."""
    shunned = make_node("a", cpu=8, taints=["broken:PreferNoSchedule"])
    result = landing(
        [shunned, make_node("b", taints=["broken:NoSchedule", "broken:NoExecute"])], make_pod("x", cpu=2), "b"
    )
    assert [(one.change, one.chosen) for one in result.changes] == [
        ("taint broken removed from node b", "b"),
        ("toleration of broken added", "a"),
    ]
    assert result.together == ()


def test_a_node_without_a_hostname_label_is_not_selected() -> None:
    """Without the label, the pod would fit on no node."""
    bare = make_node("b", cpu=4)
    bare.metadata.labels.clear()
    result = landing([make_node("a", cpu=8), bare], make_pod("x", cpu=2), "b")
    assert result.behind
    assert result.changes == ()


def test_a_device_of_the_node_is_freed() -> None:
    """Devices of other nodes, even if they are many, do not help."""
    nodes = [make_node(f"n{number}", taints=["t:NoSchedule"] if number == 7 else []) for number in range(40)]
    slices = [device_slice(f"n{number}", gpus(1)) for number in range(40)]
    claims = [allocated(f"c{number}", f"n{number}", "gpu-0") for number in range(40)]
    objects = [*nodes, *slices, *claims, device_class(), claim("mine")]
    result = landing(objects, claiming("x", "mine"), "n7")
    assert result.together == ("toleration of t:NoSchedule added", "resource claim default/c7 freed")


def test_a_condition_in_several_terms_is_listed_once() -> None:
    """It is removed from all terms."""
    needed = in_any([("arch", "In", "arm"), ("disk", "In", "ssd")], [("arch", "In", "arm"), ("disk", "In", "nvme")])
    result = landing([make_node("a", labels={"arch": "x86"}, cpu=1)], make_pod("x", cpu=2, spec=needed), "a")
    assert result.together
    assert len(set(result.together)) == len(result.together)


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


def test_a_harmful_change_does_not_hide_others() -> None:
    """A zone label would meet the spread constraint, but the anti-affinity of a pod in the zone excludes the pod."""
    nodes = [make_node("a", taints=["t:NoSchedule"]), make_node("b", zone="zb", taints=["t:NoSchedule"])]
    pod = make_pod("p", labels={"app": "p"}, spec={"topologySpreadConstraints": [SPREAD]})
    result = landing([*nodes, make_pod("x", node="b", priority=9, spec=AWAY)], pod, "a")
    assert result.together == ("toleration of t:NoSchedule added", f"topology spread of pods app=p by {ZONE} removed")


def test_a_pod_on_another_node_is_removed_as_well() -> None:
    """It has a lower priority and blocks the pod in the whole zone."""
    nodes = [make_node(name, zone="z", taints=["t:NoSchedule"]) for name in ("a", "b")]
    pod = make_pod("p", labels={"app": "p"}, priority=9)
    result = landing([*nodes, make_pod("x", node="b", spec=AWAY)], pod, "a")
    assert result.together[:2] == (
        "toleration of t:NoSchedule added",
        "pods of lower priority removed from node b: default/x",
    )
