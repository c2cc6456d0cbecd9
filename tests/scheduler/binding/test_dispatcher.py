"""Writes about pods: in order for each pod, merged while they wait, retried, and logged if they fail."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from kubestow.api.conditions import status_patch
from kubestow.api.failures import ConflictError, LeaseLostError
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.workloads import PriorityClass
from kubestow.scheduler.binding.dispatcher import Dispatcher
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import FakeCluster, VirtualLoop, make_object, make_pod

T = TypeVar("T")


class Desk:
    """A dispatcher, and the cluster that it writes to."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.cluster = FakeCluster(loop, loop.clock, latency=1.0)
        self.dispatcher = Dispatcher(self.cluster, SchedulerMetrics())
        self.pod = self.cluster.add(make_pod("p"))

    def calls(self) -> list[tuple[str, float]]:
        return [(call.call, call.time) for call in self.cluster.calls]


def play(scene: Callable[[Desk], Coroutine[Any, Any, None]]) -> Desk:
    loop = VirtualLoop()
    try:
        desk = Desk(loop)
        loop.run(scene(desk))
        return desk
    finally:
        loop.close()


def unschedulable(message: str) -> PodCondition:
    return PodCondition("PodScheduled", "False", "Unschedulable", message)


def test_waiting_patches_are_merged() -> None:
    """The first patch is being sent; the others are sent as one."""

    async def scene(desk: Desk) -> None:
        desk.dispatcher.patch_status(desk.pod, unschedulable("one"))
        await asyncio.sleep(0.5)
        desk.dispatcher.patch_status(desk.pod, unschedulable("two"), "n1")
        desk.dispatcher.patch_status(desk.pod, None, "n2")
        desk.dispatcher.patch_status(desk.pod, unschedulable("three"))
        await desk.dispatcher.drain()

    desk = play(scene)
    assert desk.calls() == [("patch_pod_status", 0.0), ("patch_pod_status", 1.0)]
    assert desk.cluster.conditions("p")["PodScheduled"].message == "three"
    assert desk.cluster.pod("p").status.nominatedNodeName == "n2"


def test_a_patch_is_relative_to_the_status_that_the_server_will_have() -> None:
    """Returning to the received status is a change if another status is being written."""
    patches: list[dict[str, Any]] = []

    class Differing(FakeCluster):
        async def patch_pod_status(
            self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
        ) -> None:
            patches.append(status_patch(pod, condition, nominated_node))
            await super().patch_pod_status(pod, condition=condition, nominated_node=nominated_node)

    async def scene(desk: Desk) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        cluster = Differing(loop, loop.clock, latency=1.0)
        pod = cluster.add(make_pod("p"))
        dispatcher = Dispatcher(cluster, SchedulerMetrics())
        dispatcher.patch_status(pod, None, "n1")
        await asyncio.sleep(0.5)
        assert dispatcher.expected(pod).status.nominatedNodeName == "n1"
        dispatcher.patch_status(pod, unschedulable("full"), "")
        assert dispatcher.expected(pod).status.nominatedNodeName == ""
        assert dispatcher.expected(pod).status.conditions[0].message == "full"
        await dispatcher.drain()
        assert dispatcher.expected(pod) is pod
        assert cluster.pod("p").status.nominatedNodeName == ""

    play(scene)
    assert patches[0] == {"status": {"nominatedNodeName": "n1"}}
    assert patches[1]["status"]["nominatedNodeName"] is None


def test_a_binding_waits_for_earlier_writes() -> None:
    """Writes about one pod are in order; those about another pod do not wait."""

    async def scene(desk: Desk) -> None:
        other = desk.cluster.add(make_pod("other"))
        desk.dispatcher.patch_status(desk.pod, None, "n1")
        await asyncio.sleep(0.5)
        await asyncio.gather(desk.dispatcher.bind(desk.pod, "n1"), desk.dispatcher.bind(other, "n1"))

    assert play(scene).calls() == [("patch_pod_status", 0.0), ("bind", 0.5), ("bind", 1.0)]


