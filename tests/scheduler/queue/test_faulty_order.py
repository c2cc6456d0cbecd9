"""A queue sort plugin that fails: the order may be wrong, but no pod is lost."""

from typing import Any

from kubestow.api.pod import Pod
from kubestow.scheduler.queue.ordering import GuardedOrder


def _guarded(sort_key: Any) -> tuple[GuardedOrder, list[str]]:
    failures: list[str] = []
    return GuardedOrder(sort_key, lambda pod, error: failures.append(f"{pod.metadata.name}: {error}")), failures


def test_a_pod_without_a_key_is_last(make_kit: Any) -> None:
    """Pods with keys leave in their order; the others follow by priority, then by age."""

    def sort_key(pod: Pod, waiting_since: float) -> str:
        if pod.metadata.name.startswith("bad"):
            raise LookupError("no such team")
        return pod.metadata.name

    order, failures = _guarded(sort_key)
    kit = make_kit(order=order)
    for name, priority in (("bad1", 0), ("b", 0), ("bad2", 0), ("bad3", 9), ("a", 0)):
        kit.clock.time += 1.0
        kit.add(name, priority=priority)
    assert kit.pop_names() == ["a", "b", "bad3", "bad1", "bad2"]
    assert failures == ["bad1: no such team", "bad2: no such team", "bad3: no such team"]


def test_keys_that_cannot_be_compared_fall_back_to_priority(make_kit: Any) -> None:
    """Two pods with keys of different types are both kept, and the failure is reported."""
    order, failures = _guarded(lambda pod, _: pod.metadata.name if pod.spec.priority else None)
    kit = make_kit(order=order)
    kit.add("low", priority=0)
    kit.add("high", priority=5)
    assert kit.pop_names() == ["high", "low"]
    assert "'<' not supported" in failures[0]


def test_equal_keys_leave_in_order_of_arrival(make_kit: Any) -> None:
    """A plugin that returns equal keys makes a first-in, first-out queue."""
    order, failures = _guarded(lambda *_: 0)
    kit = make_kit(order=order)
    for name, priority in (("first", 0), ("second", 0), ("high", 5)):
        kit.add(name, priority=priority)
    assert kit.pop_names() == ["first", "second", "high"]
    assert failures == []


def test_a_failing_order_holds_in_backoff_too(make_kit: Any) -> None:
    """Pods that back off are ordered by the same keys, and become active again."""
    order, failures = _guarded(lambda *_: 1 // 0)
    kit = make_kit(order=order)
    rejected = [kit.reject(f"p{number}", "Fit") for number in range(3)]
    for queued in rejected:
        kit.queue.update(queued.pod, kit.changed(queued.pod, priority=3))
    kit.advance(301.0)
    kit.advance(20.0)
    assert sorted(kit.pop_names()) == ["p0", "p1", "p2"]
    assert failures
