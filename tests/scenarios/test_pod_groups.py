"""Pods that belong together are scheduled together, or not at all."""

from collections.abc import Callable

import pytest

from kubestow.api.pod_groups import PodGroup
from kubestow.config import Features
from kubestow.testing import SchedulerHarness, make_node, make_pod, make_pod_group
from scenarios.gangs import add_gang, add_members, add_nodes, bound, condition, conditions, features, words

Start = Callable[..., SchedulerHarness]

WAITS = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def test_a_gang_that_fits_is_bound_as_a_whole(start: Start) -> None:
    """And the group says so."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=4)
    harness.run_until_idle()
    said = condition(harness, "a")
    assert len(bound(harness, "a")) == 4
    assert (said.status, said.reason, said.message) == ("True", "Scheduled", "")


@pytest.mark.parametrize("pods", [3, 6])
def test_a_gang_that_does_not_fit_takes_nothing(start: Start, pods: int) -> None:
    """Whether it is small and tried, or large and counted; each pod says what it lacked."""
    harness = start(features=features())
    add_nodes(harness, pods - 1, cpu="1")
    add_gang(harness, "a", pods)
    harness.run_until_idle()
    assert bound(harness, "a") == []
    assert harness.core.cluster.assumed_count == 0
    said = [words(harness, f"a{number}") for number in range(pods)]
    assert said[:-1] == [WAITS] * (pods - 1)
    assert said[-1].startswith(f"0/{pods - 1} nodes are available: {pods - 1} Insufficient cpu.")
    group = condition(harness, "a")
    assert (group.status, group.reason) == ("False", "Unschedulable")
    assert group.message.startswith("0/1 placements are available, first placement status: pod group is unschedulable")


def test_it_is_placed_when_there_is_room(start: Start) -> None:
    """A node that is added is enough to have the whole group tried again."""
    harness = start(features=features())
    add_nodes(harness, 2, cpu="1")
    add_gang(harness, "a", pods=3)
    harness.run_until_idle()
    harness.cluster.add(make_node("more", cpu="1"))
    harness.run_for(0.5)
    assert len(bound(harness, "a")) == 3


def test_what_no_hint_knows_of_is_found_by_trying_again(start: Start) -> None:
    """A pod that could move to a node with a taint would leave its place to another; ten seconds later it does."""
    harness = start(features=features())
    harness.cluster.add(make_node("closed", cpu="8", taints=["closed:NoSchedule"]))
    harness.cluster.add(make_node("open", cpu="2", labels={"disk": "ssd"}))
    harness.cluster.add(make_pod_group("a", 2))
    harness.cluster.add(make_pod("a0", cpu="1", group="a"))
    harness.cluster.add(make_pod("a1", cpu="2", group="a", node_selector={"disk": "ssd"}))
    harness.run_until_idle()
    assert harness.bindings == {}
    harness.cluster.update(make_node("closed", cpu="8"))
    harness.run_for(11.0)
    assert harness.bindings == {"default/a0": "closed", "default/a1": "open"}


def test_pods_wait_for_their_group_and_for_each_other(start: Start) -> None:
    """Neither the group nor enough pods: held back, and nothing is said of them."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_members(harness, "a", range(2))
    harness.run_until_idle()
    assert harness.place_of("a0") == "gated"
    harness.cluster.add(make_pod_group("a", 3))
    harness.run_until_idle()
    assert harness.place_of("a0") == "gated"
    assert conditions(harness, "a") == ()
    add_members(harness, "a", [2])
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 3


def test_pods_that_come_later_join(start: Start) -> None:
    """A group that runs takes more pods one by one; that one does not fit changes nothing about the group."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=3)
    harness.run_until_idle()
    add_members(harness, "a", [3, 4])
    harness.run_until_idle()
    said = condition(harness, "a")
    assert len(bound(harness, "a")) == 4
    assert said.status == "True"


def test_more_than_the_least_are_taken_if_they_fit(start: Start) -> None:
    """What does not fit beyond that waits by itself."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=6, min_count=2)
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 4
    assert [harness.place_of(f"a{number}") for number in (4, 5)] == ["unschedulable", "unschedulable"]


def test_a_group_that_is_no_gang_takes_what_it_gets(start: Start) -> None:
    """The basic policy."""
    harness = start(features=features())
    add_nodes(harness, 1)
    harness.cluster.add(make_pod_group("a"))
    add_members(harness, "a", range(3))
    harness.run_until_idle()
    said = condition(harness, "a")
    assert len(bound(harness, "a")) == 2
    assert said.status == "True"


