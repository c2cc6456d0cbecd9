"""Every kind of change that is suggested, each in a world where it is what helps."""

from typing import Any

import pytest
from msgspec.structs import replace

from explaining.trying import SETUP, ZONE, bound_claim, in_any, landing, volume
from kubestow.api.pod import Pod
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.world import World
from kubestow.insight.explain.would_fit import Suggestion, would_fit_if
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node, make_pod
from plugins.device_world import allocated, claim, claiming, device_class, device_slice, gpus

APP = {"app": "web"}
WEB = {"matchLabels": APP}


def suggestions(objects: list[Any], pod: Pod) -> list[Suggestion]:
    return would_fit_if(DryRun(World(SETUP, objects, 0.0), PodInfo(pod)))


def words(objects: list[Any], pod: Pod) -> list[str]:
    return [one.change for one in suggestions(objects, pod)]


def required(kind: str, **term: Any) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spreading(key: str, skew: int = 1) -> dict[str, Any]:
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    return {"topologySpreadConstraints": [constraint]}


TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}
IN_ZONE_A = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}}


@pytest.mark.parametrize(
    ("objects", "pod", "said"),
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
            ["2 example.com/gpu on node a", "request of 2 example.com/gpu dropped"],
        ),
        (
            [make_node("a", pods=1), make_pod("there", node="a", priority=10)],
            make_pod("x"),
            ["room for 2 pods on node a", "a node like a added"],
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
            ["label disk=ssd added to node a", "node selector disk=ssd dropped"],
        ),
        (
            [make_node("b", zone="b")],
            make_pod("x", spec=IN_ZONE_A),
            [
                f"node affinity {ZONE} in a: b allowed, too",
                f"node affinity {ZONE} In a dropped",
                f"label {ZONE} of node b set to a",
            ],
        ),
        (
            [make_node("b", labels={"disk": "hdd"})],
            make_pod("x", spec=in_any([("disk", "In", "ssd")], [("arch", "In", "arm")])),
            [
                "node affinity disk in ssd: hdd allowed, too",
                "label arch=arm added to node b",
                "label disk of node b set to ssd",
                "node affinity dropped",
            ],
        ),
        (
            [make_node("a", zone="a"), make_pod("y", node="a", labels={"app": "web"}, priority=10)],
            make_pod("x", spec=required("podAntiAffinity", topologyKey=ZONE, labelSelector=WEB)),
            [f"anti-affinity to pods app=web by {ZONE} dropped"],
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
                f"affinity to pods app=web by {ZONE} dropped",
                "a node like a added",
                "request of 1 cpu dropped",
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
                f"spread of pods app=web by {ZONE}: maxSkew raised from 1 to 4",
                "toleration of node.kubernetes.io/unschedulable:NoSchedule added",
                f"spread of pods app=web by {ZONE} dropped",
            ],
        ),
        (
            [make_node("a"), make_pod("y", node="a", host_ports=[80], priority=10)],
            make_pod("x", host_ports=[80]),
            ["host port 80/TCP dropped", "a node like a added"],
        ),
        ([make_node("a")], make_pod("x", gates=["wait"]), ["scheduling gate wait removed"]),
        ([make_node("a")], make_pod("x", gates=["wait", "more"]), []),
        (
            [make_node("a", cpu=2), make_pod("low", cpu=2, node="a", priority=0)],
            make_pod("x", cpu=2, priority=5),
            ["pods of lower priority gone from node a: default/low", "2 more cpu on node a"],
        ),
        (
            [make_node("a", cpu=2), make_pod("low", cpu=2, node="a", priority=0)],
            make_pod("x", cpu=2, priority=5, spec={"preemptionPolicy": "Never"}),
            ["pods of lower priority gone from node a: default/low", "2 more cpu on node a"],
        ),
    ],
)
def test_the_smallest_changes_come_first(objects: list[Any], pod: Pod, said: list[str]) -> None:
    """In this order; what helps less or changes more comes later."""
    assert words(objects, pod)[: len(said)] == said


