"""Every kind of suggested change, each in a world in which it helps."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.world import World
from kubestow.insight.explain.would_fit import would_fit_if
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node, make_pod
from support.insight.objects import (
    SETUP,
    WEB,
    ZONE,
    bound_claim,
    changes_for,
    in_any,
    landing,
    required,
    spreading,
    suggestions,
    volume,
)
from support.plugins.device_world import allocated, claim, claiming, device_class, device_slice, gpus

TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}
IN_ZONE_A = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}}


@pytest.mark.parametrize(
    ("objects", "pod", "expected"),
    [
        (
            [make_node("a", cpu=4), make_node("b", cpu=2)],
            make_pod("x", cpu=5),
            ["request of cpu lowered from 5 to 4", "1 more cpu on node a"],
        ),
        (
            [make_node("a", memory="3Gi")],
            make_pod("x", memory="4Gi"),
            ["request of memory lowered from 4Gi to 3Gi", "1Gi more memory on node a"],
        ),
        (
            [make_node("a")],
            make_pod("x", resources={"example.com/gpu": 2}),
            ["2 example.com/gpu on node a", "request of 2 example.com/gpu removed"],
        ),
        (
            [make_node("a", pods=1), make_pod("there", node="a", priority=10)],
            make_pod("x"),
            ["pod limit of node a raised to 2", "a node like a added"],
        ),
        (
            [make_node("a", taints=["dedicated=batch:NoSchedule"])],
            make_pod("x"),
            ["toleration of dedicated=batch:NoSchedule added", "taint dedicated=batch:NoSchedule removed from node a"],
        ),
        (
            [make_node("a", taints=["broken:NoSchedule", "broken:NoExecute"])],
            make_pod("x"),
            ["toleration of broken added", "taint broken removed from node a"],
        ),
        (
            [make_node("a", unschedulable=True)],
            make_pod("x"),
            ["node a uncordoned", "toleration of node.kubernetes.io/unschedulable:NoSchedule added"],
        ),
        (
            [make_node("a")],
            make_pod("x", node_selector={"disk": "ssd"}),
            ["label disk=ssd added to node a", "node selector disk=ssd removed"],
        ),
        (
            [make_node("b", zone="b")],
            make_pod("x", spec=IN_ZONE_A),
            [
                f"node affinity {ZONE} In a: value b added",
                f"node affinity {ZONE} In a removed",
                f"label {ZONE} of node b set to a",
            ],
        ),
        (
            [make_node("b", labels={"disk": "hdd"})],
            make_pod("x", spec=in_any([("disk", "In", "ssd")], [("arch", "In", "arm")])),
            [
                "node affinity disk In ssd: value hdd added",
                "label arch=arm added to node b",
                "label disk of node b set to ssd",
                "node affinity removed",
            ],
        ),
        (
            [make_node("a", zone="a"), make_pod("y", node="a", labels={"app": "web"}, priority=10)],
            make_pod("x", spec=required("podAntiAffinity", topologyKey=ZONE, labelSelector=WEB)),
            [
                f"anti-affinity to pods app=web by {ZONE} made preferred",
                f"anti-affinity to pods app=web by {ZONE} removed",
            ],
        ),
        (
            [
                make_node("a", zone="a"),
                make_node("b"),
                make_pod("y", cpu=4, node="a", labels={"app": "web"}, priority=9),
            ],
            make_pod("x", cpu=1, spec=required("podAffinity", topologyKey=ZONE, labelSelector=WEB)),
            [
                "1 more cpu on node a",
                f"label {ZONE}=a added to node b",
                f"affinity to pods app=web by {ZONE} removed",
                "a node like a added",
                "request of 1 cpu removed",
            ],
        ),
        (
            [
                make_node("a", zone="a"),
                make_node("b", zone="b", unschedulable=True),
                *(make_pod(f"y{n}", node="a", labels={"app": "web"}, priority=10) for n in range(3)),
            ],
            make_pod("x", labels={"app": "web"}, spec=spreading(ZONE)),
            [
                "node b uncordoned",
                f"topology spread of pods app=web by {ZONE}: maxSkew raised from 1 to 4",
                "toleration of node.kubernetes.io/unschedulable:NoSchedule added",
                f"topology spread of pods app=web by {ZONE} removed",
            ],
        ),
        (
            [make_node("a"), make_pod("y", node="a", host_ports=[80], priority=10)],
            make_pod("x", host_ports=[80]),
            ["host port 80/TCP removed", "a node like a added"],
        ),
        ([make_node("a")], make_pod("x", gates=["wait"]), ["scheduling gate wait removed"]),
        ([make_node("a")], make_pod("x", gates=["wait", "more"]), []),
        (
            [make_node("a", cpu=2), make_pod("low", cpu=2, node="a", priority=0)],
            make_pod("x", cpu=2, priority=5),
            ["pods of lower priority removed from node a: default/low", "2 more cpu on node a"],
        ),
        (
            [make_node("a", cpu=2), make_pod("low", cpu=2, node="a", priority=0)],
            make_pod("x", cpu=2, priority=5, spec={"preemptionPolicy": "Never"}),
            ["pods of lower priority removed from node a: default/low", "2 more cpu on node a"],
        ),
    ],
)
def test_the_smallest_changes_come_first(objects: list[Any], pod: Pod, expected: list[str]) -> None:
    """Suggestions are ordered by size, then by the number of nodes."""
    assert changes_for(objects, pod)[: len(expected)] == expected


def test_a_pod_that_waits_for_its_victims() -> None:
    """It does not preempt meanwhile, but its victims and possible other victims are suggested."""
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = make_pod("leaving", cpu=2, node="a", priority=0, status={"conditions": [evicted]})
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletionTimestamp="2026-01-01T00:00:00Z"))
    objects = [make_node("a", cpu=2), make_node("b", cpu=2), leaving, make_pod("low", cpu=2, node="b", priority=0)]
    pod = make_pod("x", cpu=2, priority=5, status={"nominatedNodeName": "a"})
    run = DryRun(World(SETUP, objects, 0.0), PodInfo(pod))
    assert run.evaluation_run.post_filter is not None
    assert "not eligible due to a terminating pod" in run.evaluation_run.post_filter.message
    removed = [one for one in would_fit_if(run) if one.side == "cluster"]
    assert [(one.change, one.nodes) for one in removed] == [
        ("pods of lower priority removed from node a: default/leaving", ("a",)),
        ("pods of lower priority removed from node b: default/low", ("b",)),
        ("a node like a added", ("new-node",)),
    ]


def test_a_false_label_is_the_last_resort() -> None:
    """Labels for the name and place of a node come after other labels."""
    objects = [make_node("a", labels={ZONE: "a", "disk": "hdd"}, cpu=1), make_node("b", labels={ZONE: "b"})]
    assert changes_for(objects, make_pod("x", cpu=2, node_selector={ZONE: "a"})) == [
        f"node selector {ZONE}=a removed",
        "request of cpu lowered from 2 to 1",
        "1 more cpu on node a",
        f"label {ZONE} of node b set to a",
    ]
    result = landing([objects[0]], make_pod("x", cpu=2, node_selector={ZONE: "b", "disk": "ssd"}), "a")
    assert result.together == (
        "label disk of node a set to ssd",
        "request of cpu lowered from 2 to 1",
        f"node selector {ZONE}=b removed",
    )


def test_only_the_first_of_many_values_are_named() -> None:
    """The number of the other values is given."""
    many = {"key": "disk", "operator": "In", "values": [f"d{number}" for number in range(300)]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [many]}]}
    picky = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    assert changes_for([make_node("a", labels={"disk": "hdd"})], make_pod("x", spec=picky))[:3] == [
        "node affinity disk In d0, d1, d2, d3, d4 and 295 more: value hdd added",
        "label disk of node a set to d0",
        "node affinity disk In d0, d1, d2, d3, d4 and 295 more removed",
    ]
    lonely = required("podAntiAffinity", topologyKey=ZONE, labelSelector={"matchExpressions": [many]})
    objects = [make_node("a", labels={ZONE: "a"}), make_pod("there", node="a", labels={"disk": "d7"})]
    expected = f"anti-affinity to pods disk In d0, d1, d2, d3, d4 and 295 more by {ZONE} removed"
    assert expected in changes_for(objects, make_pod("x", spec=lonely))


def test_no_single_change_for_two_obstacles() -> None:
    """Changes that do not suffice are not suggested."""
    assert changes_for([make_node("a", cpu=1, taints=["b:NoSchedule"])], make_pod("x", cpu=2)) == []


def test_the_number_of_feasible_nodes() -> None:
    """A change of the pod has all feasible nodes; a change of a node has the number of nodes that lack only that."""
    first, second, *_ = suggestions([make_node(f"n{i}", cpu=2) for i in range(9)], make_pod("x", cpu=3))
    assert (first.side, first.opens, first.nodes) == ("pod", 9, ("n0", "n1", "n2", "n3", "n4"))
    assert (second.side, second.opens, second.nodes, second.alike) == ("node", 1, ("n0",), 9)


def test_nodes_that_lack_more_are_not_counted() -> None:
    """The amount that the nearest node lacks would not suffice for them."""
    nodes = [make_node("near", cpu=3), make_node("as-near", cpu=3), make_node("far", cpu=1)]
    result = next(one for one in suggestions(nodes, make_pod("x", cpu=4)) if one.side == "node")
    assert (result.change, result.alike) == ("1 more cpu on node as-near", 2)


def test_a_volume_in_another_zone() -> None:
    """The zone of the pod's volume has no capacity."""
    objects = [make_node("a", cpu=1, zone="a"), make_node("b", zone="b"), volume(zone="a"), bound_claim()]
    assert f"volume pv moved to {ZONE}=b" in changes_for(objects, make_pod("x", cpu=2, claims=["data"]))


