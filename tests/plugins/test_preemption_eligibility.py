"""Who may preempt, and what a pod that may not, or need not, is told."""

from typing import Any

import msgspec
import pytest

from kubestow.scheduler.framework.results import Code
from kubestow.testing.builders import make_pod
from plugins.preemption_world import World

PREEMPTED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


def terminating(world: World, name: str, node: str, **pod: Any) -> None:
    """Have a pod on a node that is being deleted."""
    made = world.run(name, node, **pod)
    metadata = msgspec.structs.replace(made.metadata, deletionTimestamp="2026-01-01T00:00:00Z")
    world.cluster.set_pod(msgspec.structs.replace(made, metadata=metadata))


def test_a_pod_that_must_never_preempt_does_not() -> None:
    """preemptionPolicy Never is the reason that is given."""
    world = World("a")
    world.run("low", "a", cpu="4", priority=0)
    result = world.preempt(make_pod("vip", cpu="2", priority=10, spec={"preemptionPolicy": "Never"}))
    assert result.code is Code.UNSCHEDULABLE
    assert result.message == "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert result.nominated_node is None


def test_a_pod_waits_while_its_victims_terminate() -> None:
    """A second preemption does not start while a victim of the first is still leaving the nominated node."""
    world = World("a", "b")
    terminating(world, "leaving", "a", cpu="4", priority=0, status=PREEMPTED)
    world.run("low", "b", cpu="4", priority=0)
    pod = make_pod("vip", cpu="2", priority=10, status={"nominatedNodeName": "a"})
    result = world.preempt(pod)
    assert result.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert result.victims == ()


@pytest.mark.parametrize(
    ("priority", "status"),
    [
        (0, {}),
        (0, {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}),
        (0, {"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"}]}),
        (10, PREEMPTED),
    ],
)
def test_only_pods_that_were_preempted_are_waited_for(priority: int, status: dict[str, object]) -> None:
    """A pod that terminates for another reason, or that is no less important, does not hold the preemptor up."""
    world = World("a", "b")
    terminating(world, "leaving", "a", cpu="4", priority=priority, status=status)
    world.run("low", "b", cpu="4", priority=-1)
    pod = make_pod("vip", cpu="2", priority=10, status={"nominatedNodeName": "a"})
    assert world.preempt(pod).code is Code.SUCCESS


def test_a_nominated_node_that_will_never_do_is_not_waited_for() -> None:
    """If filters say that no eviction helps there, the pod looks elsewhere though a victim still terminates."""
    world = World("a", "b")
    terminating(world, "leaving", "a", cpu="4", priority=0, status=PREEMPTED)
    world.run("low", "b", cpu="4", priority=0)
    only_b = {"kubernetes.io/hostname": "b"}
    pod = make_pod("vip", cpu="2", priority=10, node_selector=only_b, status={"nominatedNodeName": "a"})
    assert world.preempt(pod).nominated_node == "b"


def test_a_nominated_node_that_is_gone_is_not_waited_for() -> None:
    """The pods of a deleted node are no reason to wait."""
    world = World("a", "b")
    terminating(world, "leaving", "a", cpu="4", priority=0, status=PREEMPTED)
    world.run("low", "b", cpu="4", priority=0)
    world.cluster.remove_node("a")
    result = world.preempt(make_pod("vip", cpu="2", priority=10, status={"nominatedNodeName": "a"}))
    assert result.nominated_node == "b"


def test_a_pod_stays_out_of_the_queue_while_its_victims_are_evicted() -> None:
    """PreEnqueue holds a preempting pod back, and only as long as that lasts."""
    world = World("a")
    plugin = world.profile.plugins["DefaultPreemption"]
    pod = make_pod("vip")
    assert plugin.pre_enqueue(pod) is None
    world.preempting.add(pod.metadata.uid)
    held = plugin.pre_enqueue(pod)
    assert held.code is Code.UNRESOLVABLE
    assert held.reasons == ("waiting for the preemption for this pod to be finished",)


def test_deletions_are_heard_but_left_to_those_who_refused_the_pod() -> None:
    """With asynchronous preemption a deletion is registered for, and never by itself worth a retry."""
    plugin = World("a").profile.plugins["DefaultPreemption"]
    (registration,) = plugin.requeue_on()
    assert registration.hint(make_pod("vip"), make_pod("gone", node="a"), None) is False


def test_without_asynchronous_preemption_nobody_is_held_back() -> None:
    """The gate and its event are part of asynchronous preemption."""
    world = World("a", scheduler_async_preemption=False)
    plugin = world.profile.plugins["DefaultPreemption"]
    pod = make_pod("vip")
    world.preempting.add(pod.metadata.uid)
    assert plugin.pre_enqueue(pod) is None
    assert plugin.requeue_on() == ()
