"""Pods of a group are scheduled together, or not at all."""

import pytest
from msgspec.structs import replace

from kubestow.api.pod_groups import PodGroup
from kubestow.config import Features
from kubestow.testing import make_node, make_pod, make_pod_group
from support.scenarios.gangs import add_gang, add_members, add_nodes, bound, condition, conditions, features, message
from support.scenarios.start import Start

NOT_ENOUGH = (
    "0/1 placements are available, first placement status: "
    "minCount ({}) cannot be satisfied: {} scheduled, {} remaining"
)
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


def test_a_gang_that_fits_is_bound_as_a_whole(start: Start) -> None:
    """The group gets a condition."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=4)
    harness.run_until_idle()
    found = condition(harness, "a")
    assert len(bound(harness, "a")) == 4
    assert (found.status, found.reason, found.message) == ("True", "Scheduled", "")


@pytest.mark.parametrize("pods", [3, 6])
def test_a_gang_that_does_not_fit_uses_nothing(start: Start, pods: int) -> None:
    """That is so whether it is small and tried, or large and counted; each pod has its own message."""
    harness = start(features=features())
    add_nodes(harness, pods - 1, cpu="1")
    add_gang(harness, "a", pods)
    harness.run_until_idle()
    assert bound(harness, "a") == []
    assert harness.core.cluster.assumed_count == 0
    messages = [message(harness, f"a{number}") for number in range(pods)]
    group = condition(harness, "a")
    assert (group.status, group.reason) == ("False", "Unschedulable")
    why = NOT_ENOUGH.format(pods, pods - 1, 0)
    assert group.message == f"pod group is unschedulable, {why}, {NO_VICTIMS}"
    assert messages[:-1] == [f"pod group is unschedulable, {group.message}"] * (pods - 1)
    assert messages[-1] == f"0/{pods - 1} nodes are available: {pods - 1} Insufficient cpu."


@pytest.mark.parametrize("pods", [3, 6])
def test_a_trial_ends_when_the_minimum_is_out_of_reach(start: Start, pods: int) -> None:
    """Pods that were not tried have the message of the group from before preemption."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="1")
    add_gang(harness, "a", pods)
    harness.run_until_idle()
    messages = [message(harness, f"a{number}") for number in range(pods)]
    why = NOT_ENOUGH.format(pods, 1, pods - 2)
    assert messages[0] == f"pod group is unschedulable, pod group is unschedulable, {why}, {NO_VICTIMS}"
    assert messages[1] == "0/1 nodes are available: 1 Insufficient cpu."
    assert messages[2:] == [f"pod group is unschedulable, {why}"] * (pods - 2)


def test_a_group_is_placed_when_there_is_enough_capacity(start: Start) -> None:
    """The whole group is retried when its backoff ends."""
    harness = start(features=features())
    add_nodes(harness, 2, cpu="1")
    add_gang(harness, "a", pods=3)
    harness.run_for(0.5)
    harness.cluster.add(make_node("more", cpu="1"))
    harness.run_for(0.4)
    assert bound(harness, "a") == []
    harness.run_for(2.0)
    assert len(bound(harness, "a")) == 3


@pytest.mark.parametrize(("pods", "longest"), [(4, 20.0), (9, 30.0)])
def test_the_longest_backoff_of_a_group_grows_with_its_size(start: Start, pods: int, longest: float) -> None:
    """It is that of a pod times the square root of the number of pods."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="1")
    add_gang(harness, "a", pods)
    attempts = harness.core.scheduler.attempts
    harness.run_for(200.0)
    before = attempts.count
    harness.run_for(4 * (longest + 1.0))
    assert (attempts.count - before) // pods in (3, 4)


def test_a_group_is_retried_without_an_event(start: Start) -> None:
    """A pod may leave its node to another one by moving to a tainted node; after the backoff it does."""
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
    """Without the group they are incomplete, without enough pods they are gated; neither has a message."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_members(harness, "a", range(2))
    harness.run_until_idle()
    assert harness.place_of("a0") == "incomplete"
    harness.cluster.add(make_pod_group("a", 3))
    harness.run_until_idle()
    assert harness.place_of("a0") == "gated"
    assert conditions(harness, "a") == ()
    add_members(harness, "a", [2])
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 3


def test_pods_that_come_later_join(start: Start) -> None:
    """A running group gets more pods one by one; one that does not fit does not change the group's condition."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=3)
    harness.run_until_idle()
    add_members(harness, "a", [3, 4])
    harness.run_until_idle()
    found = condition(harness, "a")
    assert len(bound(harness, "a")) == 4
    assert found.status == "True"


def test_pods_beyond_the_minimum_are_placed_if_they_fit(start: Start) -> None:
    """The others are tried again at once, and then back off."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=6, min_count=2)
    harness.run_for(0.5)
    attempts = harness.core.scheduler.attempts.count
    assert (len(bound(harness, "a")), attempts) == (4, 8)
    assert [message(harness, f"a{number}") for number in (4, 5)] == ["0/2 nodes are available: 2 Insufficient cpu."] * 2
    harness.cluster.add(make_node("more", cpu="2"))
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 6


def test_a_group_that_is_no_gang_is_placed_in_part(start: Start) -> None:
    """It has the basic policy."""
    harness = start(features=features())
    add_nodes(harness, 1)
    harness.cluster.add(make_pod_group("a"))
    add_members(harness, "a", range(3))
    harness.run_until_idle()
    found = condition(harness, "a")
    assert len(bound(harness, "a")) == 2
    assert found.status == "True"