def test_a_claim_that_another_pod_uses() -> None:
    """Only one pod may use the claim; the text names the other pod."""
    user = make_pod("user", node="a", claims=["data"], priority=10)
    objects = [make_node("a"), volume(), bound_claim("ReadWriteOncePod"), user]
    assert "claim default/data freed by default/user" in changes_for(objects, make_pod("x", claims=["data"]))


def test_a_resource_claim_that_holds_the_devices() -> None:
    """Another claim has the device that the pod needs."""
    objects = [
        make_node("a"),
        device_class(),
        device_slice("a", gpus(1)),
        allocated("theirs", "a", "gpu-0"),
        claim("mine"),
    ]
    assert "resource claim default/theirs freed" in changes_for(objects, claiming("x", "mine"))


def test_changes_for_a_node_that_rejects_the_pod() -> None:
    """Each single change has the node that is chosen after it."""
    objects = [make_node("a", cpu=8), make_node("b", cpu=4, taints=["t:NoSchedule"])]
    result = landing(objects, make_pod("x", cpu=2), "b")
    assert result.rejected is not None
    assert result.rejected.plugin == "TaintToleration"
    assert [(one.change, one.chosen) for one in result.changes] == [
        ("toleration of t:NoSchedule added", "a"),
        ("taint t:NoSchedule removed from node b", "a"),
    ]


