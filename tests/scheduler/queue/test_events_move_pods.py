"""Which waiting pods an event moves, and to which place."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Resource,
    on,
)

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


def _yes(pod: Pod, old: Any, new: Any) -> bool:
    return True


def _no(pod: Pod, old: Any, new: Any) -> bool:
    return False


def _broken(pod: Pod, old: Any, new: Any) -> bool:
    raise LookupError("no such node")


def test_only_pods_rejected_by_a_registered_plugin_move(kit: Any) -> None:
    """A new node helps a pod that was rejected for its requests, not one that was rejected for its ports."""
    kit.reject("room", "Fit")
    kit.reject("ports", "Ports")
    kit.happens(NODE_ADD)
    assert kit.where() == {"backoff": ["room"], "unschedulable": ["ports"]}
    assert kit.arrivals("backoff", "NodeAdd") == 1


def test_one_true_hint_is_enough(make_kit: Any) -> None:
    """Any plugin that rejected the pod may requeue it."""
    kit = make_kit({"A": [on(Resource.NODE, Action.ADD, _no)], "B": [on(Resource.NODE, Action.ADD, _yes)]})
    kit.reject("both", "A", "B")
    kit.reject("only-a", "A")
    kit.happens(NODE_ADD)
    assert kit.where() == {"backoff": ["both"], "unschedulable": ["only-a"]}


def test_hints_get_the_waiting_pod_and_the_object(make_kit: Any) -> None:
    """The arguments are the pod, and the object before and after."""
    calls = []

    def hint(*given: Any) -> bool:
        calls.append(given)
        return False

    kit = make_kit({"A": [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, hint)]})
    queued = kit.reject("p", "A")
    kit.happens(NODE_LABEL, "before", "after")
    assert calls == [(queued.pod, "before", "after")]
    assert kit.hints() == [("NodeUpdateNodeLabel", "QueueSkip", "A")]


def test_a_hint_that_raises_counts_as_true(make_kit: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A faulty hint must not strand a pod; the log names the plugin, the event and the pod."""
    kit = make_kit({"A": [on(Resource.NODE, Action.ADD, _broken)]})
    kit.reject("p", "A")
    kit.happens(NODE_ADD)
    assert kit.where() == {"backoff": ["p"]}
    assert 'err="no such node" plugin="A" event="NodeAdd" pod="ns/p"' in caplog.text
    assert kit.hints() == [("NodeAdd", "Error", "A")]


def test_hints_are_called_only_for_affected_pods(make_kit: Any) -> None:
    """Many waiting pods cost an event nothing if it affects none of them."""
    kit = make_kit({"A": [on(Resource.NODE, Action.ADD, _yes)], "B": [on(Resource.POD, Action.DELETE, _no)]})
    for number in range(50):
        kit.reject(f"p{number}", "A")
    kit.happens(ASSIGNED_POD_DELETE)
    assert kit.hints() == []


@pytest.mark.parametrize(
    ("rejected_by", "pending_on", "expected"),
    [
        ((), ("Patient",), "active"),
        (("Fit",), ("Patient",), "active"),
        (("Patient",), (), "backoff"),
        (("Patient",), ("Other",), "backoff"),
    ],
)
def test_a_pending_plugin_skips_the_backoff(
    make_kit: Any, rejected_by: tuple[str, ...], pending_on: tuple[str, ...], expected: str
) -> None:
    """A true hint of a pending plugin activates the pod at once; one of another plugin, after the backoff."""
    kit = make_kit(
        {
            "Fit": [on(Resource.NODE, Action.ADD)],
            "Patient": [on(Resource.NODE, Action.ADD, _yes)],
            "Other": [on(Resource.NODE, Action.ADD, _no)],
        }
    )
    kit.reject("p", *rejected_by, pending=pending_on)
    kit.happens(NODE_ADD)
    assert kit.where() == {expected: ["p"]}


def test_a_plugin_without_registrations_waits_for_the_timeout(kit: Any) -> None:
    """Only the flush retries a pod whose rejecting plugin has no registrations."""
    kit.reject("p", "Silent")
    for event in (NODE_ADD, ASSIGNED_POD_DELETE, ASSIGNED_POD_ADD):
        kit.happens(event)
    assert kit.where() == {"unschedulable": ["p"]}
    kit.happens(UNSCHEDULABLE_TIMEOUT)
    assert kit.where() == {"backoff": ["p"]}


def test_profiles_have_separate_registrations(make_kit: Any) -> None:
    """The same plugin may be registered for different events in different profiles."""
    other = make_kit({"Fit": [on(Resource.POD, Action.DELETE)]}).rules
    kit = make_kit({"Fit": [on(Resource.NODE, Action.ADD)]}, more_profiles={"other": other})
    kit.reject("here", "Fit")
    kit.reject("there", "Fit", profile="other")
    kit.happens(NODE_ADD)
    assert kit.where() == {"backoff": ["here"], "unschedulable": ["there"]}
    kit.happens(ASSIGNED_POD_DELETE)
    assert kit.where() == {"backoff": ["here", "there"]}


def test_an_event_can_be_limited_to_some_pods(kit: Any) -> None:
    """A nomination that is removed helps only pods of at most the same priority."""
    kit.reject("low", "Fit")
    kit.reject("high", "Fit", priority=10)
    kit.queue.on_event(ASSIGNED_POD_DELETE, None, None, lambda pod: pod.spec.priority <= 5)
    assert kit.where() == {"backoff": ["low"], "unschedulable": ["high"]}


def test_activation_ignores_hints_and_backoff(kit: Any) -> None:
    """Activated pods become active at once, from any place; unknown ones are ignored."""
    waiting = kit.reject("waiting", "Silent").pod
    kit.reject("backing-off", "Fit")
    kit.happens(NODE_ADD)
    kit.queue.activate([waiting, kit.pod("backing-off"), kit.pod("unknown")])
    assert kit.where() == {"active": ["backing-off", "waiting"]}
    assert kit.arrivals("active", "ForceActivate") == 2


def test_rejections_are_counted_until_the_next_attempt(kit: Any) -> None:
    """The waiting pods that each plugin rejected are counted while they wait, in any place."""
    kit.reject("p", "Fit", "Ports")
    kit.reject("q", "Fit")
    assert dict(kit.queue.rejections()) == {("Fit", "default"): 2, ("Ports", "default"): 1}
    kit.happens(NODE_ADD)
    assert kit.queue.rejections()["Fit", "default"] == 2
    kit.pop_names()
    assert not any(kit.queue.rejections().values())


def test_lengths_by_queue(kit: Any) -> None:
    """These are the values of the gauge of pending pods."""
    kit.reject("error")
    kit.reject("waiting", "Ports")
    kit.reject("backing-off", "Fit")
    kit.happens(NODE_ADD)
    kit.add("gated", gates=["g"])
    kit.add("active")
    assert kit.queue.lengths() == {"active": 1, "backoff": 2, "unschedulable": 1, "gated": 1}


def test_overdue_pods_are_retried(kit: Any) -> None:
    """After five minutes a pod is retried without an event; the flush is recorded until the attempt ends."""
    queued = kit.reject("p", "Silent")
    kit.advance(300)
    assert kit.where() == {"unschedulable": ["p"]}
    kit.advance(0.001)
    assert kit.where() == {"active": ["p"]}
    assert queued.was_flushed
    assert kit.arrivals("active", "UnschedulableTimeout") == 1
    kit.queue.requeue_failed(kit.pop(), ["Silent"])
    assert not queued.was_flushed
    kit.advance(299)
    assert kit.where() == {"unschedulable": ["p"]}
