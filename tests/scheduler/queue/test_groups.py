"""Groups in the queue: a group waits, is popped and returns with all its pods."""

from typing import Any

import pytest

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod_groups import PodGroup
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.queue.group_queue import GroupQueue
from kubestow.scheduler.queue.queued_group import QueuedGroup

GROUP_ADDED = ClusterEvent(Resource.POD_GROUP, Action.ADD)
NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)


def group(name: str = "g") -> PodGroup:
    return PodGroup(metadata=ObjectMeta(name=name, namespace="ns"))


@pytest.fixture
def kit(make_kit: Any) -> Any:
    """Return a queue that knows the group `g`."""
    kit = make_kit(queue=GroupQueue)
    kit.queue.add_group(group().key)
    return kit


def add(kit: Any, *names: str, **fields: Any) -> None:
    for name in names:
        kit.add(name, group="g", **fields)


def pop(kit: Any) -> QueuedGroup:
    queued = kit.queue.pop()
    assert isinstance(queued, QueuedGroup)
    return queued


def names(queued: QueuedGroup) -> list[str]:
    return [one.pod.metadata.name for one in queued.pods]


def fail(kit: Any, queued: QueuedGroup, code: Code = Code.UNSCHEDULABLE, bound: tuple[str, ...] = ()) -> None:
    """End the cycle of a popped group: the pods named in `bound` got a node, the others were rejected."""
    for one in queued.pods:
        if one.pod.metadata.name in bound:
            kit.queue.done(one.uid)
        else:
            kit.queue.requeue_failed(one, ("Fit",))
    kit.queue.requeue_group(queued, code)


def test_all_pods_of_a_group_are_popped_at_once(kit: Any) -> None:
    """They are in the order of their priority, attempts, age and name; pods between them are popped on their own."""
    add(kit, "b", "a")
    kit.clock.time += 1
    kit.add("single")
    add(kit, "c")
    add(kit, "d", priority=1)
    assert kit.where() == {"active": ["a", "b", "c", "d", "single"]}
    popped = pop(kit)
    assert (popped.key, names(popped)) == ("ns/g", ["d", "a", "b", "c"])
    assert len(kit.queue.in_flight_pods()) == 4
    assert kit.pop().pod.metadata.name == "single"
    assert kit.queue.pop() is None


def test_pods_of_an_unknown_group_are_incomplete(kit: Any) -> None:
    """They are queued when the group is added, and set aside when it is deleted."""
    kit.add("a", group="other")
    assert (kit.where(), kit.queue.lengths()["incomplete"], kit.queue.has_work) == ({"incomplete": ["a"]}, 1, False)
    kit.queue.add_group(group("other").key)
    assert kit.where() == {"active": ["a"]}
    kit.queue.remove_group(group("other").key)
    assert kit.where() == {"incomplete": ["a"]}
    kit.queue.delete(kit.pod("a", group="other"))
    assert (kit.where(), kit.queue.get("uid-a")) == ({}, None)


def test_a_rejected_group_backs_off_as_a_whole(kit: Any) -> None:
    """It is retried without an event, and is not popped before."""
    add(kit, "a", "b")
    fail(kit, pop(kit))
    assert kit.where() == {"errorBackoff": ["a", "b"]}
    assert (kit.queue.lengths()["backoff"], kit.queue.pop()) == (2, None)
    kit.advance(2.1)
    assert kit.where() == {"active": ["a", "b"]}
    assert [one.attempts for one in pop(kit).pods] == [2, 2]


@pytest.mark.parametrize(("pods", "longest"), [(1, 10), (4, 20), (9, 30)])
def test_the_longest_backoff_grows_with_the_size(kit: Any, pods: int, longest: int) -> None:
    """It is multiplied by the square root of the number of pods."""
    add(kit, *(f"p{number}" for number in range(pods)))
    for _ in range(8):
        fail(kit, pop(kit))
        _, _, retry = kit.queue.locate("uid-p0")
        assert retry is not None
        kit.advance(retry + 1.0 - kit.clock.time)
    fail(kit, pop(kit))
    assert kit.queue.locate("uid-p0")[2] == kit.clock.time // 1 + longest


def test_after_a_success_the_other_pods_are_active_at_once(kit: Any) -> None:
    """They keep their place in the order."""
    add(kit, "a", "b")
    kit.clock.time += 1
    kit.add("single")
    kit.clock.time += 1
    fail(kit, pop(kit), Code.SUCCESS, bound=("a",))
    assert kit.where() == {"active": ["b", "single"]}
    assert names(pop(kit)) == ["b"]


def test_pods_that_arrive_during_the_cycle_are_pending(kit: Any) -> None:
    """They join the group when it returns; as new pods, they have no earlier place in the order."""
    add(kit, "a")
    popped = pop(kit)
    add(kit, "late")
    assert kit.where() == {"pending": ["late"]}
    kit.clock.time += 1
    fail(kit, popped, Code.SUCCESS, bound=("a",))
    assert kit.where() == {"active": ["late"]}
    assert pop(kit).timestamp == kit.clock.time


def test_a_group_without_waiting_pods_leaves_the_queue(kit: Any) -> None:
    """The next pod starts a new attempt."""
    add(kit, "a")
    popped = pop(kit)
    kit.queue.delete(kit.pod("a", group="g"))
    kit.queue.done("uid-a")
    kit.queue.requeue_group(popped, Code.UNSCHEDULABLE)
    assert kit.where() == {}
    add(kit, "b")
    assert names(pop(kit)) == ["b"]