def test_groups_that_each_want_most_of_the_cluster(start: Start) -> None:
    """Their pods come in turn, and still one is placed as a whole; the other holds nothing, and follows."""
    harness = start(features=features())
    add_nodes(harness, 3)
    for name in "ab":
        harness.cluster.add(make_pod_group(name, 4))
    for number in range(4):
        for name in "ab":
            add_members(harness, name, [number])
    harness.run_until_idle()
    assert sorted(len(bound(harness, name)) for name in "ab") == [0, 4]
    assert harness.core.cluster.assumed_count == 0
    first = "a" if bound(harness, "a") else "b"
    for number in range(4):
        harness.cluster.delete(harness.cluster.pod(f"{first}{number}"), grace_seconds=0)
    harness.run_until_idle()
    assert len(bound(harness, "b" if first == "a" else "a")) == 4


@pytest.mark.parametrize("pods", [2, 4])
def test_a_topology_constraint_keeps_a_group_in_one_domain(start: Start, pods: int) -> None:
    """Whether placements are tried or chosen by counts."""
    harness = start(features=features())
    add_nodes(harness, 6, racks=3)
    add_gang(harness, "a", pods, topology_key="rack")
    harness.run_until_idle()
    racks = {harness.cluster.node(name).metadata.labels["rack"] for name in bound(harness, "a")}
    assert len(bound(harness, "a")) == pods
    assert len(racks) == 1


def test_no_domain_is_large_enough(start: Start) -> None:
    """Together they would be; the words are those of the first."""
    harness = start(features=features())
    add_nodes(harness, 4, cpu="1", racks=2)
    add_gang(harness, "a", pods=4, topology_key="rack")
    harness.run_until_idle()
    said = condition(harness, "a")
    assert bound(harness, "a") == []
    assert said.message.startswith("0/2 placements are available")
    assert words(harness, "a3").startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_no_node_has_the_label(start: Start) -> None:
    """Then there is no placement at all."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=2, topology_key="row")
    harness.run_for(0.5)
    said = condition(harness, "a")
    assert said.message.startswith("no feasible placements found")


def test_later_pods_follow_to_the_domain_of_the_first(start: Start) -> None:
    """Also where another has more room."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="4", racks=1)
    add_gang(harness, "a", pods=2, topology_key="rack")
    harness.run_until_idle()
    harness.cluster.add(make_node("empty", cpu="64", labels={"rack": "other"}))
    add_members(harness, "a", [2])
    harness.run_until_idle()
    assert bound(harness, "a") == ["n0"] * 3


def test_pods_that_are_gated_do_not_come_along(start: Start) -> None:
    """They count as being there, and the others wait for them."""
    harness = start(features=features())
    add_nodes(harness, 3)
    harness.cluster.add(make_pod_group("a", 3))
    add_members(harness, "a", [0, 1])
    add_members(harness, "a", [2], gates=["later"])
    harness.run_until_idle()
    assert bound(harness, "a") == []
    harness.cluster.update(make_pod("a2", cpu="1", group="a"))
    harness.run_for(0.5)
    assert len(bound(harness, "a")) == 3


def test_a_group_has_one_scheduler(start: Start) -> None:
    """Pods of two profiles cannot be tried together; all of them say so."""
    configuration = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: default-scheduler}, {schedulerName: other}]\n"
    )
    harness = start(configuration, features=features())
    add_nodes(harness, 2)
    harness.cluster.add(make_pod_group("a", 2))
    add_members(harness, "a", [0])
    add_members(harness, "a", [1], scheduler="other")
    harness.run_for(0.5)
    said = 'should have the same .spec.schedulerName set, got: "other" and "default-scheduler"'
    assert said in words(harness, "a0")
    assert said in words(harness, "a1")


def test_the_more_important_pods_of_a_group_choose_first(start: Start) -> None:
    """Whoever came first."""
    harness = start(features=features())
    add_nodes(harness, 1)
    harness.cluster.add(make_pod_group("a"))
    add_members(harness, "a", [0, 1])
    add_members(harness, "a", [2], priority=10)
    harness.run_until_idle()
    assert harness.cluster.node_of("a2") == "n0"


@pytest.mark.parametrize("gates", [(), ("GenericWorkload",), ("GenericWorkload", "GangScheduling")])
def test_with_fewer_gates(start: Start, gates: tuple[str, ...]) -> None:
    """Without any, groups mean nothing; without gangs, nobody waits; without topology, there are no placements."""
    harness = start(features=features(*gates) if gates else Features())
    add_nodes(harness, 1)
    add_gang(harness, "a", pods=3)
    harness.run_for(0.5)
    group = harness.cluster.get(PodGroup, "default/a")
    assert len(bound(harness, "a")) == (0 if "GangScheduling" in gates else 2)
    said = [one.message for one in group.status.conditions] if group else []
    assert said == {0: [], 1: [""], 2: ["pod group is unschedulable"]}[len(gates)]


def test_a_pod_that_goes_while_its_group_is_bound(start: Start) -> None:
    """The others are bound all the same: nobody can tell in time."""
    harness = start(features=features(), latency=1.0)
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=3)
    harness.run_for(0.5)
    harness.cluster.delete(harness.cluster.pod("a1"))
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 2
