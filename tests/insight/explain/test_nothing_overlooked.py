"""Changes that help are found among many others, for several constraints on one label, and on other nodes."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.insight.explain import changes
from kubestow.testing import make_node, make_pod
from support.insight.objects import APP, WEB, ZONE, bound_claim, changes_for, landing, required, spreading, volume
from support.plugins.device_world import allocated, claim, claiming, device_class, device_slice, exactly, gpus

HOSTNAME = "kubernetes.io/hostname"
AWAY = required("podAntiAffinity", topologyKey=ZONE, labelSelector=WEB)


@pytest.fixture(autouse=True)
def _long_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extend the time limit for slow machines."""
    monkeypatch.setattr(changes, "_TIME_LIMIT", 60.0)


def node_affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required_terms = {"nodeSelectorTerms": [{"matchExpressions": conditions} for conditions in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required_terms}}}


def condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": values}


# Many candidates


def test_a_toleration_that_helps_is_found_among_many_taints() -> None:
    """The nodes with most of the taints are too small."""
    small = [make_node(f"n{i}", cpu=1, taints=[f"team=t{i}:NoSchedule"]) for i in range(40)]
    big = make_node("zbig", cpu=8, taints=["team=zz:NoSchedule"])
    both = make_node("two", cpu=8, taints=["team=zz:NoSchedule", "other:NoSchedule"])
    assert changes_for([*small, big, both], make_pod("x", cpu=4)) == [
        "toleration of team=zz:NoSchedule added",
        "taint team=zz:NoSchedule removed from node zbig",
    ]


def test_the_number_of_suggested_tolerations_is_limited() -> None:
    """At most 30 are suggested."""
    tainted = [make_node(f"n{i}", taints=[f"t{i}:NoSchedule"]) for i in range(40)]
    result = [one for one in changes_for(tainted, make_pod("x")) if one.startswith("toleration")]
    assert len(result) == len(set(result)) == 30


def test_removing_a_taint_helps_if_tolerating_it_does_not() -> None:
    """Only tolerated nodes count for the spread: with the toleration, an empty zone without capacity counts, too."""
    spec = spreading(ZONE)
    spec["topologySpreadConstraints"][0]["nodeTaintsPolicy"] = "Honor"
    objects = [
        make_node("a", zone="a", taints=["t:NoSchedule"]),
        make_node("b", zone="b", cpu=1, taints=["t:NoSchedule"]),
        make_pod("y", node="a", labels=APP, priority=9),
    ]
    result = changes_for(objects, make_pod("x", cpu=2, labels=APP, spec=spec))
    assert "taint t:NoSchedule removed from node a" in result
    assert "toleration of t:NoSchedule added" not in result


def test_a_kind_of_node_that_helps_is_found_among_many() -> None:
    """It is the rarest kind, and each node has a unique label."""
    small = [make_node(f"n{i}", cpu=1, labels={"id": str(i)}) for i in range(30)]
    big = make_node("zbig", cpu=8)
    there = make_pod("there", cpu=8, node="zbig", priority=9)
    assert "a node like zbig added" in changes_for([*small, big, there], make_pod("x", cpu=4))


def local(host: str) -> dict[str, Any]:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [condition(HOSTNAME, "In", host)]}]}}


def test_a_place_for_a_volume_is_found_among_many() -> None:
    """A local volume may be moved to any host, but only one has enough capacity."""
    small = [make_node(f"n{i:02}", cpu=1) for i in range(20)]
    objects = [*small, make_node("zbig", cpu=8), volume(nodeAffinity=local("n03")), bound_claim()]
    pod = make_pod("x", cpu=4, claims=["data"])
    assert [one for one in changes_for(objects, pod) if "volume" in one] == [f"volume pv moved to {HOSTNAME}=zbig"]
    assert [one.change for one in landing(objects, pod, "zbig").changes] == [f"volume pv moved to {HOSTNAME}=zbig"]


def test_a_resource_claim_that_helps_is_found_among_many() -> None:
    """Only one node has enough capacity, and its devices are the last."""
    nodes = [make_node(f"n{i}", cpu=8 if i == 149 else 1) for i in range(150)]
    slices = [device_slice(f"n{i}", gpus(1)) for i in range(150)]
    claims = [allocated(f"c{i}", f"n{i}", "gpu-0") for i in range(150)]
    objects = [*nodes, *slices, *claims, device_class(), claim("mine")]
    result = [one for one in changes_for(objects, claiming("x", "mine", cpu=4)) if "resource claim" in one]
    assert result == ["resource claim default/c149 freed"]


def test_claims_that_only_help_together_are_not_suggested() -> None:
    """The pod needs two devices of a node, and two claims hold one each."""
    claims = [allocated(f"c{i}", "a", f"gpu-{i}") for i in range(2)]
    objects = [make_node("a"), device_slice("a", gpus(2)), *claims, device_class(), claim("mine", exactly(2))]
    assert changes_for(objects, claiming("x", "mine")) == []


def test_a_domain_that_helps_is_found_among_many() -> None:
    """A node without a zone gets the zone of the pods in the pod's affinity."""
    zones = [make_node(f"n{i:02}", cpu=1, zone=f"z{i:02}") for i in range(20)]
    objects = [make_node("bare", cpu=8), *zones, make_pod("y", node="n19", labels=APP, priority=9)]
    pod = make_pod("x", cpu=4, spec=required("podAffinity", topologyKey=ZONE, labelSelector=WEB))
    assert f"label {ZONE}=z19 added to node bare" in changes_for(objects, pod)


