"""Changes that help are found among many that do not, between constraints that want the same, and on other nodes."""

from typing import Any

import pytest

from explaining.test_would_fit import APP, WEB, required, spreading, words
from explaining.trying import ZONE, bound_claim, landing, volume
from kubestow.api.pod import Pod
from kubestow.insight.explain import changes
from kubestow.testing import make_node, make_pod
from plugins.device_world import allocated, claim, claiming, device_class, device_slice, exactly, gpus

HOSTNAME = "kubernetes.io/hostname"
AWAY = required("podAntiAffinity", topologyKey=ZONE, labelSelector=WEB)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(changes, "_PATIENCE", 60.0)


def node_affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required_terms = {"nodeSelectorTerms": [{"matchExpressions": conditions} for conditions in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required_terms}}}


def condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": values}


# Among many


def test_a_toleration_that_helps_is_found_among_many_taints() -> None:
    """The nodes of most taints are too small."""
    small = [make_node(f"n{i}", cpu=1, taints=[f"team=t{i}:NoSchedule"]) for i in range(40)]
    big = make_node("zbig", cpu=8, taints=["team=zz:NoSchedule"])
    both = make_node("two", cpu=8, taints=["team=zz:NoSchedule", "other:NoSchedule"])
    assert words([*small, big, both], make_pod("x", cpu=4)) == [
        "toleration of team=zz:NoSchedule added",
        "taint team=zz:NoSchedule removed from node zbig",
    ]


def test_of_many_tolerations_that_help_some_are_told() -> None:
    """As many as anybody reads."""
    tainted = [make_node(f"n{i}", taints=[f"t{i}:NoSchedule"]) for i in range(40)]
    told = [one for one in words(tainted, make_pod("x")) if one.startswith("toleration")]
    assert len(told) == len(set(told)) == 30


def test_a_taint_less_helps_where_its_toleration_does_not() -> None:
    """Nodes that are tolerated count for the spread: with the empty zone that is full, the other has too many pods."""
    spec = spreading(ZONE)
    spec["topologySpreadConstraints"][0]["nodeTaintsPolicy"] = "Honor"
    objects = [
        make_node("a", zone="a", taints=["t:NoSchedule"]),
        make_node("b", zone="b", cpu=1, taints=["t:NoSchedule"]),
        make_pod("y", node="a", labels=APP, priority=9),
    ]
    told = words(objects, make_pod("x", cpu=2, labels=APP, spec=spec))
    assert "taint t:NoSchedule removed from node a" in told
    assert "toleration of t:NoSchedule added" not in told


def test_a_kind_of_node_that_helps_is_found_among_many() -> None:
    """The rarest of them, and each node has a label of its own."""
    small = [make_node(f"n{i}", cpu=1, labels={"id": str(i)}) for i in range(30)]
    big = make_node("zbig", cpu=8)
    there = make_pod("there", cpu=8, node="zbig", priority=9)
    assert "a node like zbig added" in words([*small, big, there], make_pod("x", cpu=4))


def local(host: str) -> dict[str, Any]:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [condition(HOSTNAME, "In", host)]}]}}


def test_a_place_for_a_volume_is_found_among_many() -> None:
    """A local volume might be on any host: only one has room."""
    small = [make_node(f"n{i:02}", cpu=1) for i in range(20)]
    objects = [*small, make_node("zbig", cpu=8), volume(nodeAffinity=local("n03")), bound_claim()]
    pod = make_pod("x", cpu=4, claims=["data"])
    assert [one for one in words(objects, pod) if "volume" in one] == [f"volume pv in {HOSTNAME}=zbig"]
    assert [one.change for one in landing(objects, pod, "zbig").changes] == [f"volume pv in {HOSTNAME}=zbig"]


def test_a_resource_claim_that_helps_is_found_among_many() -> None:
    """Only one node has room besides, and its devices are the last."""
    nodes = [make_node(f"n{i}", cpu=8 if i == 149 else 1) for i in range(150)]
    slices = [device_slice(f"n{i}", gpus(1)) for i in range(150)]
    claims = [allocated(f"c{i}", f"n{i}", "gpu-0") for i in range(150)]
    objects = [*nodes, *slices, *claims, device_class(), claim("mine")]
    told = [one for one in words(objects, claiming("x", "mine", cpu=4)) if "resource claim" in one]
    assert told == ["resource claim default/c149 freed"]