def test_a_node_with_the_same_score_as_others() -> None:
    """The choice among equal nodes is random."""
    objects = [make_node("a"), make_node("b"), make_node("c", taints=["t:NoSchedule"]), make_node("d", cpu=1)]
    result = landing(objects, make_pod("x", cpu=1), "c")
    assert [(one.change, one.chosen, one.ties) for one in result.changes] == [
        ("toleration of t:NoSchedule added", "a", 2),
        ("taint t:NoSchedule removed from node c", "a", 2),
    ]


def test_a_combination_of_changes_if_one_is_not_enough() -> None:
    """There is one change for each obstacle of the node."""
    objects = [make_node("a", cpu=0), make_node("b", cpu=1, taints=["t:NoSchedule"], unschedulable=True)]
    result = landing(objects, make_pod("x", cpu=2), "b")
    assert result.changes == ()
    assert sorted(result.together) == [
        "node b uncordoned",
        "request of cpu lowered from 2 to 1",
        "toleration of t:NoSchedule added",
    ]


@pytest.mark.parametrize(
    ("node", "pod", "expected"),
    [
        (
            make_node("b", taints=["t:NoSchedule", "u=v:NoExecute"]),
            make_pod("x"),
            ["toleration of t:NoSchedule added", "toleration of u=v:NoExecute added"],
        ),
        (
            make_node("b"),
            make_pod("x", node_selector={"disk": "ssd", "rack": "7"}),
            ["label disk=ssd added to node b", "label rack=7 added to node b"],
        ),
        (
            make_node("b"),
            make_pod("x", gates=["wait", "more"]),
            ["scheduling gate more removed", "scheduling gate wait removed"],
        ),
        (
            make_node("b", cpu=1, taints=["t:NoSchedule", "u:NoSchedule"], pods=0),
            make_pod("x", cpu=2, node_selector={"disk": "ssd"}),
            [
                "label disk=ssd added to node b",
                "pod limit of node b raised to 1",
                "request of cpu lowered from 2 to 1",
                "toleration of t:NoSchedule added",
                "toleration of u:NoSchedule added",
            ],
        ),
    ],
)
def test_obstacles_of_one_kind_are_removed_together(node: Any, pod: Pod, expected: list[str]) -> None:
    """Tolerating one of two taints does not change the node's reason; tolerating both does."""
    tainted = (make_node(f"n{i}", taints=[f"other-{i}:NoSchedule"]) for i in range(40))
    result = landing([*tainted, node], pod, "b")
    assert (result.changes, sorted(result.together)) == ((), expected)


def test_the_score_difference_of_a_node() -> None:
    """It is given by plugin, relative to the chosen node; a node selector sends the pod to the node."""
    objects = [make_node("a", cpu=8), make_node("b", cpu=4)]
    result = landing(objects, make_pod("x", cpu=2), "b")
    assert result.behind == sum(result.behindBy.values()) > 0
    assert "NodeResourcesFit" in result.behindBy
    changes = [(one.change, one.chosen) for one in result.changes]
    assert changes == [("node selector kubernetes.io/hostname=b added", "b")]
