"""Eligibility for preemption, and the messages for pods that are not eligible."""

from typing import Any

import msgspec
import pytest

from kubestow.scheduler.framework.results import Code
from kubestow.testing.builders import make_pod
from support.plugins.preemption_world import World

PREEMPTED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


def terminating(world: World, name: str, node: str, **pod: Any) -> None:
    """Add a terminating pod to a node."""
    made = world.run(name, node, **pod)
    metadata = msgspec.structs.replace(made.metadata, deletionTimestamp="2026-01-01T00:00:00Z")
    world.cluster.set_pod(msgspec.structs.replace(made, metadata=metadata))


def test_a_pod_with_policy_never_does_not_preempt() -> None:
    """The message names preemptionPolicy=Never."""
    world = World("a")
    world.run("low", "a", cpu="4", priority=0)
    result = world.preempt(make_pod("vip", cpu="2", priority=10, spec={"preemptionPolicy": "Never"}))
    assert result.code is Code.UNSCHEDULABLE
    assert result.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert result.nominated_node is None


def test_a_pod_waits_while_its_victims_terminate() -> None:
    """A second preemption does not start while a victim of the first terminates on the nominated node."""
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
def test_only_preempted_pods_delay_preemption(priority: int, status: dict[str, object]) -> None:
    """A pod that terminates for another reason, or with no lower priority, does not delay the preemptor."""
    world = World("a", "b")
    terminating(world, "leaving", "a", cpu="4", priority=priority, status=status)
    world.run("low", "b", cpu="4", priority=-1)
    pod = make_pod("vip", cpu="2", priority=10, status={"nominatedNodeName": "a"})
    assert world.preempt(pod).code is Code.SUCCESS


def test_an_unresolvable_nominated_node_does_not_delay_preemption() -> None:
    """If eviction does not help there, other nodes are tried although a victim terminates."""
    world = World("a", "b")
    terminating(world, "leaving", "a", cpu="4", priority=0, status=PREEMPTED)
    world.run("low", "b", cpu="4", priority=0)
    only_b = {"kubernetes.io/hostname": "b"}
    pod = make_pod("vip", cpu="2", priority=10, node_selector=only_b, status={"nominatedNodeName": "a"})
    assert world.preempt(pod).nominated_node == "b"


def test_a_deleted_nominated_node_does_not_delay_preemption() -> None:
    """The pods of a deleted node do not count."""
    world = World("a", "b")
    terminating(world, "leaving", "a", cpu="4", priority=0, status=PREEMPTED)
    world.run("low", "b", cpu="4", priority=0)
    world.cluster.remove_node("a")
    result = world.preempt(make_pod("vip", cpu="2", priority=10, status={"nominatedNodeName": "a"}))
    assert result.nominated_node == "b"


def test_a_pod_stays_out_of_the_queue_while_its_victims_are_evicted() -> None:
    """PreEnqueue holds a preempting pod until the eviction ends."""
    world = World("a")
    plugin = world.profile.plugins["DefaultPreemption"]
    pod = make_pod("vip")
    assert plugin.pre_enqueue(pod) is None
    world.preempting.add(pod.metadata.uid)
    held = plugin.pre_enqueue(pod)
    assert held.code is Code.UNRESOLVABLE
    assert held.reasons == ("waiting for the preemption for this pod to be finished",)


def test_the_hint_for_deletions_never_requeues() -> None:
    """With asynchronous preemption the plugin is registered for deletions, but its hint returns False."""
    plugin = World("a").profile.plugins["DefaultPreemption"]
    (registration,) = plugin.requeue_on()
    assert registration.hint(make_pod("vip"), make_pod("gone", node="a"), None) is False


def test_without_asynchronous_preemption_no_pod_is_held() -> None:
    """Neither PreEnqueue nor the event registration is active."""
    world = World("a", scheduler_async_preemption=False)
    plugin = world.profile.plugins["DefaultPreemption"]
    pod = make_pod("vip")
    world.preempting.add(pod.metadata.uid)
    assert plugin.pre_enqueue(pod) is None
    assert plugin.requeue_on() == ()