def test_a_pod_that_waits_for_its_victims_fits_when_they_are_gone() -> None:
    """It evicts nobody meanwhile, which is no reason to leave out what it waits for, nor who might go instead."""
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = make_pod("leaving", cpu=2, node="a", priority=0, status={"conditions": [evicted]})
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletionTimestamp="2026-01-01T00:00:00Z"))
    objects = [make_node("a", cpu=2), make_node("b", cpu=2), leaving, make_pod("low", cpu=2, node="b", priority=0)]
    pod = make_pod("x", cpu=2, priority=5, status={"nominatedNodeName": "a"})
    run = DryRun(World(SETUP, objects, 0.0), PodInfo(pod))
    assert run.judged.post_filter is not None
    assert "not eligible due to a terminating pod" in run.judged.post_filter.message
    gone = [one for one in would_fit_if(run) if one.side == "cluster"]
    assert [(one.change, one.nodes) for one in gone] == [
        ("pods of lower priority gone from node a: default/leaving", ("a",)),
        ("pods of lower priority gone from node b: default/low", ("b",)),
        ("a node like a added", ("new-node",)),
    ]


def test_a_label_that_would_not_be_true_is_the_last_resort() -> None:
    """What a node is called, and where it is, is changed less easily than what is said about it."""
    objects = [make_node("a", labels={ZONE: "a", "disk": "hdd"}, cpu=1), make_node("b", labels={ZONE: "b"})]
    assert words(objects, make_pod("x", cpu=2, node_selector={ZONE: "a"})) == [
        f"node selector {ZONE}=a dropped",
        "request of cpu lowered from 2 to 1",
        "1 more cpu on node a",
        f"label {ZONE} of node b set to a",
    ]
    told = landing([objects[0]], make_pod("x", cpu=2, node_selector={ZONE: "b", "disk": "ssd"}), "a")
    assert told.together == (
        "label disk of node a set to ssd",
        "request of cpu lowered from 2 to 1",
        f"node selector {ZONE}=b dropped",
    )


def test_of_many_values_only_the_first_are_named() -> None:
    """A screen has no room for hundreds, nor would they help anybody."""
    many = {"key": "disk", "operator": "In", "values": [f"d{number}" for number in range(300)]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [many]}]}
    picky = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    assert words([make_node("a", labels={"disk": "hdd"})], make_pod("x", spec=picky))[:3] == [
        "node affinity disk in d0, d1, d2, d3, d4 and 295 more: hdd allowed, too",
        "label disk of node a set to d0",
        "node affinity disk In d0, d1, d2, d3, d4 and 295 more dropped",
    ]
    lonely = required("podAntiAffinity", topologyKey=ZONE, labelSelector={"matchExpressions": [many]})
    objects = [make_node("a", labels={ZONE: "a"}), make_pod("there", node="a", labels={"disk": "d7"})]
    said = f"anti-affinity to pods disk In d0, d1, d2, d3, d4 and 295 more by {ZONE} dropped"
    assert said in words(objects, make_pod("x", spec=lonely))


def test_two_obstacles_at_once_have_no_single_change() -> None:
    """Nothing is suggested that would not be enough."""
    assert words([make_node("a", cpu=1, taints=["b:NoSchedule"])], make_pod("x", cpu=2)) == []


def test_how_many_nodes_are_opened_is_told() -> None:
    """For a change of the pod, all of them; for one of a node, how many are alike."""
    first, second, *_ = suggestions([make_node(f"n{i}", cpu=2) for i in range(9)], make_pod("x", cpu=3))
    assert (first.side, first.opens, first.nodes) == ("pod", 9, ("n0", "n1", "n2", "n3", "n4"))
    assert (second.side, second.opens, second.nodes, second.alike) == ("node", 1, ("n0",), 9)


def test_nodes_that_lack_more_are_not_alike() -> None:
    """As much more as the nearest node lacks would not open them."""
    nodes = [make_node("near", cpu=3), make_node("as-near", cpu=3), make_node("far", cpu=1)]
    told = next(one for one in suggestions(nodes, make_pod("x", cpu=4)) if one.side == "node")
    assert (told.change, told.alike) == ("1 more cpu on node as-near", 2)


