"""Pod groups with a parent are scheduled as one tree: enough groups at each level, or none."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import CompositePodGroup, PodGroup
from kubestow.testing import SchedulerHarness, make_composite_pod_group, make_node, make_pod_group
from support.scenarios.gangs import (
    GATES,
    TREE_GATES,
    add_gang,
    add_members,
    add_nodes,
    bound,
    condition,
    conditions,
    features,
    message,
)
from support.scenarios.start import Start

NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


@pytest.fixture
def harness(start: Start) -> SchedulerHarness:
    return start(features=features(*TREE_GATES))


def add_composite(harness: SchedulerHarness, name: str, least: int | None = None, **options: Any) -> None:
    harness.cluster.add(make_composite_pod_group(name, least, **options))


def test_a_tree_that_fits_is_bound_as_a_whole(harness: SchedulerHarness) -> None:
    """Each pod group gets a condition."""
    add_nodes(harness, 3)
    add_composite(harness, "top", 2)
    add_composite(harness, "low", 2, parent="top")
    add_gang(harness, "a", pods=2, parent="low")
    add_gang(harness, "b", pods=1, parent="low")
    add_gang(harness, "c", pods=3, parent="top")
    harness.run_until_idle()
    assert [len(bound(harness, name)) for name in "abc"] == [2, 1, 3]
    assert [condition(harness, name).status for name in "abc"] == ["True"] * 3


def test_a_tree_that_does_not_fit_uses_nothing(harness: SchedulerHarness) -> None:
    """A group that fits alone has the status of its parent; one that does not has its own."""
    add_nodes(harness, 1)
    add_composite(harness, "top", 2)
    add_gang(harness, "a", pods=2, parent="top")
    add_gang(harness, "b", pods=1, parent="top")
    harness.run_for(0.5)
    assert bound(harness, "a") + bound(harness, "b") == []
    assert harness.core.cluster.assumed_count == 0
    why = "0/1 placements are available, first placement status: minCount ({}) cannot be satisfied: {} scheduled, {}"
    of_tree = why.format(2, 1, "0 remaining")
    assert condition(harness, "a").message == f"pod group is unschedulable, {of_tree}, {NO_VICTIMS}"
    assert message(harness, "a0") == f"pod group is unschedulable, {of_tree}"
    own = why.format(1, 0, "0 remaining")
    assert condition(harness, "b").message == f"pod group is unschedulable, {own}, {NO_VICTIMS}"
    assert message(harness, "b0") == "0/1 nodes are available: 1 Insufficient cpu."


def test_the_oldest_groups_are_tried_first(harness: SchedulerHarness) -> None:
    """The trial ends when too few of the others are left; those have the status of their parent."""
    add_nodes(harness, 1)
    add_composite(harness, "top", 2)
    for name in "cab":
        add_gang(harness, name, pods=3, parent="top")
    harness.run_for(0.5)
    assert message(harness, "a0").endswith("minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, " + NO_VICTIMS)
    assert message(harness, "c0") == message(harness, "c1")
    assert "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining" in message(harness, "c0")


def test_enough_groups_are_sufficient(harness: SchedulerHarness) -> None:
    """The others are tried again, and are placed later."""
    add_nodes(harness, 1)
    add_composite(harness, "top", 1)
    add_gang(harness, "a", pods=2, parent="top")
    add_gang(harness, "b", pods=2, parent="top")
    harness.run_for(0.5)
    assert (len(bound(harness, "a")), len(bound(harness, "b"))) == (2, 0)
    assert (condition(harness, "a").status, condition(harness, "b").status) == ("True", "False")
    harness.cluster.add(make_node("more", cpu="2"))
    harness.run_for(30.0)
    assert (len(bound(harness, "b")), condition(harness, "b").status) == (2, "True")


def test_policies_at_each_level_count(harness: SchedulerHarness) -> None:
    """A group that fits is not placed if its composite pod group lacks another one; the rest of the tree is."""
    harness.cluster.add(make_node("n", cpu="20"))
    add_composite(harness, "root", 2)
    for name, least in (("gang", 2), ("basic", None), ("short", 2)):
        add_composite(harness, name, least, parent="root")
    for name, parent, cpu in (("a", "gang", 1), ("b", "gang", 1), ("c", "gang", 99), ("d", "basic", 99)):
        add_gang(harness, name, pods=3, cpu=str(cpu), parent=parent)
    for name, parent, cpu in (("e", "basic", 1), ("f", "short", 1), ("g", "short", 99)):
        add_gang(harness, name, pods=3, cpu=str(cpu), parent=parent)
    harness.run_for(0.01)
    assert [name for name in "abcdefg" if bound(harness, name)] == ["a", "b", "e"]
    short = "0/1 placements are available, first placement status: minCount (2) cannot be satisfied: 1 scheduled"
    assert message(harness, "f0") == f"pod group is unschedulable, {short}, 0 remaining"


def test_a_composite_group_that_is_no_gang_needs_one_of_its_groups(harness: SchedulerHarness) -> None:
    add_nodes(harness, 1)
    add_composite(harness, "top")
    add_gang(harness, "a", pods=3, parent="top")
    add_gang(harness, "b", pods=2, parent="top")
    harness.run_for(0.5)
    assert (len(bound(harness, "a")), len(bound(harness, "b"))) == (0, 2)


def test_pods_wait_for_all_groups_above_theirs(harness: SchedulerHarness) -> None:
    """They are incomplete without a root, and gated until enough groups have enough pods."""
    add_nodes(harness, 3)
    add_gang(harness, "a", pods=2, parent="low")
    harness.run_until_idle()
    add_composite(harness, "low", 1, parent="top")
    harness.run_until_idle()
    assert harness.place_of("a0") == "incomplete"
    add_composite(harness, "top", 2)
    harness.run_until_idle()
    assert harness.place_of("a0") == "gated"
    assert conditions(harness, "a") == ()
    harness.cluster.add(make_pod_group("b", 2, parent="top"))
    add_members(harness, "b", [0])
    harness.run_until_idle()
    assert harness.place_of("b0") == "gated"
    add_members(harness, "b", [1])
    harness.run_until_idle()
    assert len(bound(harness, "a") + bound(harness, "b")) == 4


def test_a_lower_minimum_of_a_group_lets_its_tree_in(harness: SchedulerHarness) -> None:
    add_nodes(harness, 2)
    add_composite(harness, "top", 2)
    add_gang(harness, "a", pods=1, parent="top")
    add_gang(harness, "b", pods=1, min_count=2, parent="top")
    harness.run_until_idle()
    assert harness.place_of("a0") == "gated"
    harness.cluster.update(make_pod_group("b", 1, parent="top"))
    harness.run_until_idle()
    assert len(bound(harness, "a") + bound(harness, "b")) == 2


@pytest.mark.parametrize("deleted", ["top", "low"])
def test_pods_below_a_deleted_composite_group_are_incomplete(harness: SchedulerHarness, deleted: str) -> None:
    """They are queued again with the next one of its name; a pod group of the same name is another group."""
    add_nodes(harness, 1, cpu="1")
    add_composite(harness, "top", 2)
    add_composite(harness, "low", 1, parent="top")
    add_gang(harness, "a", pods=2, parent="low")
    add_gang(harness, "b", pods=2, parent="top")
    harness.run_for(0.5)
    group = harness.cluster.get(CompositePodGroup, f"default/{deleted}")
    assert group is not None
    harness.cluster.delete(group)
    harness.run_for(0.5)
    assert harness.place_of("a0") == "incomplete"
    assert harness.place_of("b0") == ("incomplete" if deleted == "top" else "gated")
    harness.cluster.add(make_pod_group(deleted, 1))
    harness.run_for(0.5)
    assert harness.place_of("a0") == "incomplete"
    harness.cluster.add(group)
    add_nodes(harness, 2, cpu="2", first=1)
    harness.run_for(30.0)
    assert len(bound(harness, "a") + bound(harness, "b")) == 4


@pytest.mark.parametrize(("parents", "place"), [(3, "active"), (4, "gated")])
def test_a_tree_has_at_most_four_levels(harness: SchedulerHarness, parents: int, place: str) -> None:
    for number in range(parents):
        add_composite(harness, f"p{number}", parent=f"p{number + 1}" if number < parents - 1 else None)
    add_gang(harness, "a", pods=1, parent="p0")
    harness.run_for(0.0)
    add_nodes(harness, 1)
    harness.run_for(20.0)
    assert len(bound(harness, "a")) == (place == "active")
    if place == "gated":
        assert harness.place_of("a0") == "gated"


def test_a_tree_of_a_thousand_levels_stops_no_other_pod(harness: SchedulerHarness) -> None:
    add_nodes(harness, 1)
    add_composite(harness, "p0", 1)
    for number in range(1000):
        add_composite(harness, f"p{number + 1}", 1, parent=f"p{number}")
    add_gang(harness, "deep", pods=1, parent="p1000")
    add_gang(harness, "flat", pods=1, parent="p0")
    add_gang(harness, "other", pods=1)
    harness.run_for(1.0)
    assert [len(bound(harness, name)) for name in ("deep", "flat", "other")] == [0, 0, 1]
    root = harness.cluster.get(CompositePodGroup, "default/p0")
    assert root is not None
    harness.cluster.delete(root)
    harness.run_for(1.0)
    assert harness.place_of("flat0") == "incomplete"


def test_groups_that_are_their_own_parents_never_start(harness: SchedulerHarness) -> None:
    add_nodes(harness, 1)
    add_composite(harness, "one", parent="other")
    add_composite(harness, "other", parent="one")
    add_gang(harness, "a", pods=1, parent="one")
    harness.run_for(1.0)
    assert harness.place_of("a0") == "incomplete"


def test_a_topology_constraint_keeps_a_tree_in_one_domain(harness: SchedulerHarness) -> None:
    """The only rack with room for both groups is chosen, and later pods go there, too."""
    for rack, cpu in (("r0", "3"), ("r1", "5"), ("r2", "2")):
        harness.cluster.add(make_node(f"n-{rack}", cpu=cpu, labels={"rack": rack}))
    add_composite(harness, "top", 2, topology_key="rack")
    add_gang(harness, "a", pods=2, parent="top")
    add_gang(harness, "b", pods=2, parent="top")
    harness.run_until_idle()
    assert {*bound(harness, "a"), *bound(harness, "b")} == {"n-r1"}
    harness.cluster.add(make_node("more", cpu="9", labels={"rack": "r9"}))
    add_members(harness, "a", [2])
    harness.run_until_idle()
    assert bound(harness, "a") == ["n-r1"] * 3


def test_constraints_of_groups_apply_within_those_of_their_parents(harness: SchedulerHarness) -> None:
    """Each group has one rack, and both racks are in one zone; a zone with more racks of too few nodes does not do."""
    for zone, racks, cpu in (("z0", 4, "1"), ("z1", 2, "2")):
        for rack in range(racks):
            labels = {"zone": zone, "rack": f"{zone}-{rack}"}
            harness.cluster.add(make_node(f"{zone}-{rack}", cpu=cpu, labels=labels))
    add_composite(harness, "top", 2, topology_key="zone")
    for name in "ab":
        add_gang(harness, name, pods=2, parent="top", topology_key="rack")
    harness.run_until_idle()
    assert sorted({*bound(harness, "a")} | {*bound(harness, "b")}) == ["z1-0", "z1-1"]
    assert len({*bound(harness, "a")}) == 1


def test_a_group_without_a_fitting_domain_does_not_fail_its_tree(harness: SchedulerHarness) -> None:
    add_nodes(harness, 2)
    add_composite(harness, "top", 1)
    add_gang(harness, "a", pods=1, parent="top", topology_key="row")
    add_gang(harness, "b", pods=1, parent="top")
    harness.run_for(0.5)
    assert len(bound(harness, "b")) == 1
    assert condition(harness, "a").message.startswith("no feasible placements found")


def test_the_root_has_the_priority_of_all_pods(harness: SchedulerHarness) -> None:
    """Otherwise none is scheduled, and all pod groups have the message."""
    add_nodes(harness, 1)
    add_composite(harness, "top", 1, priority=7)
    add_gang(harness, "a", pods=1, parent="top", priority=5)
    add_gang(harness, "b", pods=1, parent="top", priority=7)
    harness.run_for(0.5)
    text = "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 7"
    assert [message(harness, pod) for pod in ("a0", "b0")] == [text] * 2
    assert [condition(harness, name).message for name in "ab"] == [text] * 2


def test_a_group_without_pods_counts_as_one_that_does_not_fit(harness: SchedulerHarness) -> None:
    add_nodes(harness, 1)
    add_composite(harness, "top", 1)
    add_composite(harness, "empty", 1, parent="top")
    harness.cluster.add(make_pod_group("none", parent="top"))
    add_gang(harness, "a", pods=1, parent="top")
    harness.run_for(0.5)
    assert len(bound(harness, "a")) == 1
    assert condition(harness, "none").reason == "Unschedulable"


def test_without_the_gate_parents_are_ignored(start: Start) -> None:
    harness = start(features=features(*GATES))
    add_nodes(harness, 1)
    add_composite(harness, "top", 2)
    add_gang(harness, "a", pods=1, parent="top")
    add_gang(harness, "b", pods=1, parent="missing")
    harness.run_until_idle()
    assert len(bound(harness, "a") + bound(harness, "b")) == 2


def test_the_status_of_a_composite_group_is_not_written(harness: SchedulerHarness) -> None:
    """That is so in kube-scheduler, too: only pod groups have conditions."""
    add_nodes(harness, 1)
    add_composite(harness, "top", 1)
    add_gang(harness, "a", pods=1, parent="top")
    harness.run_until_idle()
    assert harness.core.cluster.groups is not None
    assert condition(harness, "a").status == "True"
    assert {type(obj) for obj in (*harness.cluster.all(PodGroup), *harness.cluster.all(CompositePodGroup))} == {
        PodGroup,
        CompositePodGroup,
    }
    assert len(harness.cluster.all(Pod)) == 1
