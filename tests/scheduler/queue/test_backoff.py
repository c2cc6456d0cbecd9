"""The backoff after a failed attempt."""

import math
from typing import Any

import pytest

from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource
from kubestow.scheduler.queue.rules import QueueSettings

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)


def _attempt(kit: Any, uid: str, *plugins: str) -> float:
    """Fail the pod once more, wherever it waits; return the duration of its backoff."""
    kit.queue.activate([kit.queue.get(uid).pod])
    queued = kit.pop()
    kit.queue.requeue_failed(queued, plugins)
    kit.happens(NODE_ADD)
    return float(queued.backoff_expiry - kit.clock.time)


def test_the_backoff_doubles_up_to_the_longest(kit: Any) -> None:
    """It is 1, 2, 4, 8 seconds, then always 10."""
    kit.add("p")
    waits = [_attempt(kit, "uid-p", "Fit") for _ in range(100)]
    assert waits[:6] == [1, 2, 4, 8, 10, 10]
    assert set(waits[4:]) == {10}


def test_errors_are_counted_separately_and_from_zero(kit: Any) -> None:
    """Errors double their own backoff; a rejection ends the series, and continues the count of rejections."""
    kit.add("p")
    outcomes = [(), (), ("Fit",), ("Fit",), (), ("Fit",)]
    assert [_attempt(kit, "uid-p", *plugins) for plugins in outcomes] == [1, 2, 1, 2, 1, 4]


@pytest.mark.parametrize(("initial", "longest", "expected"), [(3.0, 7.0, [3, 6, 7]), (0.5, 0.5, [0, 0]), (5, 5, [5])])
def test_durations_can_be_configured(make_kit: Any, initial: float, longest: float, expected: list[float]) -> None:
    """Both limits are settings; expiry times are rounded down to whole seconds."""
    kit = make_kit(settings=QueueSettings(initial_backoff=initial, longest_backoff=longest))
    kit.add("p")
    assert [_attempt(kit, "uid-p", "Fit") for _ in expected] == expected


def test_a_longest_backoff_of_zero_means_no_backoff(make_kit: Any) -> None:
    """A pod that is retried becomes active at once."""
    kit = make_kit(settings=QueueSettings(longest_backoff=0.0))
    kit.reject("p", "Fit")
    kit.happens(NODE_ADD)
    assert kit.where() == {"active": ["p"]}
    kit.queue.requeue_failed(kit.pop())
    assert kit.where() == {"active": ["p"]}


def test_a_pod_backs_off_until_its_second_is_over(kit: Any) -> None:
    """Whole seconds are flushed together: a backoff of one second from 1000.7 ends with the second 1001."""
    kit.clock.time = 1_000.7
    kit.reject("p", "Fit")
    kit.happens(NODE_ADD)
    assert kit.queue.next_wakeup() == 1_002.0
    kit.advance(1.2)
    assert kit.where() == {"backoff": ["p"]}
    kit.advance(0.1)
    assert kit.where() == {"active": ["p"]}
    assert kit.arrivals("active", "BackoffComplete") == 1


def test_a_backoff_that_ended_before_the_event_does_not_apply(kit: Any) -> None:
    """The pod becomes active at once."""
    kit.reject("p", "Fit")
    kit.advance(5)
    kit.happens(NODE_ADD)
    assert kit.where() == {"active": ["p"]}


def test_pods_that_failed_with_an_error_are_flushed_too(kit: Any) -> None:
    """They are retried without an event."""
    kit.reject("p")
    kit.advance(2)
    assert kit.pop_names() == ["p"]


@pytest.mark.parametrize("whole_seconds", [True, False])
def test_nothing_is_flushed_before_the_wakeup_and_something_at_it(make_kit: Any, whole_seconds: bool) -> None:
    """`next_wakeup` is exactly the first time at which a flush finds a pod."""
    kit = make_kit(settings=QueueSettings(pop_from_backoff=whole_seconds))
    assert kit.queue.next_wakeup() is None
    kit.clock.time += 0.3
    kit.reject("p", "Fit")
    for moved_by in ("timeout", "backoff"):
        wakeup = kit.queue.next_wakeup()
        before = kit.where()
        kit.advance(math.nextafter(wakeup, 0) - kit.clock.time)
        assert kit.where() == before, moved_by
        kit.advance(wakeup - kit.clock.time)
        assert kit.where() == {"active": ["p"]}, moved_by
        kit.queue.requeue_failed(kit.pop(), ["Fit"])
        kit.happens(NODE_ADD)