def test_a_volume_in_another_zone() -> None:
    """The pod's volume is where there is no room."""
    objects = [make_node("a", cpu=1, zone="a"), make_node("b", zone="b"), volume(zone="a"), bound_claim()]
    assert f"volume pv in {ZONE}=b" in words(objects, make_pod("x", cpu=2, claims=["data"]))


def test_a_claim_that_another_pod_holds() -> None:
    """For one pod at a time; who would have to let go of it is named."""
    user = make_pod("user", node="a", claims=["data"], priority=10)
    objects = [make_node("a"), volume(), bound_claim("ReadWriteOncePod"), user]
    assert "claim default/data freed by default/user" in words(objects, make_pod("x", claims=["data"]))


def test_a_resource_claim_that_holds_the_devices() -> None:
    """Another claim has what the pod wants."""
    objects = [
        make_node("a"),
        device_class(),
        device_slice("a", gpus(1)),
        allocated("theirs", "a", "gpu-0"),
        claim("mine"),
    ]
    assert "resource claim default/theirs freed" in words(objects, claiming("x", "mine"))


def test_what_it_takes_to_land_on_a_node_that_refuses() -> None:
    """Single changes, each with where the pod would go then."""
    objects = [make_node("a", cpu=8), make_node("b", cpu=4, taints=["t:NoSchedule"])]
    told = landing(objects, make_pod("x", cpu=2), "b")
    assert told.rejected is not None
    assert told.rejected.plugin == "TaintToleration"
    assert [(one.change, one.chosen) for one in told.changes] == [
        ("toleration of t:NoSchedule added", "a"),
        ("taint t:NoSchedule removed from node b", "a"),
    ]


def test_a_node_that_would_be_as_good_as_others_is_told_so() -> None:
    """Which of equal nodes it is, chance decides: none of them scores higher."""
    objects = [make_node("a"), make_node("b"), make_node("c", taints=["t:NoSchedule"]), make_node("d", cpu=1)]
    told = landing(objects, make_pod("x", cpu=1), "c")
    assert [(one.change, one.chosen, one.ties) for one in told.changes] == [
        ("toleration of t:NoSchedule added", "a", 2),
        ("taint t:NoSchedule removed from node c", "a", 2),
    ]


def test_several_changes_together_if_one_is_not_enough() -> None:
    """One for each obstacle of that node."""
    objects = [make_node("a", cpu=0), make_node("b", cpu=1, taints=["t:NoSchedule"], unschedulable=True)]
    told = landing(objects, make_pod("x", cpu=2), "b")
    assert told.changes == ()
    assert sorted(told.together) == [
        "node b uncordoned",
        "request of cpu lowered from 2 to 1",
        "toleration of t:NoSchedule added",
    ]


@pytest.mark.parametrize(
    ("node", "pod", "said"),
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
                "request of cpu lowered from 2 to 1",
                "room for 1 pod on node b",
                "toleration of t:NoSchedule added",
                "toleration of u:NoSchedule added",
            ],
        ),
    ],
)
def test_obstacles_of_one_kind_are_taken_away_together(node: Any, pod: Pod, said: list[str]) -> None:
    """One of two taints tolerated changes nothing of what the node says; both do."""
    tainted = (make_node(f"n{i}", taints=[f"other-{i}:NoSchedule"]) for i in range(40))
    told = landing([*tainted, node], pod, "b")
    assert (told.changes, sorted(told.together)) == ((), said)


def test_what_a_node_lacks_in_score() -> None:
    """By plugin, against the node that is chosen; pinning the pod sends it there."""
    objects = [make_node("a", cpu=8), make_node("b", cpu=4)]
    told = landing(objects, make_pod("x", cpu=2), "b")
    assert told.behind == sum(told.behindBy.values()) > 0
    assert "NodeResourcesFit" in told.behindBy
    assert [(one.change, one.chosen) for one in told.changes] == [("node selector kubernetes.io/hostname=b added", "b")]