def test_a_group_that_is_deleted_in_flight(kit: Any) -> None:
    """Its pods are incomplete then, the pending ones and those that fail later."""
    add(kit, "a")
    popped = pop(kit)
    add(kit, "late")
    kit.queue.remove_group(group().key)
    fail(kit, popped)
    assert kit.where() == {"incomplete": ["a", "late"]}


def test_one_gated_pod_gates_its_group(kit: Any) -> None:
    """An event that its plugin is registered for runs PreEnqueue again."""
    add(kit, "a", "b")
    kit.rules.closed = {"c"}
    add(kit, "c")
    assert (kit.where(), kit.queue.lengths()["gated"]) == ({"gated": ["a", "b", "c"]}, 3)
    assert kit.queue.locate("uid-a")[0] == "gated"
    kit.happens(NODE_ADDED)
    assert kit.where() == {"gated": ["a", "b", "c"]}
    kit.rules.closed = set()
    kit.happens(GROUP_ADDED, None, group("any"))
    assert kit.where() == {"active": ["a", "b", "c"]}


def test_a_group_that_is_gated_for_its_own_events(kit: Any) -> None:
    """Only events about the group concern it."""
    kit.rules.closed, kit.rules.awaited = {"a"}, "ns/g"
    add(kit, "a", "b")
    kit.rules.closed = set()
    kit.happens(GROUP_ADDED, None, group("other"))
    assert kit.where() == {"gated": ["a", "b"]}
    kit.happens(GROUP_ADDED, None, group("g"))
    assert kit.where() == {"active": ["a", "b"]}


def test_an_update_that_removes_a_gate_releases_the_group(kit: Any) -> None:
    """The update of another pod does not."""
    add(kit, "a")
    add(kit, "b", gates=["later"])
    before, after = kit.pod("a", group="g"), kit.pod("a", group="g", nominated="n")
    kit.queue.update(before, after)
    assert kit.where() == {"gated": ["a", "b"]}
    kit.queue.update(kit.pod("b", group="g", gates=["later"]), kit.pod("b", group="g"))
    assert kit.where() == {"active": ["a", "b"]}


def test_a_group_is_released_when_its_gated_pod_is_deleted(kit: Any) -> None:
    """No event would do so."""
    add(kit, "a")
    add(kit, "b", gates=["later"])
    kit.queue.delete(kit.pod("b", group="g"))
    assert kit.where() == {"active": ["a"]}


def test_a_group_that_waits_for_the_end_of_an_operation(kit: Any) -> None:
    """Only events about the awaited pod concern it, as with single pods."""
    add(kit, "a", "b")
    popped = pop(kit)
    kit.rules.closed, kit.rules.has_operation = {"a"}, True
    kit.queue.wait_only_for("podgroup/ns/g", "uid-victim")
    fail(kit, popped)
    assert kit.where() == {"gated": ["a", "b"]}
    kit.rules.closed = set()
    kit.happens(GROUP_ADDED, None, group("any"))
    assert kit.where() == {"gated": ["a", "b"]}
    kit.queue.wait_only_for("podgroup/ns/g", None)
    kit.happens(GROUP_ADDED, None, group("any"))
    assert kit.where() == {"errorBackoff": ["a", "b"]}


def test_activating_a_pod_activates_its_group(kit: Any) -> None:
    """A group in flight is not affected."""
    add(kit, "a", "b")
    fail(kit, pop(kit))
    kit.queue.activate([kit.pod("b", group="g")])
    assert kit.where() == {"active": ["a", "b"]}


def test_a_pod_whose_binding_failed_is_active_at_once(kit: Any) -> None:
    """The others may be bound already; the group is new, and has neither rejections nor errors."""
    add(kit, "a", "b")
    popped = pop(kit)
    one, other = popped.pods
    kit.queue.done(other.uid)
    kit.queue.requeue_group(popped, Code.SUCCESS)
    kit.queue.requeue_failed(one)
    assert kit.where() == {"active": ["a"]}
    assert kit.queue.entity_arrivals()["UnscheduledPodAdd", "active", "podgroup"] == 2
    (again,) = pop(kit).pods
    kit.queue.requeue_group(popped, Code.SUCCESS)
    kit.queue.requeue_failed(again)
    assert kit.queue.locate("uid-a")[2] == kit.clock.time + 1, "a binding that keeps failing is not retried in a loop"


def test_a_pod_whose_binding_failed_joins_its_group(kit: Any) -> None:
    """The group keeps its backoff."""
    add(kit, "a", "b")
    popped = pop(kit)
    one, _ = popped.pods
    fail(kit, popped, bound=("a",))
    kit.queue.requeue_failed(one)
    assert kit.where() == {"errorBackoff": ["a", "b"]}


def test_a_retry_is_expected_only_after_an_event(kit: Any) -> None:
    """Without one, the result of the next attempt is the same."""
    add(kit, "a")
    fail(kit, pop(kit))
    assert not kit.queue.awaits_retry
    kit.happens(NODE_ADDED)
    assert kit.queue.awaits_retry


def test_every_pod_of_a_group_has_a_position(kit: Any) -> None:
    """It is new after every move; the group itself has none."""
    add(kit, "a", "b")
    before = [dict(place) for place in kit.queue.entries()]
    assert sorted(uid for place in before for uid in place) == ["uid-a", "uid-b"]
    fail(kit, pop(kit))
    after = [dict(place) for place in kit.queue.entries()]
    assert sorted(uid for place in after for uid in place) == ["uid-a", "uid-b"]
    assert all(after[3][uid] is not before[3][uid] for uid in ("uid-a", "uid-b"))