def test_claims_that_help_only_together_are_not_suggested() -> None:
    """Two devices of a node are wanted, and two claims hold one each."""
    claims = [allocated(f"c{i}", "a", f"gpu-{i}") for i in range(2)]
    objects = [make_node("a"), device_slice("a", gpus(2)), *claims, device_class(), claim("mine", exactly(2))]
    assert words(objects, claiming("x", "mine")) == []


def test_a_domain_that_helps_is_found_among_many() -> None:
    """Of a node that has no zone: that of the pods to be with."""
    zones = [make_node(f"n{i:02}", cpu=1, zone=f"z{i:02}") for i in range(20)]
    objects = [make_node("bare", cpu=8), *zones, make_pod("y", node="n19", labels=APP, priority=9)]
    pod = make_pod("x", cpu=4, spec=required("podAffinity", topologyKey=ZONE, labelSelector=WEB))
    assert f"label {ZONE}=z19 added to node bare" in words(objects, pod)


def test_what_takes_long_is_given_up_but_never_before_something_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_PATIENCE", -1.0)
    assert list(changes.in_time(range(5))) == [0]


# Several constraints on one label


@pytest.mark.parametrize(
    ("node", "options", "said"),
    [
        (
            make_node("a"),
            {"node_selector": {"disk": "ssd"}, "spec": node_affinity([condition("disk", "In", "ssd")])},
            "label disk=ssd added to node a",
        ),
        (
            make_node("a"),
            {"spec": node_affinity([condition("disk", "In", "ssd", "nvme"), condition("disk", "In", "hdd", "nvme")])},
            "label disk=nvme added to node a",
        ),
        (
            make_node("a"),
            {"spec": node_affinity([condition("gen", "Exists"), condition("gen", "Gt", "3")])},
            "label gen=4 added to node a",
        ),
        (
            make_node("a", labels={"disk": "ssd"}),
            {
                "spec": node_affinity(
                    [condition("gen", "Lt", "2"), condition("gen", "In", "x")],
                    [condition("disk", "DoesNotExist"), condition("disk", "NotIn", "ssd")],
                )
            },
            "label disk removed from node a",
        ),
        (
            make_node("a"),
            {"node_selector": {ZONE: "z"}, "spec": spreading(ZONE)},
            f"label {ZONE}=z added to node a",
        ),
        (
            make_node("a"),
            {"spec": {**required("podAffinity", topologyKey=ZONE, labelSelector=WEB), **spreading(ZONE)}},
            f"label {ZONE}=a added to node a",
        ),
    ],
)
def test_a_label_that_several_constraints_name(node: Any, options: dict[str, Any], said: str) -> None:
    """Without one of them the others still refuse the node; with the label, none does."""
    assert said in words([node], make_pod("x", labels=APP, **options))


def test_a_label_that_placed_pods_name_as_well() -> None:
    """The selector wants another zone than the one in which somebody wants to be away from the pod."""
    objects = [make_node("a", zone="a"), make_pod("y", node="a", priority=9, spec=AWAY)]
    told = words(objects, make_pod("x", labels=APP, node_selector={ZONE: "b"}))
    assert told == []
    objects.append(make_node("c", zone="a"))
    told = words(objects, make_pod("x", labels=APP, node_selector={ZONE: "b"}))
    assert told == [f"label {ZONE} of node c set to b"]


def test_no_label_meets_constraints_that_contradict_each_other() -> None:
    """Nothing is suggested that would not be enough."""
    affinity = node_affinity([condition("disk", "In", "ssd")])
    assert words([make_node("a")], make_pod("x", node_selector={"disk": "hdd"}, spec=affinity)) == []


