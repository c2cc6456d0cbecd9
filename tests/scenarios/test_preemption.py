"""Preemption from end to end: victims are chosen and deleted, the preemptor is nominated, gated, and placed."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import FailedEvaluation
from kubestow.scheduler.framework.results import Code, PostFilterResult
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios import stages
from support.scenarios.start import Start


def full(start: Start, nodes: int = 1, grace: int = 10, **options: Any) -> SchedulerHarness:
    """Start a scheduler with nodes of two CPUs, each with two pods of low priority."""
    harness = start(**options)
    for number in range(nodes):
        harness.cluster.add(make_node(f"n{number}", cpu="2"))
    for number in range(2 * nodes):
        harness.cluster.add(make_pod(f"low{number}", cpu="1", priority=0, node=f"n{number // 2}", grace_seconds=grace))
    harness.run_until_idle()
    return harness


def test_a_complete_preemption(start: Start) -> None:
    """Victims get a condition and a deletion; the preemptor is nominated, waits for them to end, and is bound."""
    harness = full(start)
    harness.cluster.add(make_pod("high", cpu="2", priority=10))
    harness.run_for(5.0)
    high = harness.cluster.pod("high")
    assert high.status.nominatedNodeName == "n0"
    assert [pod.uid for pod in harness.core.queue.nominator.nominated_on("n0")] == [high.metadata.uid]
    for name in ("low0", "low1"):
        assert harness.cluster.pod(name).metadata.deletionTimestamp is not None
        condition = harness.cluster.conditions(name)["DisruptionTarget"]
        assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
        assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
        (event,) = harness.events.about(name)
        assert event.note == f"Preempted by pod {high.metadata.uid} on node n0"
        assert (event.kind, event.reason, event.action) == ("Normal", "Preempted", "Preempting")
        assert event.related == "default/high"
    assert len(harness.attempts.about("high")) == 1
    harness.run_until_idle()
    assert harness.time == 10.0
    assert harness.cluster.node_of("high") == "n0"
    assert harness.cluster.pod("high").status.nominatedNodeName == ""
    assert len(harness.core.queue.nominator) == 0
    assert [event.reason for event in harness.events.about("high")] == ["FailedScheduling", "Scheduled"]


def test_the_freed_capacity_is_kept_for_the_preemptor(start: Start) -> None:
    """A pod of lower priority that is added while victims terminate does not get it."""
    harness = full(start)
    harness.cluster.add(make_pod("high", cpu="2", priority=10))
    harness.run_for(1.0)
    harness.cluster.add(make_pod("sneaky", cpu="1", priority=5))
    harness.run_until_idle()
    assert harness.cluster.node_of("high") == "n0"
    assert harness.place_of("sneaky") == "unschedulable"


def test_as_few_pods_as_possible_are_evicted(start: Start) -> None:
    """There is one node and one victim: the other pods stay."""
    harness = full(start, nodes=3)
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_until_idle()
    assert harness.cluster.node_of("high")
    assert len([pod for pod in harness.cluster.all(Pod) if pod.metadata.name.startswith("low")]) == 5


@pytest.mark.parametrize(("grace", "attempts"), [(0, 2), (5, 3)], ids=["at-once", "in-time"])
def test_attempts_before_the_victim_is_deleted(start: Start, grace: int, attempts: int) -> None:
    """A victim that is deleted at once needs no further attempt; one that terminates slowly allows one."""
    harness = full(start, grace=grace)
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("other", cpu="1", priority=10, node="n1", grace_seconds=0))
    harness.cluster.add(make_pod("waits", cpu="1", priority=20, gates=["a"], status={"nominatedNodeName": "n1"}))
    harness.run_until_idle()
    harness.core.queue.nominator.nominate(harness.cluster.pod("waits"), "n1")
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.cluster.feed.delay = 1.0
    harness.cluster.delete(harness.cluster.pod("other"))
    harness.cluster.feed.delay = 2.0
    harness.run_until_idle()
    assert harness.cluster.node_of("high") == "n0"
    assert len(harness.attempts.about("high")) == attempts


@pytest.mark.parametrize("patch_seconds", [0.0, 2.0], ids=["seen", "being-written"])
def test_a_higher_preemptor_removes_the_nomination(start: Start, patch_seconds: float) -> None:
    """The lower one loses its nomination, even one that is still being written, and is placed later elsewhere."""
    harness = full(start, grace=20)
    harness.cluster.slow["patch_pod_status"] = patch_seconds
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_for(1.0)
    harness.cluster.add(make_pod("higher", cpu="2", priority=20))
    harness.run_for(10.0)
    assert harness.cluster.pod("higher").status.nominatedNodeName == "n0"
    assert harness.cluster.pod("high").status.nominatedNodeName == ""
    harness.run_until_idle()
    assert harness.cluster.node_of("higher") == "n0"
    assert harness.place_of("high") == "unschedulable"
    harness.cluster.add(make_node("n1", cpu="2"))
    harness.run_until_idle()
    assert harness.cluster.node_of("high") == "n1"


def test_a_preemptor_without_new_victims_removes_no_nomination(start: Start) -> None:
    """If all victims terminate already, the lower pod keeps its nomination until its own next attempt."""
    harness = full(start, grace=20)
    harness.cluster.add(make_pod("high", cpu="2", priority=10))
    harness.run_for(1.0)
    harness.cluster.add(make_pod("higher", cpu="2", priority=20))
    harness.run_for(10.0)
    assert harness.cluster.pod("higher").status.nominatedNodeName == "n0"
    assert harness.cluster.pod("high").status.nominatedNodeName == "n0"
    assert len(harness.attempts.about("high")) == 1
    harness.run_until_idle()
    assert harness.cluster.node_of("higher") == "n0"
    assert harness.place_of("high") == "unschedulable"
    assert harness.cluster.pod("high").status.nominatedNodeName == ""


def test_no_pod_of_the_same_priority_is_evicted(start: Start) -> None:
    """A pod that must never preempt evicts no pod, either; each has its own message."""
    harness = full(start)
    harness.cluster.add(make_pod("equal", cpu="1", priority=0))
    harness.cluster.add(make_pod("meek", cpu="1", priority=10, spec={"preemptionPolicy": "Never"}))
    harness.run_until_idle()
    assert harness.place_of("equal") == harness.place_of("meek") == "unschedulable"
    assert len(harness.bindings) == 0
    notes = {event.pod: event.note for event in harness.events}
    assert notes["default/equal"].endswith("1 No preemption victims found for incoming pod.")
    assert notes["default/meek"].endswith("not eligible due to preemptionPolicy=Never.")


def test_a_pod_that_waits_for_permission_is_preempted_in_memory(start: Start) -> None:
    """It is not bound yet and need not be deleted: it is requeued instead."""
    harness = start(plugins=[stages.Slow])
    stages.slow_bindings(harness)
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("low", cpu="1", priority=0))
    harness.run_for(stages.WAITING)
    assert harness.place_of("low") == "waiting"
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_until_idle()
    assert harness.bindings == {"default/high": "n1"}
    uid = harness.cluster.pod("high").metadata.uid
    notes = [event.note for event in harness.events.about("low")]
    assert notes[:2] == [
        f"Preempted by pod {uid} on node n1 (in kube-scheduler memory).",
        "waiting on permit for pod: preempted",
    ]
    assert harness.place_of("low") == "unschedulable"
    assert "delete_pod" not in [call.call for call in harness.cluster.calls]
    assert stages.Slow.calls[:2] == ["reserve low", "unreserve low"]


def test_a_pod_in_pre_bind_is_preempted(start: Start) -> None:
    """Its PreBind is cancelled, its reservations are released, and it is requeued."""
    harness = start(plugins=[stages.Slow])
    stages.slow_bindings(harness)
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("low", cpu="1", priority=0))
    harness.run_for(stages.PRE_BINDING)
    assert stages.Slow.calls == ["reserve low", "pre_bind low"]
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_for(0.5)
    assert stages.Slow.calls[:3] == ["reserve low", "pre_bind low", "unreserve low"]
    assert harness.cluster.conditions("low")["PodScheduled"].message == (
        'running PreBind plugin "Slow": preempted by DefaultPreemption'
    )
    harness.run_until_idle()
    assert harness.bindings == {"default/high": "n1"}


class Stubborn:
    """Finishes PreBind in spite of a cancellation."""

    name = "Stubborn"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_bind_needed(self, state: Any, pod: PodInfo, node: str) -> bool:
        return pod.name == "low"

    async def pre_bind(self, state: Any, pod: PodInfo, node: str) -> None:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            await asyncio.sleep(1.0)


def test_a_pod_that_finished_pre_bind_in_spite_of_the_preemption_is_not_bound(start: Start) -> None:
    """Two pods must not be bound with capacity for one."""
    harness = start(plugins=[Stubborn])
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("low", cpu="1", priority=0))
    harness.run_for(1.0)
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_until_idle()
    assert harness.bindings == {"default/high": "n1"}


class Clumsy:
    """Fails when its PreBind is cancelled."""

    name = "Clumsy"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_bind_needed(self, state: Any, pod: PodInfo, node: str) -> bool:
        return True

    async def pre_bind(self, state: Any, pod: PodInfo, node: str) -> None:
        try:
            await asyncio.sleep(5.0)
        except asyncio.CancelledError:
            raise RuntimeError("what now") from None


def test_a_pod_that_failed_when_it_was_preempted_can_be_bound_later(start: Start) -> None:
    """The preemption does not affect its next binding."""
    harness = start(plugins=[Clumsy])
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("low", cpu="1", priority=0))
    harness.run_for(1.0)
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_until_idle()
    assert harness.bindings == {"default/high": "n1"}
    harness.cluster.add(make_node("n2", cpu="1"))
    harness.run_until_idle()
    assert harness.cluster.node_of("low") == "n2"
    assert len([event for event in harness.events.about("low") if "what now" in event.note]) == 1


def test_a_victim_that_is_being_bound_is_deleted(start: Start) -> None:
    """It is too late to stop it in memory: it is deleted at the API server."""
    harness = start(plugins=[stages.Slow])
    stages.slow_bindings(harness)
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("low", cpu="1", priority=0, grace_seconds=3))
    harness.run_for(stages.BINDING)
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_until_idle()
    assert harness.cluster.node_of("high") == "n1"
    assert harness.cluster.get(Pod, "default/low") is None


def test_victims_that_are_deleted_already(start: Start) -> None:
    """Another client deletes the victims before the scheduler does: the preemptor is placed without delay."""
    harness = full(start, latency=1.0)
    harness.cluster.add(make_pod("high", cpu="2", priority=10))
    harness.run_for(0.5)
    for name in ("low0", "low1"):
        harness.cluster.delete(harness.cluster.pod(name), 0)
    harness.run_until_idle()
    assert harness.cluster.node_of("high") == "n0"
    assert harness.time < 10.0
    assert harness.events.notes("Preempted") == []


@pytest.mark.parametrize("name", ["low0", "low1"])
def test_a_victim_that_ends_before_its_eviction(start: Start, name: str) -> None:
    """Its capacity is free at once, without an event: the preemptor is placed when the other victim is deleted."""
    harness = full(start, grace=0, latency=1.0)
    harness.cluster.add(make_pod("high", cpu="2", priority=10))
    harness.run_for(0.5)
    pod = harness.cluster.pod(name)
    harness.cluster.update(replace(pod, status=replace(pod.status, phase="Succeeded")))
    harness.run_for(20.0)
    assert harness.cluster.node_of("high") == "n0"


def test_a_preemptor_that_is_deleted(start: Start) -> None:
    """Deletions of its victims are not undone; any pod may use the capacity."""
    harness = full(start)
    harness.cluster.add(make_pod("high", cpu="2", priority=10))
    harness.run_for(1.0)
    harness.cluster.delete(harness.cluster.pod("high"))
    harness.cluster.add(make_pod("next", cpu="1", priority=0))
    harness.run_until_idle()
    assert harness.cluster.node_of("next") == "n0"
    assert len(harness.core.queue.nominator) == 0


class Bouncer:
    """Evicts all other pods."""

    name = "Bouncer"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._cluster = handle.cluster

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult:
        victims = tuple(victim for _, victim in self._cluster.placed_pods())
        return PostFilterResult(Code.SUCCESS, nominated_node="n1", victims=victims)


WITHOUT_DEFAULT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}
"""


def test_the_preempting_plugin_is_named(start: Start) -> None:
    """Any plugin's PostFilter may choose victims; its name is in their condition."""
    harness = start(WITHOUT_DEFAULT, plugins=[stages.Slow, Bouncer])
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("low", cpu="1"))
    harness.run_for(stages.PRE_BINDING)
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_for(0.5)
    assert harness.cluster.conditions("low")["PodScheduled"].message == (
        'running PreBind plugin "Slow": preempted by Bouncer'
    )
