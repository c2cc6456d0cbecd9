"""Changes of rules, order and backoffs while pods wait."""

from typing import Any

from kubestow.api.pod import Pod
from kubestow.scheduler.queue.queued_pod import priority_order


def by_name(pod: Pod, waiting_since: float) -> str:
    return pod.metadata.name


def test_active_pods_leave_in_the_new_order(kit: Any) -> None:
    """That includes pods that are added later."""
    for name in ("c", "a", "d"):
        kit.add(name)
    kit.queue.reconfigure({"default": kit.rules}, by_name, 1.0, 10.0, ())
    kit.add("b")
    assert kit.pop_names() == ["a", "b", "c", "d"]


def test_pre_enqueue_runs_for_pods_of_changed_profiles_only(kit: Any) -> None:
    """An active pod that the new rules reject is gated."""
    kit.add("p")
    kit.rules.closed.add("p")
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ())
    assert kit.queue.lengths()["active"] == 1
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ["default"])
    assert (kit.queue.lengths()["active"], kit.queue.lengths()["gated"]) == (0, 1)
    assert kit.queue.rejections() == {("Door", "default"): 1}


def test_backoffs_are_computed_again(kit: Any) -> None:
    """A pod with a long backoff is retried after the new backoff."""
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 500.0, 500.0, ())
    kit.add("p")
    kit.queue.requeue_failed(kit.pop())
    assert kit.queue.next_wakeup() > kit.clock.time + 400.0
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ())
    assert kit.queue.next_wakeup() <= kit.clock.time + 2.0


def test_a_pod_rejected_during_a_reload_is_retried(kit: Any) -> None:
    """A pod that was in flight is retried with the new plugins."""
    kit.add("p")
    queued = kit.pop()
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ["default"])
    kit.queue.requeue_failed(queued, ["Fit"])
    assert kit.queue.lengths()["backoff"] == 1