def test_groups_that_each_need_most_of_the_cluster(start: Start) -> None:
    """Their pods are queued in turn, and still one is placed as a whole; the other uses nothing, and follows."""
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
    """That is so whether placements are tried or chosen by counts."""
    harness = start(features=features())
    add_nodes(harness, 6, racks=3)
    add_gang(harness, "a", pods, topology_key="rack")
    harness.run_until_idle()
    racks = {harness.cluster.node(name).metadata.labels["rack"] for name in bound(harness, "a")}
    assert len(bound(harness, "a")) == pods
    assert len(racks) == 1


def test_no_domain_is_large_enough(start: Start) -> None:
    """All domains together would be; the message is that of the first."""
    harness = start(features=features())
    add_nodes(harness, 4, cpu="1", racks=2)
    add_gang(harness, "a", pods=4, topology_key="rack")
    harness.run_until_idle()
    found = condition(harness, "a")
    assert bound(harness, "a") == []
    assert found.message.startswith("pod group is unschedulable, 0/2 placements are available")
    assert message(harness, "a2") == "0/2 nodes are available: 2 Insufficient cpu."


def test_no_node_has_the_label(start: Start) -> None:
    """There is no placement then."""
    harness = start(features=features())
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=2, topology_key="row")
    harness.run_for(0.5)
    found = condition(harness, "a")
    assert found.message.startswith("no feasible placements found")


def test_later_pods_are_placed_in_the_domain_of_the_first(start: Start) -> None:
    """That is so even if another domain has more capacity."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="4", racks=1)
    add_gang(harness, "a", pods=2, topology_key="rack")
    harness.run_until_idle()
    harness.cluster.add(make_node("empty", cpu="64", labels={"rack": "other"}))
    add_members(harness, "a", [2])
    harness.run_until_idle()
    assert bound(harness, "a") == ["n0"] * 3


def test_gated_pods_are_not_scheduled_with_their_group(start: Start) -> None:
    """They count as existing, and the others wait for them."""
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
    """Pods of two profiles cannot be tried together; all of them get the message."""
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
    text = 'should have the same .spec.schedulerName set, got: "other" and "default-scheduler"'
    assert text in message(harness, "a0")
    assert text in message(harness, "a1")


def test_all_pods_of_a_group_have_its_priority(start: Start) -> None:
    """Otherwise none is scheduled."""
    harness = start(features=features())
    add_nodes(harness, 1)
    harness.cluster.add(make_pod_group("a", 1, priority=5))
    add_members(harness, "a", [0], priority=5)
    add_members(harness, "a", [1], priority=10)
    harness.run_for(0.5)
    text = "all pods in a single pod group should have the same priority as the pod group's priority, got 10 and 5"
    assert (message(harness, "a0"), message(harness, "a1")) == (text, text)
    assert (condition(harness, "a").reason, condition(harness, "a").message) == ("SchedulerError", text)


def test_a_deleted_group_leaves_its_pods_incomplete(start: Start) -> None:
    """They are queued again with the next group of the name."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="1")
    add_gang(harness, "a", pods=2)
    harness.run_for(0.5)
    group = harness.cluster.get(PodGroup, "default/a")
    assert group is not None
    harness.cluster.delete(group)
    harness.run_for(0.5)
    assert [harness.place_of(f"a{number}") for number in (0, 1)] == ["incomplete"] * 2
    harness.cluster.add(make_pod_group("a", 1))
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 1


def test_the_condition_of_a_group_follows_its_generation(start: Start) -> None:
    """It is written again, with its time of transition, when the group has changed."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="1")
    add_gang(harness, "a", pods=2)
    harness.run_for(10.0)
    first = condition(harness, "a")
    group = harness.cluster.get(PodGroup, "default/a")
    assert group is not None
    harness.cluster.update(replace(group, metadata=replace(group.metadata, generation=7)))
    harness.run_until_idle()
    second = condition(harness, "a")
    assert (first.observedGeneration, second.observedGeneration) == (0, 7)
    assert (first.message, first.lastTransitionTime) == (second.message, second.lastTransitionTime)


def test_a_lower_minimum_lets_waiting_pods_in(start: Start) -> None:
    """It may be changed at any time."""
    harness = start(features=features())
    add_nodes(harness, 1)
    add_gang(harness, "a", pods=2, min_count=3)
    harness.run_until_idle()
    assert harness.place_of("a0") == "gated"
    harness.cluster.update(make_pod_group("a", 2))
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 2


@pytest.mark.parametrize("gates", [(), ("GenericWorkload",)])
def test_with_fewer_gates(start: Start, gates: tuple[str, ...]) -> None:
    """Without any gate, groups are ignored; without topology, there are no placements."""
    harness = start(features=features(*gates) if gates else Features())
    add_nodes(harness, 1)
    add_gang(harness, "a", pods=3)
    harness.run_for(0.5)
    group = harness.cluster.get(PodGroup, "default/a")
    assert len(bound(harness, "a")) == (0 if gates else 2)
    messages = [one.message for one in group.status.conditions] if group else []
    assert [message.partition(":")[0] for message in messages] == (
        ["minCount (3) cannot be satisfied"] if gates else []
    )


def test_a_pod_that_is_deleted_while_its_group_is_being_bound(start: Start) -> None:
    """The others are bound nevertheless, since it is too late to stop them."""
    harness = start(features=features(), latency=1.0)
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=3)
    harness.run_for(0.5)
    harness.cluster.delete(harness.cluster.pod("a1"))
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 2
