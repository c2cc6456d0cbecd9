"""The metrics about what waits in the queue, and about arrivals."""

from typing import Any

from kubestow.scheduler.cluster.events import UNSCHEDULED_POD_ADD, Action, ClusterEvent, Resource

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)


def test_waiting_pods_count_by_queue(kit: Any) -> None:
    """Gated pods and rejected pods are different queues."""
    kit.reject("p", "Fit")
    kit.add("gated", gates=["g"])
    kit.add("q")
    counts = kit.metrics.queued_entities.read()
    assert {key: count for key, count in counts.items() if count} == {
        ("active", "pod"): 1,
        ("unschedulable", "pod"): 1,
        ("gated", "pod"): 1,
    }


def test_arrivals_count_unless_hints_ask_for_that_queue(kit: Any) -> None:
    """As in kube-scheduler, a rejected pod that goes to the unschedulable pods does not count.

    It counts when it is retried at once although it should back off, because its backoff is over.
    """
    kit.reject("p", "Fit")
    added = {(UNSCHEDULED_POD_ADD.label, "active", "pod"): 1}
    assert kit.metrics.queue_incoming_entities.read() == added
    kit.clock.time += 60
    kit.happens(NODE_ADD)
    assert kit.metrics.queue_incoming_entities.read() == added | {("NodeAdd", "active", "pod"): 1}
    assert kit.arrivals("unschedulable", "ScheduleAttemptFailure") == 1