def test_a_label_by_which_nodes_count_for_the_spread() -> None:
    """Without the selector the empty zone, where there is no room, would count, too."""
    objects = [
        make_node("a", zone="a"),
        make_node("b", zone="b", cpu=1),
        *(make_pod(f"y{i}", node="a", labels=APP, priority=9) for i in range(3)),
    ]
    pod = make_pod("x", cpu=2, labels=APP, node_selector={"disk": "ssd"}, spec=spreading(ZONE))
    assert words(objects, pod) == ["label disk=ssd added to node a"]


# Pods on other nodes

ZONE_A = [make_node("a", zone="a"), make_node("b", zone="a", cpu=1), make_node("c", zone="a", cpu=1)]


def gone(objects: list[Any], pod: Pod) -> list[str]:
    return [one for one in words(objects, pod) if "gone" in one]


def test_a_pod_of_the_zone_to_be_away_from() -> None:
    """It is on a node that is too small, and keeps the pod from the one that is not."""
    low = make_pod("low", node="b", labels=APP, priority=0)
    pod = make_pod("x", cpu=2, priority=5, spec=AWAY)
    assert gone([*ZONE_A, low], pod) == ["pods of lower priority gone from node b: default/low"]
    told = landing([*ZONE_A, low], pod, "a").changes
    assert "pods of lower priority gone from node b: default/low" in [one.change for one in told]


def test_a_pod_of_the_zone_that_wants_to_be_away() -> None:
    low = make_pod("low", node="b", priority=0, spec=AWAY)
    pod = make_pod("x", cpu=2, priority=5, labels=APP)
    assert gone([*ZONE_A, low], pod) == ["pods of lower priority gone from node b: default/low"]


def test_pods_of_several_nodes() -> None:
    """All of them are in the way; others are not."""
    low = [make_pod(f"low-{name}", node=name, labels=APP, priority=0) for name in "bc"]
    other = make_pod("other", node="b", priority=0)
    pod = make_pod("x", cpu=2, priority=5, spec=AWAY)
    said = "pods of lower priority gone from nodes b, c: default/low-b, default/low-c"
    assert gone([*ZONE_A, *low, other], pod) == [said]


@pytest.mark.parametrize("priority", [5, 6])
def test_pods_as_important_stay(priority: int) -> None:
    """Even where others that would have to go are less important."""
    objects = [
        *ZONE_A,
        make_pod("low", node="b", labels=APP, priority=0),
        make_pod("important", node="c", labels=APP, priority=priority),
    ]
    assert gone(objects, make_pod("x", cpu=2, priority=5, spec=AWAY)) == []


def test_as_few_pods_of_a_zone_as_its_spread_allows() -> None:
    """The least important go."""
    objects = [
        *ZONE_A,
        make_node("full", zone="b", cpu=1),
        *(make_pod(f"y{i}", node="b", labels=APP, priority=3 - i) for i in range(3)),
    ]
    pod = make_pod("x", cpu=2, priority=5, labels=APP, spec=spreading(ZONE, 2))
    assert gone(objects, pod) == ["pods of lower priority gone from node b: default/y2, default/y1"]


def test_the_zone_with_fewest_pods_that_must_go() -> None:
    objects = [
        *(make_node(f"{zone}-{size}", zone=zone, cpu=size) for zone in "ab" for size in (1, 4)),
        *(make_pod(f"low-{i}", node="a-1", labels=APP, priority=0) for i in range(2)),
        make_pod("low", node="b-1", labels=APP, priority=0),
    ]
    pod = make_pod("x", cpu=2, priority=5, spec=AWAY)
    assert gone(objects, pod) == ["pods of lower priority gone from node b-1: default/low"]


def test_pods_to_be_with_where_there_is_no_room_are_the_last_resort() -> None:
    """Without them the pod is the first of its kind, and may go anywhere."""
    objects = [make_node("a", zone="a"), make_node("b", zone="b", cpu=1), make_pod("low", node="b", labels=APP)]
    spec = required("podAffinity", topologyKey=ZONE, labelSelector=WEB)
    told = words(objects, make_pod("x", cpu=2, priority=5, labels=APP, spec=spec))
    assert told[-1] == "pods of lower priority gone from node b: default/low"
