"""Pods that PreEnqueue plugins reject."""

from typing import Any

from kubestow.api.pod import PodSchedulingGate
from kubestow.scheduler.cluster.events import ASSIGNED_POD_DELETE, Action, ClusterEvent, Resource

DOOR_EVENT = ClusterEvent(Resource.POD_GROUP, Action.ADD)
NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)


def test_a_gated_pod_is_not_active(kit: Any) -> None:
    """It has no attempt, and its gate is stored."""
    kit.add("p", gates=["a"])
    assert kit.where() == {"gated": ["p"]}
    queued = kit.queue.get("uid-p")
    assert queued.gate.message == "waiting for gates"
    assert queued.initial_attempt_timestamp is None
    assert kit.queue.pop() is None
    assert kit.queue.rejections()["Gates", "default"] == 1


def test_a_gated_pod_is_nominated_to_its_node(kit: Any) -> None:
    """The node that its status names is reserved for it before it becomes active."""
    kit.add("p", gates=["a"], nominated="n1")
    assert [info.name for info in kit.queue.nominator.nominated_on("n1")] == ["p"]


def test_a_pod_becomes_active_when_its_last_gate_is_removed(kit: Any) -> None:
    """Removing one gate of two changes nothing; removing both activates the pod."""
    two = kit.add("p", gates=["a", "b"])
    one = kit.changed(two, schedulingGates=(PodSchedulingGate("b"),))
    kit.queue.update(two, one)
    assert kit.where() == {"gated": ["p"]}
    none = kit.changed(two, schedulingGates=())
    kit.queue.update(one, none)
    assert kit.where() == {"active": ["p"]}
    assert kit.pop().pod is none


def test_only_events_of_the_gating_plugin_run_pre_enqueue(kit: Any) -> None:
    """Other events cost a gated pod nothing, even if a plugin that rejected it before is registered for them."""
    kit.rules.closed.add("p")
    kit.add("p")
    calls = kit.rules.calls
    kit.happens(NODE_ADD)
    kit.happens(ASSIGNED_POD_DELETE)
    assert kit.rules.calls == calls
    kit.happens(DOOR_EVENT)
    assert kit.where() == {"gated": ["p"]}
    kit.rules.closed.clear()
    kit.happens(DOOR_EVENT)
    assert kit.where() == {"active": ["p"]}


def test_a_gated_pod_can_wait_for_one_pod_only(kit: Any) -> None:
    """Events about other pods do not run PreEnqueue; an event about this one does, and ends the restriction."""
    kit.rules.closed.update(("p", "q"))
    kit.add("p")
    kit.queue.wait_only_for("uid-p", "uid-awaited")
    kit.queue.wait_only_for("uid-q", "uid-awaited")
    kit.add("q")
    kit.queue.wait_only_for("uid-q", None)
    kit.rules.closed.clear()
    kit.happens(DOOR_EVENT, new=kit.pod("other"))
    assert kit.where() == {"gated": ["p"], "active": ["q"]}
    kit.happens(DOOR_EVENT, new=kit.pod("awaited"))
    assert kit.where() == {"active": ["p", "q"]}


def test_a_rejected_pod_can_wait_for_one_pod_only(kit: Any) -> None:
    """Events about other pods do not affect it until it is retried."""
    kit.reject("p", "Fit")
    kit.queue.wait_only_for("uid-p", "uid-awaited")
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("other"))
    assert kit.where() == {"unschedulable": ["p"]}
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("awaited"))
    assert kit.where() == {"backoff": ["p"]}
    kit.queue.requeue_failed(kit.pop(), ["Fit"])
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("other"))
    assert kit.where() == {"backoff": ["p"]}


def test_a_pod_waits_for_one_pod_while_an_operation_for_it_is_in_progress(kit: Any) -> None:
    """It was gated when that pod was deleted, and PreEnqueue does not run again before the restriction is removed."""
    kit.reject("p", "Fit")
    kit.queue.wait_only_for("uid-p", "uid-awaited")
    kit.rules.closed.add("p")
    kit.rules.has_operation = True
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("awaited"))
    assert kit.where() == {"gated": ["p"]}
    calls = kit.rules.calls
    kit.happens(DOOR_EVENT, new=kit.pod("other"))
    assert kit.rules.calls == calls
    kit.rules.closed.clear()
    kit.queue.wait_only_for("uid-p", None)
    kit.happens(DOOR_EVENT, new=kit.pod("other"))
    assert kit.where() == {"backoff": ["p"]}


def test_a_pod_that_is_gated_for_another_reason_waits_for_any_pod(kit: Any) -> None:
    """The event about the awaited pod has happened; the gating plugin may be registered for others."""
    kit.reject("p", "Fit")
    kit.queue.wait_only_for("uid-p", "uid-awaited")
    kit.rules.closed.add("p")
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("awaited"))
    kit.rules.closed.clear()
    kit.happens(DOOR_EVENT, new=kit.pod("other"))
    assert kit.where() == {"backoff": ["p"]}


def test_a_rejected_pod_can_be_gated_before_its_backoff(kit: Any) -> None:
    """PreEnqueue runs before the backoff, as pods may be popped from there; then only the gate's events count."""
    kit.reject("p", "Fit")
    kit.rules.closed.add("p")
    kit.happens(NODE_ADD)
    assert kit.where() == {"gated": ["p"]}
    assert dict(kit.queue.rejections()) == {("Fit", "default"): 1, ("Door", "default"): 1}
    kit.rules.closed.clear()
    kit.happens(NODE_ADD)
    assert kit.where() == {"gated": ["p"]}
    kit.happens(DOOR_EVENT)
    assert kit.where() == {"backoff": ["p"]}


def test_pre_enqueue_does_not_run_after_the_backoff(kit: Any) -> None:
    """A pod that backs off has passed PreEnqueue."""
    kit.reject("p", "Fit")
    kit.happens(NODE_ADD)
    kit.rules.closed.add("p")
    kit.advance(5)
    assert kit.where() == {"active": ["p"]}


def test_a_failed_pod_can_be_gated(kit: Any) -> None:
    """A pod that failed with an error is gated like any other, and is not lost."""
    kit.add("p")
    queued = kit.pop()
    kit.rules.closed.add("p")
    kit.queue.requeue_failed(queued)
    assert kit.where() == {"gated": ["p"]}
    assert queued.unschedulable_plugins == {"Door"}


def test_pre_enqueue_runs_again_after_five_minutes(kit: Any) -> None:
    """The flush runs it; a pod that stays gated is flushed again five minutes later."""
    kit.rules.closed.add("p")
    kit.add("p")
    kit.advance(301)
    calls = kit.rules.calls
    assert not kit.queue.get("uid-p").was_flushed
    kit.advance(30)
    assert kit.rules.calls == calls
    kit.rules.closed.clear()
    kit.advance(271)
    assert kit.where() == {"active": ["p"]}


def test_activation_does_not_open_a_gate(kit: Any) -> None:
    """Even an activated pod must pass PreEnqueue."""
    pod = kit.add("p", gates=["a"])
    kit.queue.activate([pod])
    assert kit.where() == {"gated": ["p"]}


def test_a_new_attempt_removes_the_gate(kit: Any) -> None:
    """After an attempt, only the plugins that rejected the pod count."""
    gated = kit.add("p", gates=["a"])
    kit.queue.update(gated, kit.changed(gated, schedulingGates=()))
    queued = kit.pop()
    kit.queue.requeue_failed(queued, ["Fit"])
    assert queued.rejectors == {"Fit"}
    assert kit.where() == {"unschedulable": ["p"]}
