"""The order in which pods are popped."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource
from kubestow.scheduler.queue.rules import QueueSettings

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)


def test_higher_priority_first_then_longer_wait(kit: Any) -> None:
    """Pods leave by priority; of equal ones the first to arrive."""
    for name, priority in [("a", 0), ("b", 10), ("c", 0), ("d", 10)]:
        kit.add(name, priority=priority)
        kit.clock.time += 0.001
    assert kit.pop_names() == ["b", "d", "a", "c"]


def test_equal_pods_leave_in_order_of_arrival(kit: Any) -> None:
    """That is so even within one tick of the clock."""
    for number in range(20):
        kit.add(f"p{number:02}")
    assert kit.pop_names() == [f"p{number:02}" for number in range(20)]


def test_a_retried_pod_is_ordered_by_the_end_of_its_last_attempt(kit: Any) -> None:
    """Pods that arrived before that time are popped first."""
    kit.add("retried")
    queued = kit.pop()
    kit.clock.time += 1
    kit.add("newer")
    kit.clock.time += 1
    kit.queue.requeue_failed(queued, ["Fit"])
    kit.queue.activate([queued.pod])
    assert kit.pop_names() == ["newer", "retried"]


@given(priorities=st.lists(st.integers(0, 3), max_size=30), gone=st.sets(st.integers(0, 29)), limit=st.integers(0, 35))
def test_upcoming_pods(make_kit: Any, priorities: list[int], gone: set[int], limit: int) -> None:
    """The next pods are returned in the order in which they will be popped, and stay in the queue."""
    kit = make_kit()
    pods = [kit.add(f"p{number}", priority=priority) for number, priority in enumerate(priorities)]
    for number in gone:
        if number < len(pods):
            kit.queue.delete(pods[number])
    names = [pod.name for pod in kit.queue.upcoming(limit)]
    assert names == kit.pop_names()[:limit]


def test_the_order_can_be_replaced(make_kit: Any) -> None:
    """A custom QueueSort plugin defines the order."""
    kit = make_kit(order=lambda pod, _: pod.metadata.name)
    for name in "cab":
        kit.add(name)
    assert kit.pop_names() == ["a", "b", "c"]


def test_a_changed_priority_changes_the_position(kit: Any) -> None:
    """An active pod that is updated moves to its new position."""
    first, second = kit.add("first"), kit.add("second")
    kit.queue.update(second, kit.changed(second, priority=5))
    assert kit.queue.get(first.metadata.uid).pod is first
    assert kit.pop_names() == ["second", "first"]


def test_backoff_is_popped_when_nothing_is_active(kit: Any) -> None:
    """Instead of idling, the scheduler tries pods that are backing off, by expiry."""
    for name, failures in [("often", 3), ("once", 1)]:
        queued = kit.reject(name, "Fit")
        queued.unschedulable_count = failures
        kit.happens(NODE_ADD)
    assert kit.where() == {"backoff": ["often", "once"]}
    kit.add("new")
    assert kit.pop_names() == ["new", "once", "often"]
    assert kit.arrivals("active", "PopFromBackoffQ") == 2


def test_pods_whose_backoff_ends_in_the_same_second_are_ordered_by_priority(kit: Any) -> None:
    """Milliseconds of backoff do not take precedence over priority."""
    low = kit.reject("low", "Fit")
    kit.clock.time += 0.5
    high = kit.reject("high", "Fit", priority=100)
    kit.happens(NODE_ADD)
    assert kit.where() == {"backoff": ["high", "low"]}
    assert low.backoff_expiry == high.backoff_expiry
    assert kit.pop_names() == ["high", "low"]


def test_pods_that_failed_with_an_error_are_not_popped_early(kit: Any) -> None:
    """Their backoff protects the API server."""
    kit.reject("unlucky")
    assert kit.where() == {"errorBackoff": ["unlucky"]}
    assert not kit.queue.has_work
    assert kit.queue.pop() is None


def test_popping_from_backoff_can_be_switched_off(make_kit: Any) -> None:
    """Without it, a pod waits until the end of its backoff, which is not rounded."""
    kit = make_kit(settings=QueueSettings(pop_from_backoff=False))
    kit.clock.time += 0.25
    kit.reject("p", "Fit")
    kit.happens(NODE_ADD)
    assert kit.queue.pop() is None
    kit.advance(0.99)
    assert kit.where() == {"backoff": ["p"]}
    kit.advance(0.02)
    assert kit.pop_names() == ["p"]


def test_attempts_are_counted(kit: Any) -> None:
    """Each pop is an attempt; the time when a pod first became active is stored."""
    queued = kit.reject("p", "Fit")
    kit.clock.time += 60
    kit.queue.activate([queued.pod])
    assert kit.pop().attempts == 2
    assert queued.initial_attempt_timestamp == 1_000.0
