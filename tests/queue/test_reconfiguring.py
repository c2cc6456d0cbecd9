"""Other rules, another order and other backoffs, while pods wait."""

from typing import Any

from kubestow.api.pod import Pod
from kubestow.scheduler.queue.queued_pod import priority_order


def by_name(pod: Pod, waiting_since: float) -> str:
    return pod.metadata.name


def test_active_pods_leave_in_the_new_order(kit: Any) -> None:
    """Those that come later, too."""
    for name in ("c", "a", "d"):
        kit.add(name)
    kit.queue.reconfigure({"default": kit.rules}, by_name, 1.0, 10.0, ())
    kit.add("b")
    assert kit.pop_names() == ["a", "b", "c", "d"]


def test_only_pods_of_changed_profiles_are_asked_about(kit: Any) -> None:
    """An active pod that the new rules hold back waits from now on."""
    kit.add("p")
    kit.rules.closed.add("p")
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ())
    assert kit.queue.lengths()["active"] == 1
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ["default"])
    assert (kit.queue.lengths()["active"], kit.queue.lengths()["gated"]) == (0, 1)
    assert kit.queue.rejections() == {("Door", "default"): 1}


def test_backoffs_are_worked_out_anew(kit: Any) -> None:
    """A pod that backs off for long is tried as soon as the new backoff is over."""
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 500.0, 500.0, ())
    kit.add("p")
    kit.queue.requeue_failed(kit.pop())
    assert kit.queue.next_wakeup() > kit.clock.time + 400.0
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ())
    assert kit.queue.next_wakeup() <= kit.clock.time + 2.0


def test_a_rejection_during_a_reload_is_not_the_last_word(kit: Any) -> None:
    """A pod that was in flight is tried again, with the plugins that came meanwhile."""
    kit.add("p")
    queued = kit.pop()
    kit.queue.reconfigure({"default": kit.rules}, priority_order, 1.0, 10.0, ["default"])
    kit.queue.requeue_failed(queued, ["Fit"])
    assert kit.queue.lengths()["backoff"] == 1
