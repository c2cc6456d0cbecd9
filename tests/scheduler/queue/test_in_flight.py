"""Events that happen during an attempt."""

from typing import Any

import pytest

from kubestow.api.pod import Toleration
from kubestow.scheduler.cluster.events import ASSIGNED_POD_DELETE, Action, ClusterEvent, Resource, on

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)


def test_an_event_during_the_attempt_is_not_lost(kit: Any) -> None:
    """The node was added while the pod was being rejected: the pod is retried."""
    kit.add("p")
    queued = kit.pop()
    kit.happens(NODE_ADD)
    kit.queue.requeue_failed(queued, ["Fit"])
    assert kit.where() == {"backoff": ["p"]}
    assert kit.arrivals("backoff", "ScheduleAttemptFailure") == 1


def test_an_event_before_the_attempt_does_not_count(kit: Any) -> None:
    """The attempt includes all earlier events, even if the event is still recorded for an older attempt."""
    kit.add("older")
    kit.add("younger")
    older = kit.pop()
    kit.happens(NODE_ADD)
    younger = kit.pop()
    kit.queue.requeue_failed(younger, ["Fit"])
    assert kit.where() == {"unschedulable": ["younger"]}
    kit.queue.requeue_failed(older, ["Fit"])
    assert kit.where() == {"backoff": ["older"], "unschedulable": ["younger"]}


def test_an_event_without_a_registered_rejecting_plugin_does_not_count(kit: Any) -> None:
    """The replay calls the hints of the plugins that rejected the pod, no others."""
    kit.add("p")
    queued = kit.pop()
    kit.happens(NODE_ADD)
    kit.queue.requeue_failed(queued, ["Ports"])
    assert kit.where() == {"unschedulable": ["p"]}


def test_replay_uses_the_best_result(make_kit: Any) -> None:
    """A later event of a pending plugin takes precedence over an earlier one that retries after the backoff."""
    kit = make_kit(
        {"Fit": [on(Resource.NODE, Action.ADD)], "Patient": [on(Resource.NODE, Action.UPDATE_NODE_LABEL)]},
    )
    kit.add("p")
    queued = kit.pop()
    kit.happens(NODE_ADD)
    kit.happens(NODE_LABEL)
    kit.queue.requeue_failed(queued, ["Fit"], ["Patient"])
    assert kit.where() == {"active": ["p"]}


def test_events_are_recorded_only_while_needed(kit: Any) -> None:
    """Events before the oldest pod in flight was popped are dropped; without pods in flight, none is recorded."""
    for name in ("a", "b", "c"):
        kit.add(name)
    kit.happens(NODE_ADD)
    assert dict(kit.queue.in_flight_counts()) == {}
    a = kit.pop()
    kit.happens(NODE_ADD)
    b = kit.pop()
    kit.happens(ASSIGNED_POD_DELETE)
    kit.happens(ClusterEvent(Resource.CSI_NODE, Action.ADD))
    c = kit.pop()
    assert dict(kit.queue.in_flight_counts()) == {"PodPopped": 3, "NodeAdd": 1, "AssignedPodDelete": 1}
    kit.queue.done(b.uid)
    assert dict(kit.queue.in_flight_counts()) == {"PodPopped": 2, "NodeAdd": 1, "AssignedPodDelete": 1}
    kit.queue.done(a.uid)
    assert dict(kit.queue.in_flight_counts()) == {"PodPopped": 1}
    assert kit.queue.in_flight_pods() == [c.pod]
    kit.queue.done(c.uid)
    kit.queue.done(c.uid)
    assert dict(kit.queue.in_flight_counts()) == {}


def test_an_update_of_a_pod_in_flight_counts_for_it(kit: Any) -> None:
    """Gates that are removed during the attempt retry a pod that the gates' plugin rejected."""
    pod = kit.add("p")
    queued = kit.pop()
    kit.queue.update(kit.changed(pod, schedulingGates=("g",)), pod)
    assert kit.where() == {}
    kit.queue.requeue_failed(queued, ["Gates"])
    assert kit.where() == {"backoff": ["p"]}


@pytest.mark.parametrize(("activated", "expected"), [("p", "backoff"), ("q", "unschedulable")])
def test_activation_of_a_pod_in_flight_counts_for_that_pod_alone(kit: Any, activated: str, expected: str) -> None:
    """A pod activated in flight is retried after its backoff; other pods in flight are not affected."""
    pods = {name: kit.add(name) for name in ("p", "q")}
    queued = kit.pop()
    kit.pop()
    kit.queue.activate([pods[activated]])
    kit.queue.requeue_failed(queued, ["Silent"])
    assert kit.where() == {expected: ["p"]}


def test_a_pod_deleted_in_flight_and_recreated_is_kept_once(kit: Any) -> None:
    """The failed attempt of the old pod does not affect the new one with the same UID."""
    pod = kit.add("p")
    old = kit.pop()
    kit.queue.delete(pod)
    kit.queue.add(pod)
    kit.queue.requeue_failed(old, ["Fit"])
    assert kit.where() == {"active": ["p"]}
    assert kit.pop() is not old


def test_a_pod_is_never_in_flight_twice(kit: Any) -> None:
    """A popped pod whose attempt is still in progress is skipped."""
    pod = kit.add("p")
    kit.pop()
    kit.queue.add(pod)
    kit.add("next")
    assert kit.pop().pod.metadata.name == "next"
    assert kit.queue.pop() is None


def test_updates_of_a_pod_in_flight_retry_only_that_pod(make_kit: Any) -> None:
    """They are recorded with the events for all pods in flight, but concern no other pod."""
    kit = make_kit({"Taints": [on(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION)]})
    changed, other = kit.add("changed"), kit.add("other")
    popped = {queued.uid: queued for queued in (kit.pop(), kit.pop())}
    kit.queue.update(changed, kit.changed(changed, tolerations=(Toleration(key="k"),)))
    for pod in (changed, other):
        kit.queue.requeue_failed(popped[pod.metadata.uid], ["Taints"])
    assert kit.where() == {"backoff": ["changed"], "unschedulable": ["other"]}