@pytest.mark.parametrize("problem", ["Timeout", "InternalError", "TooManyRequests", "ConnectionRefused"])
def test_retriable_failures_are_retried(problem: str, caplog: pytest.LogCaptureFixture) -> None:
    """Status patches and evictions are retried with growing pauses, until they succeed."""

    async def scene(desk: Desk) -> None:
        desk.cluster.faults.fail("*", problem, times=5)
        desk.dispatcher.patch_status(desk.pod, unschedulable("full"))
        assert await desk.dispatcher.evict(desk.pod, None)
        await desk.dispatcher.drain()

    desk = play(scene)
    assert caplog.messages == []
    assert len(desk.calls()) == 7
    assert desk.cluster.all(Pod) == []


def test_other_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A patch that the server rejects does not block later writes."""

    async def scene(desk: Desk) -> None:
        desk.cluster.faults.fail("patch_pod_status", "Forbidden")
        desk.dispatcher.patch_status(desk.pod, unschedulable("full"))
        await desk.dispatcher.bind(desk.pod, "n1")
        with pytest.raises(ConflictError):
            await desk.dispatcher.bind(desk.pod, "n2")

    desk = play(scene)
    assert len(caplog.messages) == 1
    assert "Forbidden was asked for" in caplog.messages[0]
    assert 'pod="default/p"' in caplog.messages[0]
    assert desk.cluster.node_of("p") == "n1"


def test_writes_about_a_deleted_pod_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """They are not logged; `evict` returns that the pod was gone."""

    async def scene(desk: Desk) -> None:
        desk.cluster.delete(desk.pod)
        desk.dispatcher.patch_status(desk.pod, unschedulable("full"))
        assert not await desk.dispatcher.evict(desk.pod, unschedulable("go"))
        await desk.dispatcher.drain()

    play(scene)
    assert caplog.messages == []


@pytest.mark.parametrize("problem", ["InternalError", "ServiceUnavailable", "ConnectionRefused"])
def test_a_binding_is_retried_for_a_moment(problem: str) -> None:
    """Later writes about the pod wait until it succeeds."""

    async def scene(desk: Desk) -> None:
        desk.cluster.faults.fail("bind", problem, times=3)
        await desk.dispatcher.bind(desk.pod, "n1")

    desk = play(scene)
    assert len(desk.calls()) == 4
    assert desk.cluster.node_of("p") == "n1"


def test_nothing_is_written_to_objects_without_the_lease(caplog: pytest.LogCaptureFixture) -> None:
    """A replica that is not the leader watches, too, and its plugins may want to write: the leader does."""

    class Follower(FakeCluster):
        async def patch_object(self, obj: T, changes: dict[str, Any], subresource: str) -> T:
            raise LeaseLostError("writes are rejected: this instance is not the leader")

    async def scene(desk: Desk) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        cluster = Follower(loop, loop.clock)
        dispatcher = Dispatcher(cluster, SchedulerMetrics())
        dispatcher.enqueue_patch(cluster.add(make_object(PriorityClass, "c")), {"value": 1}, "", lambda: True)
        await dispatcher.drain()

    play(scene)
    assert caplog.messages == []


def test_patches_of_an_object_are_sent_one_at_a_time() -> None:
    """What is added while a patch is being sent is sent next, with all that waits in one patch."""

    async def scene(desk: Desk) -> None:
        obj = desk.cluster.add(make_object(PriorityClass, "c"))
        for number in range(5):
            change = {"metadata": {"annotations": {f"a{number}": "x", "last": f"{number}"}}}
            desk.dispatcher.enqueue_patch(obj, change, "", lambda: True)
            await asyncio.sleep(0.3)
        await desk.dispatcher.drain()

    desk = play(scene)
    assert desk.calls() == [("patch_object", 0.0), ("patch_object", 1.0), ("patch_object", 2.0)]
    written = desk.cluster.get(PriorityClass, "c")
    assert written is not None
    assert written.metadata.annotations == {"last": "4", **{f"a{number}": "x" for number in range(5)}}
