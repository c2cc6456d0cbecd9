"""The work of the queue per operation while very many pods wait: counted in calls, not in time."""

import gc
import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, Action, ClusterEvent, Resource

FEW, MANY = 100, 100_000
NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)


def calls_of(action: Callable[[], Any]) -> int:
    """Return the number of functions that are called, written in Python or in C."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    # Finalizers and callbacks of the collector would count, too.
    gc.disable()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.fixture(scope="module")
def crowds(make_kit: Any) -> tuple[Any, Any]:
    """Return two queues with few and many waiting pods: nine of ten were rejected for their ports, one is gated."""
    return _crowd(make_kit(), FEW), _crowd(make_kit(), MANY)


def _crowd(kit: Any, size: int) -> Any:
    for number in range(size):
        if number % 10:
            kit.reject(f"p{number}", "Ports")
        else:
            kit.add(f"p{number}", gates=["later"])
    return kit


def _add_and_delete(kit: Any) -> None:
    """Add a pod, which is tried, rejected by another plugin, changed, requeued by an event, and deleted."""
    queued = kit.reject("one", "Fit")
    kit.queue.update(queued.pod, kit.changed(queued.pod, priority=7))
    kit.happens(NODE_ADDED)
    kit.queue.activate([queued.pod])
    kit.queue.delete(queued.pod)


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(lambda kit: kit.happens(NODE_ADDED), id="an event for pods rejected by another plugin"),
        pytest.param(lambda kit: kit.happens(ASSIGNED_POD_ADD), id="an event without registered plugins"),
        pytest.param(lambda kit: kit.advance(0.0), id="time passing"),
        pytest.param(lambda kit: kit.queue.pop(), id="looking for work"),
        pytest.param(lambda kit: (kit.queue.lengths(), kit.queue.rejections()), id="measuring"),
        pytest.param(lambda kit: kit.queue.next_wakeup(), id="computing the next wakeup"),
        pytest.param(_add_and_delete, id="adding and deleting another pod"),
    ],
)
def test_unaffected_pods_cost_nothing(crowds: tuple[Any, Any], action: Callable[[Any], Any]) -> None:
    """An operation costs the same with a hundred thousand waiting pods as with a hundred."""
    few, many = crowds
    for kit in crowds:
        action(kit)
    assert calls_of(lambda: action(many)) == calls_of(lambda: action(few))
    assert [sum(kit.queue.lengths().values()) for kit in crowds] == [FEW, MANY]


def test_the_cost_of_an_event_is_that_of_the_affected_pods(make_kit: Any) -> None:
    """An event that moves ten times as many pods calls about ten times as many functions."""
    costs = []
    for size in (100, 1000):
        kit = _crowd(make_kit(), size)
        costs.append(calls_of(lambda kit=kit: kit.happens(ASSIGNED_POD_DELETE)))  # type: ignore[misc]
    assert 8 < costs[1] / costs[0] < 12


class _Counting:
    """A key that counts its comparisons."""

    comparisons = 0

    def __init__(self, key: Any) -> None:
        self._key = key

    def __lt__(self, other: "_Counting") -> bool:
        _Counting.comparisons += 1
        return bool(self._key < other._key)


@pytest.mark.parametrize("size", [1000, 50_000])
def test_a_position_is_found_in_few_comparisons(make_kit: Any, size: int) -> None:
    """Adding and popping a pod takes a logarithmic number of comparisons."""

    def order(pod: Pod, waiting_since: float) -> _Counting:
        return _Counting((-(pod.spec.priority or 0), waiting_since))

    kit = make_kit(order=order)
    for number in range(size):
        kit.add(f"p{number}", priority=number * 7919 % size)
    for operation in (lambda: kit.add("high", priority=2 * size), kit.pop, kit.pop):
        _Counting.comparisons = 0
        operation()
        assert _Counting.comparisons <= 2 * math.log2(size)
