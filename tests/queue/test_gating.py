"""Pods that PreEnqueue plugins hold back."""

from typing import Any

from kubestow.api.pod import PodSchedulingGate
from kubestow.scheduler.cluster.events import ASSIGNED_POD_DELETE, Action, ClusterEvent, Resource

DOOR_EVENT = ClusterEvent(Resource.POD_GROUP, Action.ADD)
NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)


def test_a_gated_pod_waits_outside(kit: Any) -> None:
    """It is not active, was never attempted, and its gate is known."""
    kit.add("p", gates=["a"])
    assert kit.where() == {"gated": ["p"]}
    queued = kit.queue.get("uid-p")
    assert queued.gate.message == "waiting for gates"
    assert queued.initial_attempt_timestamp is None
    assert kit.queue.pop() is None
    assert kit.queue.rejections()["Gates", "default"] == 1


def test_the_last_gate_removed_lets_it_in(kit: Any) -> None:
    """Removing one gate of two changes nothing; removing both does."""
    two = kit.add("p", gates=["a", "b"])
    one = kit.changed(two, schedulingGates=(PodSchedulingGate("b"),))
    kit.queue.update(two, one)
    assert kit.where() == {"gated": ["p"]}
    none = kit.changed(two, schedulingGates=())
    kit.queue.update(one, none)
    assert kit.where() == {"active": ["p"]}
    assert kit.pop().pod is none


def test_only_events_of_the_plugin_that_holds_it_back_ask_again(kit: Any) -> None:
    """Others cost a gated pod nothing, even if it was rejected before by a plugin that listens."""
    kit.rules.closed.add("p")
    kit.add("p")
    asked = kit.rules.asked
    kit.happens(NODE_ADD)
    kit.happens(ASSIGNED_POD_DELETE)
    assert kit.rules.asked == asked
    kit.happens(DOOR_EVENT)
    assert kit.where() == {"gated": ["p"]}
    kit.rules.closed.clear()
    kit.happens(DOOR_EVENT)
    assert kit.where() == {"active": ["p"]}


def test_a_held_back_pod_can_wait_for_one_pod_only(kit: Any) -> None:
    """Whatever happens to others does not even ask its plugin; what happens to that one does, and then to any again."""
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
    """Until it is tried again: whatever happens to others does not concern it before, and does after."""
    kit.reject("p", "Fit")
    kit.queue.wait_only_for("uid-p", "uid-awaited")
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("other"))
    assert kit.where() == {"unschedulable": ["p"]}
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("awaited"))
    assert kit.where() == {"backoff": ["p"]}
    kit.queue.requeue_failed(kit.pop(), ["Fit"])
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("other"))
    assert kit.where() == {"backoff": ["p"]}


def test_a_pod_goes_on_waiting_for_one_pod_while_something_is_under_way_for_it(kit: Any) -> None:
    """It was held back when that one was gone, and is not asked about before it is told that it is over."""
    kit.reject("p", "Fit")
    kit.queue.wait_only_for("uid-p", "uid-awaited")
    kit.rules.closed.add("p")
    kit.rules.is_under_way = True
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("awaited"))
    assert kit.where() == {"gated": ["p"]}
    asked = kit.rules.asked
    kit.happens(DOOR_EVENT, new=kit.pod("other"))
    assert kit.rules.asked == asked
    kit.rules.closed.clear()
    kit.queue.wait_only_for("uid-p", None)
    kit.happens(DOOR_EVENT, new=kit.pod("other"))
    assert kit.where() == {"backoff": ["p"]}


def test_a_pod_that_is_held_back_for_something_else_waits_for_any_pod(kit: Any) -> None:
    """The one that it waited for has made its move; who holds it back now listens to others."""
    kit.reject("p", "Fit")
    kit.queue.wait_only_for("uid-p", "uid-awaited")
    kit.rules.closed.add("p")
    kit.happens(ASSIGNED_POD_DELETE, old=kit.pod("awaited"))
    kit.rules.closed.clear()
    kit.happens(DOOR_EVENT, new=kit.pod("other"))
    assert kit.where() == {"backoff": ["p"]}


def test_a_rejected_pod_can_be_held_back_when_it_would_back_off(kit: Any) -> None:
    """PreEnqueue is asked before the backoff, as pods may be popped from there; then only the gate's events count."""
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


def test_nothing_is_asked_on_the_way_from_backoff_to_active(kit: Any) -> None:
    """A pod that may back off may be scheduled."""
    kit.reject("p", "Fit")
    kit.happens(NODE_ADD)
    kit.rules.closed.add("p")
    kit.advance(5)
    assert kit.where() == {"active": ["p"]}


def test_a_failed_attempt_can_end_behind_a_gate(kit: Any) -> None:
    """A pod that failed by error is held back like any other, and is not lost."""
    kit.add("p")
    queued = kit.pop()
    kit.rules.closed.add("p")
    kit.queue.requeue_failed(queued)
    assert kit.where() == {"gated": ["p"]}
    assert queued.unschedulable_plugins == {"Door"}


def test_gates_are_asked_about_again_after_five_minutes(kit: Any) -> None:
    """The flush asks; a pod that stays behind its gate is asked about five minutes later, not at once."""
    kit.rules.closed.add("p")
    kit.add("p")
    kit.advance(301)
    asked = kit.rules.asked
    assert not kit.queue.get("uid-p").was_flushed
    kit.advance(30)
    assert kit.rules.asked == asked
    kit.rules.closed.clear()
    kit.advance(271)
    assert kit.where() == {"active": ["p"]}


def test_activation_does_not_open_a_gate(kit: Any) -> None:
    """Even an activated pod must pass PreEnqueue."""
    pod = kit.add("p", gates=["a"])
    kit.queue.activate([pod])
    assert kit.where() == {"gated": ["p"]}


def test_a_new_attempt_forgets_the_gate(kit: Any) -> None:
    """Once attempted, only the plugins of that attempt matter."""
    gated = kit.add("p", gates=["a"])
    kit.queue.update(gated, kit.changed(gated, schedulingGates=()))
    queued = kit.pop()
    kit.queue.requeue_failed(queued, ["Fit"])
    assert queued.rejectors == {"Fit"}
    assert kit.where() == {"unschedulable": ["p"]}
