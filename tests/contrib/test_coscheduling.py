"""Coscheduling: pods of a PodGroup of scheduling.x-k8s.io are bound together, or give up their nodes."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.contrib.coscheduling import GROUP_LABEL, Coscheduling, PodGroup
from kubestow.plugin import Pod
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod
from support.contrib import configured


def scheduler(*nodes: int, **args: Any) -> SchedulerHarness:
    """Return a scheduler with nodes of this many CPUs."""
    harness = SchedulerHarness(
        configured("Coscheduling", args, disabled={"multiPoint": ["PrioritySort"]}), plugins=[Coscheduling]
    )
    for number, cpu in enumerate(nodes):
        harness.cluster.add(make_node(f"n{number}", cpu=cpu))
    return harness


def group(name: str, required: int, **spec: Any) -> PodGroup:
    return make_object(PodGroup, name, spec={"minMember": required, **spec})


def member(name: str, of: str, **fields: Any) -> Pod:
    return make_pod(name, labels={GROUP_LABEL: of}, **{"cpu": 1, **fields})


def add(harness: SchedulerHarness, objects: Iterable[Any]) -> None:
    for obj in objects:
        harness.cluster.add(obj)
    harness.run_for(0.5)


def bound(harness: SchedulerHarness) -> set[str]:
    return {pod.removeprefix("default/") for pod in harness.bindings}


def message(harness: SchedulerHarness, pod: str) -> str:
    return harness.cluster.conditions(pod)["PodScheduled"].message


def test_pods_of_a_group_are_bound_together() -> None:
    """The pods wait until minMember pods have a node; more pods of the group are bound at once."""
    with scheduler(4) as harness:
        add(harness, [group("g", 3), member("a", "g")])
        assert "pre-filter pod a cannot find enough sibling pods, current pods number: 1, minMember of group: 3" in (
            message(harness, "a")
        )
        add(harness, [member("b", "g")])
        assert bound(harness) == set()
        add(harness, [member("c", "g")])
        assert bound(harness) == {"a", "b", "c"}
        add(harness, [member("d", "g")])
        assert bound(harness) == {"a", "b", "c", "d"}


def test_a_group_that_does_not_fit_leaves_its_nodes_to_others() -> None:
    """If one pod has no node, those that are held are rejected; later, one event lets all of them in."""
    with scheduler(3) as harness:
        add(harness, [group("g", 4), *(member(f"g-{number}", "g") for number in range(4))])
        assert bound(harness) == set()
        notes = harness.events.notes("FailedScheduling")
        assert notes[0].endswith(
            "PodGroup default/g gets rejected due to Pod g-3 is unschedulable even after PostFilter"
        )
        assert "optimistic rejection in PostFilter" in notes[1]
        assert not harness.core.queue.nominator.nodes
        add(harness, [make_pod("single", cpu=3)])
        assert bound(harness) == {"single"}
        add(harness, [make_node("n1", cpu=4)])
        harness.run_for(10)
        assert bound(harness) == {"single", "g-0", "g-1", "g-2", "g-3"}


def test_a_group_that_does_not_fit_is_not_tried_without_pause() -> None:
    """The nodes that it gives up would let its pods in again, one after the other."""
    with scheduler(3) as harness:
        add(harness, [group("g", 4), *(member(f"g-{number}", "g") for number in range(4))])
        harness.run_for(30)
        tries = len(harness.attempts.decisions)
        harness.run_for(60)
        assert len(harness.attempts.decisions) - tries <= 6 * 6


def test_a_small_gap_does_not_reject_the_group() -> None:
    """With at most podGroupRejectPercentage of minMember missing, the other pods stay on their nodes."""
    with scheduler(3, podGroupRejectPercentage=25) as harness:
        add(harness, [group("g", 4), *(member(f"g-{number}", "g") for number in range(4))])
        assert harness.place_of("g-0") == "waiting"
        add(harness, [make_node("n1", cpu=1)])
        assert len(bound(harness)) == 4


def test_pods_are_held_for_the_time_of_their_group() -> None:
    """scheduleTimeoutSeconds overrides permitWaitingTimeSeconds; if it ends, all pods of the group are rejected."""
    with scheduler(2, permitWaitingTimeSeconds=20, podGroupRejectPercentage=100) as harness:
        short = [group("short", 2, scheduleTimeoutSeconds=5), member("s-0", "short"), member("s-1", "short", cpu=3)]
        add(harness, short)
        assert harness.place_of("s-0") == "waiting"
        harness.run_for(5)
        assert harness.place_of("s-0") == "unschedulable"
        assert "rejected due to timeout after waiting 5s at plugin Coscheduling" in message(harness, "s-0")
        add(harness, [group("long", 2), member("l-0", "long"), member("l-1", "long", cpu=3)])
        harness.run_for(17)
        assert harness.place_of("l-0") == "waiting"
        harness.run_for(5)
        assert harness.place_of("l-0") == "unschedulable"


def test_a_pod_without_its_group_is_retried_when_the_group_is_created() -> None:
    with scheduler(2) as harness:
        add(harness, [member("a", "g")])
        assert "PodGroup not found" in message(harness, "a")
        add(harness, [group("other", 1)])
        assert bound(harness) == set()
        add(harness, [group("g", 1)])
        assert bound(harness) == {"a"}


def test_a_lower_minimum_releases_the_pods_that_are_held() -> None:
    with scheduler(2, podGroupRejectPercentage=100) as harness:
        add(harness, [group("g", 3), *(member(f"g-{number}", "g") for number in range(3))])
        assert bound(harness) == set()
        found = harness.cluster.get(PodGroup, "default/g")
        assert found is not None
        harness.cluster.update(replace(found, spec=replace(found.spec, minMember=2)))
        harness.run_for(1)
        assert len(bound(harness)) == 2


def test_gated_pods_do_not_count() -> None:
    """They cannot be scheduled; when the gates of one are removed, it takes its siblings along."""
    with scheduler(2) as harness:
        add(harness, [group("g", 2), member("a", "g"), member("b", "g", gates=["wait"])])
        assert "cannot proceed due to gated pods in the same PodGroup" in message(harness, "a")
        gated = harness.cluster.pod("b")
        harness.cluster.update(replace(gated, spec=replace(gated.spec, schedulingGates=())))
        harness.run_for(1)
        assert bound(harness) == {"a", "b"}


def test_min_resources_are_compared_with_the_whole_cluster() -> None:
    """What pods of the group already hold counts as free; a resource that no node has is missing completely."""
    with scheduler(2, 2) as harness:
        needs = {"cpu": 4, "example.com/gpu": 1}
        add(harness, [make_pod("other", cpu="500m")])
        add(harness, [group("g", 2, minResources=needs), member("a", "g"), member("b", "g")])
        assert "resource gap: cpu: 500m, example.com/gpu: 1" in message(harness, "a")
        add(harness, [make_node("large", cpu=1, resources={"example.com/gpu": 1}), member("c", "g")])
        assert bound(harness) == {"other", "a", "b", "c"}


def test_a_pod_that_ends_may_leave_what_a_group_needs() -> None:
    with scheduler(2) as harness:
        add(harness, [make_pod("other", cpu=1)])
        add(harness, [group("g", 2, minResources={"cpu": 2}), member("a", "g"), member("b", "g")])
        assert "resource gap: cpu: 1." in message(harness, "a")
        harness.cluster.delete(harness.cluster.pod("other"), grace_seconds=0)
        harness.run_for(2)
        assert bound(harness) == {"other", "a", "b"}


def test_invalid_min_resources_are_reported() -> None:
    with scheduler(2) as harness:
        add(harness, [group("g", 1, minResources={"cpu": "many"}), member("a", "g")])
        assert "minResources of PodGroup default/g: " in message(harness, "a")


def test_siblings_wait_for_the_pod_that_does_not_fit() -> None:
    """A backoff does not retry them; the event that lets the pod in does."""
    with scheduler(2, podGroupBackoffSeconds=10) as harness:
        add(harness, [group("g", 3), member("a", "g"), member("b", "g", cpu=8), member("c", "g")])
        assert "podGroup default/g failed recently" in message(harness, "c")
        harness.run_for(60)
        assert len(harness.attempts.about("c")) == 1
        add(harness, [make_node("n1", cpu=8)])
        assert bound(harness) == {"a", "b", "c"}


def test_a_pod_that_is_new_during_a_backoff_is_retried_after_it() -> None:
    """So are all pods that were refused if the one that did not fit has been deleted."""
    with scheduler(2, podGroupBackoffSeconds=10) as harness:
        add(harness, [group("g", 2), member("a", "g"), member("b", "g", cpu=8)])
        add(harness, [member("aa", "g")])
        assert "podGroup default/g failed recently" in message(harness, "aa")
        harness.run_for(8)
        assert bound(harness) == set()
        harness.run_for(2)
        assert bound(harness) == {"a", "aa"}


def test_refused_pods_are_retried_after_the_backoff_if_the_one_that_did_not_fit_is_gone() -> None:
    with scheduler(2, podGroupBackoffSeconds=10) as harness:
        add(harness, [group("g", 2), member("a", "g"), member("b", "g", cpu=8), member("c", "g")])
        harness.cluster.delete(harness.cluster.pod("b"))
        harness.run_for(11)
        assert bound(harness) == {"a", "c"}


def test_groups_keep_together_in_the_queue() -> None:
    """Pods are ordered by priority, by the age of their group, and by name; a failed group goes behind the others."""
    with scheduler() as harness:
        plugin: Any = harness.core.profiles["default-scheduler"].plugins["Coscheduling"]
        add(harness, [group("old", 3)])
        harness.run_for(10)
        add(harness, [group("new", 1)])
        pods = {name: member(name, of) for name, of in (("a", "new"), ("b", "old"), ("c", "none"), ("d", "old"))}
        pods["e"] = make_pod("e", priority=1)

        def order() -> list[str]:
            now = harness.clock.now()
            return sorted(pods, key=lambda name: plugin.sort_key(pods[name], now))

        assert order() == ["e", "b", "d", "a", "c"]
        harness.run_for(10)
        add(harness, [make_node("small", cpu="1m"), *(member(name, "old") for name in ("b", "d", "f"))])
        assert order() == ["e", "a", "b", "d", "c"]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"permitWaitingTimeSeconds": -1}, "permitWaitingTimeSeconds: Invalid value: -1: must be greater than 0"),
        ({"podGroupBackoffSeconds": -1}, "podGroupBackoffSeconds: Invalid value: -1: must be greater than 0"),
        ({"podGroupRejectPercentage": 101}, "podGroupRejectPercentage: Invalid value: 101: must be between 0 and 100"),
        ({"permitWaitingSeconds": 1}, "args.permitWaitingSeconds: is not a known field"),
    ],
)
def test_invalid_arguments_are_refused(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ProfileError, match=problem):
        scheduler(**args)