def test_the_time_limit_applies_after_the_first_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_TIME_LIMIT", -1.0)
    assert list(changes.until_time_limit(range(5))) == [0]


# Several constraints on one label


@pytest.mark.parametrize(
    ("node", "options", "expected"),
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
def test_a_label_that_several_constraints_use(node: Any, options: dict[str, Any], expected: str) -> None:
    """Without one constraint the others still reject the node; with the label, none does."""
    assert expected in changes_for([node], make_pod("x", labels=APP, **options))


def test_a_label_that_running_pods_use_as_well() -> None:
    """The node selector requires a zone other than that of a pod whose anti-affinity excludes the pod."""
    objects = [make_node("a", zone="a"), make_pod("y", node="a", priority=9, spec=AWAY)]
    result = changes_for(objects, make_pod("x", labels=APP, node_selector={ZONE: "b"}))
    assert result == []
    objects.append(make_node("c", zone="a"))
    result = changes_for(objects, make_pod("x", labels=APP, node_selector={ZONE: "b"}))
    assert result == [f"label {ZONE} of node c set to b"]


def test_no_label_meets_constraints_that_contradict_each_other() -> None:
    """Changes that do not suffice are not suggested."""
    affinity = node_affinity([condition("disk", "In", "ssd")])
    assert changes_for([make_node("a")], make_pod("x", node_selector={"disk": "hdd"}, spec=affinity)) == []


def test_a_label_by_which_nodes_count_for_the_spread() -> None:
    """Without the selector, an empty zone without capacity would count, too."""
    objects = [
        make_node("a", zone="a"),
        make_node("b", zone="b", cpu=1),
        *(make_pod(f"y{i}", node="a", labels=APP, priority=9) for i in range(3)),
    ]
    pod = make_pod("x", cpu=2, labels=APP, node_selector={"disk": "ssd"}, spec=spreading(ZONE))
    assert changes_for(objects, pod) == ["label disk=ssd added to node a"]


# Pods on other nodes

ZONE_A = [make_node("a", zone="a"), make_node("b", zone="a", cpu=1), make_node("c", zone="a", cpu=1)]


def removals(objects: list[Any], pod: Pod) -> list[str]:
    return [one for one in changes_for(objects, pod) if "lower priority removed" in one]


def test_a_pod_that_the_anti_affinity_excludes() -> None:
    """It runs on a node that is too small, and blocks the pod on a larger node of the zone."""
    low = make_pod("low", node="b", labels=APP, priority=0)
    pod = make_pod("x", cpu=2, priority=5, spec=AWAY)
    assert removals([*ZONE_A, low], pod) == ["pods of lower priority removed from node b: default/low"]
    result = landing([*ZONE_A, low], pod, "a").changes
    assert "pods of lower priority removed from node b: default/low" in [one.change for one in result]


def test_a_pod_whose_anti_affinity_excludes_the_pod() -> None:
    low = make_pod("low", node="b", priority=0, spec=AWAY)
    pod = make_pod("x", cpu=2, priority=5, labels=APP)
    assert removals([*ZONE_A, low], pod) == ["pods of lower priority removed from node b: default/low"]


def test_pods_of_several_nodes() -> None:
    """All blocking pods are removed, and no others."""
    low = [make_pod(f"low-{name}", node=name, labels=APP, priority=0) for name in "bc"]
    other = make_pod("other", node="b", priority=0)
    pod = make_pod("x", cpu=2, priority=5, spec=AWAY)
    expected = "pods of lower priority removed from nodes b, c: default/low-b, default/low-c"
    assert removals([*ZONE_A, *low, other], pod) == [expected]


@pytest.mark.parametrize("priority", [5, 6])
def test_pods_of_equal_priority_stay(priority: int) -> None:
    """They stay even if other blocking pods have a lower priority."""
    objects = [
        *ZONE_A,
        make_pod("low", node="b", labels=APP, priority=0),
        make_pod("important", node="c", labels=APP, priority=priority),
    ]
    assert removals(objects, make_pod("x", cpu=2, priority=5, spec=AWAY)) == []


def test_the_fewest_pods_for_the_spread_are_removed() -> None:
    """Pods with the lowest priority are removed."""
    objects = [
        *ZONE_A,
        make_node("full", zone="b", cpu=1),
        *(make_pod(f"y{i}", node="b", labels=APP, priority=3 - i) for i in range(3)),
    ]
    pod = make_pod("x", cpu=2, priority=5, labels=APP, spec=spreading(ZONE, 2))
    assert removals(objects, pod) == ["pods of lower priority removed from node b: default/y2, default/y1"]


def test_the_zone_with_the_fewest_blocking_pods() -> None:
    objects = [
        *(make_node(f"{zone}-{size}", zone=zone, cpu=size) for zone in "ab" for size in (1, 4)),
        *(make_pod(f"low-{i}", node="a-1", labels=APP, priority=0) for i in range(2)),
        make_pod("low", node="b-1", labels=APP, priority=0),
    ]
    pod = make_pod("x", cpu=2, priority=5, spec=AWAY)
    assert removals(objects, pod) == ["pods of lower priority removed from node b-1: default/low"]


def test_removing_pods_that_the_affinity_requires_is_the_last_resort() -> None:
    """Without them the pod is the first of its group, and fits on any node."""
    objects = [make_node("a", zone="a"), make_node("b", zone="b", cpu=1), make_pod("low", node="b", labels=APP)]
    spec = required("podAffinity", topologyKey=ZONE, labelSelector=WEB)
    result = changes_for(objects, make_pod("x", cpu=2, priority=5, labels=APP, spec=spec))
    assert result[-1] == "pods of lower priority removed from node b: default/low"
