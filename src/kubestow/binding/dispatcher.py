"""Every write about a pod: in order for each pod, superseded patches merged, failures retried, none lost silently.

A write waits for the writes about the same pod that came before it. A status patch that still waits is merged with the
next one, so that a pod that fails again and again costs one write at a time. What may succeed when tried again (the
server is away, busy or failing) is tried again with growing pauses; what is refused is reported.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from msgspec.structs import replace

from kubestow.framework.handle import ApiPort
from kubestow.model.devices import ResourceClaim
from kubestow.model.failures import RETRIABLE, NotFoundError
from kubestow.model.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.model.pod_groups import Condition, PodGroup
from kubestow.model.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.reporting.conditions import with_condition
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

BINDING = "pod_binding"
STATUS_PATCH = "pod_status_patch"
GROUP_STATUS_PATCH = "podgroup_status_patch"
DELETION = "pod_delete"
ASIDE = "resource_claim_update"
SUCCESS = "success"
ERROR = "error"

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
MOST_ATTEMPTS = 8


class StatusPatch:
    """What is to be written into a pod's status; None leaves a field as it is."""

    __slots__ = ("condition", "nominated_node", "pod")

    def __init__(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        self.pod = pod
        self.condition = condition
        self.nominated_node = nominated_node

    def applied(self, pod: Pod) -> Pod:
        """The pod with this in its status."""
        status = pod.status
        if self.condition is not None:
            status = replace(status, conditions=with_condition(status.conditions, self.condition))
        if self.nominated_node is not None:
            status = replace(status, nominatedNodeName=self.nominated_node)
        return replace(pod, status=status)

    def merge(self, newer: "StatusPatch") -> None:
        self.pod = newer.pod
        if newer.condition is not None:
            self.condition = newer.condition
        if newer.nominated_node is not None:
            self.nominated_node = newer.nominated_node


class Dispatcher:
    """Sends writes about pods."""

    def __init__(self, api: ApiPort, metrics: SchedulerMetrics) -> None:
        self._api = api
        self._metrics = metrics
        self._last: dict[str, asyncio.Future[None]] = {}
        self._patches: dict[str, StatusPatch] = {}
        self._sending: dict[str, StatusPatch] = {}
        self._group_conditions: dict[str, Condition] = {}
        """By the group's uid, what is still to be written, or being written."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting: Counter[str] = Counter()
        """How many writes wait for earlier ones about the same pod, by kind."""
        metrics.pending_async_api_calls.watch(lambda: {(kind,): count for kind, count in self.waiting.items()})

    def __len__(self) -> int:
        """How many writes that nobody waits for are under way."""
        return len(self._tasks)

    def bind(self, pod: Pod, node: str) -> Coroutine[Any, Any, None]:
        """Bind a pod. Not tried again here: the pod goes back to the queue, and all is looked at anew."""
        return self._in_order(BINDING, pod.metadata.uid, self._api.bind, pod, node)

    def patch_status(
        self,
        pod: Pod,
        condition: PodCondition | None = None,
        nominated_node: str | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Write into a pod's status some time soon; `done` is called when that is over, or joins what waits already."""
        uid = pod.metadata.uid
        # What is written is the difference to what the server will have by then.
        patch = StatusPatch(_after(self._sending.get(uid), pod), condition, nominated_node)
        waiting = self._patches.get(uid)
        if waiting is not None:
            waiting.merge(patch)
            if done is not None:
                done()
            return
        self._patches[uid] = patch
        self._spawn(self._patch(uid, done))

    def expected(self, pod: Pod) -> Pod:
        """The pod as it will be when all that is under way has been written."""
        uid = pod.metadata.uid
        return _after(self._patches.get(uid), _after(self._sending.get(uid), pod))

    def patch_group_status(self, group: PodGroup, condition: Condition) -> None:
        """Write a condition into a group's status some time soon."""
        is_waiting = group.metadata.uid in self._group_conditions
        self._group_conditions[group.metadata.uid] = condition
        if not is_waiting:
            self._spawn(self._patch_group(group))

    def expected_group(self, group: PodGroup) -> PodGroup:
        """The group as it will be when all that is under way has been written."""
        condition = self._group_conditions.get(group.metadata.uid)
        if condition is None:
            return group
        return replace(
            group, status=replace(group.status, conditions=with_condition(group.status.conditions, condition))
        )

    async def _patch_group(self, group: PodGroup) -> None:
        uid, written = group.metadata.uid, None
        try:
            # What is said meanwhile is written next.
            while (condition := self._group_conditions[uid]) is not written:
                write = self._api.patch_pod_group_status
                await self._in_order(GROUP_STATUS_PATCH, uid, self._persistently, write, group, condition)
                written = condition
        except NotFoundError:
            # A group that is gone needs no status.
            pass
        except Exception as error:
            log.error("API call failed", err=error, call=GROUP_STATUS_PATCH, podGroup=group.key)
        finally:
            del self._group_conditions[uid]

    def update_volume(self, volume: PersistentVolume, changes: dict[str, Any]) -> Coroutine[Any, Any, PersistentVolume]:
        return self._api.update_volume(volume, changes)

    def update_claim(
        self, claim: PersistentVolumeClaim, changes: dict[str, Any]
    ) -> Coroutine[Any, Any, PersistentVolumeClaim]:
        return self._api.update_claim(claim, changes)

    def get_resource_claim(self, claim: ResourceClaim) -> Coroutine[Any, Any, ResourceClaim]:
        return self._api.get_resource_claim(claim)

    def create_resource_claim(self, namespace: str, manifest: dict[str, Any]) -> Coroutine[Any, Any, ResourceClaim]:
        return self._api.create_resource_claim(namespace, manifest)

    def update_resource_claim(
        self, claim: ResourceClaim, changes: dict[str, Any]
    ) -> Coroutine[Any, Any, ResourceClaim]:
        return self._api.update_resource_claim(claim, changes)

    def update_resource_claim_status(
        self, claim: ResourceClaim, changes: dict[str, Any]
    ) -> Coroutine[Any, Any, ResourceClaim]:
        return self._api.update_resource_claim_status(claim, changes)

    def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> Coroutine[Any, Any, ResourceClaim]:
        return self._api.unreserve_resource_claim(claim, uid)

    def delete_resource_claim(self, claim: ResourceClaim) -> Coroutine[Any, Any, None]:
        return self._api.delete_resource_claim(claim)

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        uid = pod.metadata.uid
        await self._in_order(STATUS_PATCH, uid, self._api.set_extended_resource_claim, pod, status)

    def write_aside(self, pod: Pod, call: Callable[[], Awaitable[Any]], done: Callable[[], None] | None = None) -> None:
        """Have something written about a pod that nobody waits for; `done` is called when that is over."""
        self._spawn(self._write_aside(pod, call, done))

    async def _write_aside(self, pod: Pod, call: Callable[[], Awaitable[Any]], done: Callable[[], None] | None) -> None:
        try:
            await self._persistently(call)
        except NotFoundError:
            # What is gone need not be put in order.
            pass
        except Exception as error:
            log.error("API call failed", err=error, call=ASIDE, pod=pod.key)
        finally:
            if done is not None:
                done()

    async def evict(self, pod: Pod, condition: PodCondition | None) -> bool:
        """Note in a pod's status why it must go, and delete it. False: it was gone already."""
        try:
            await self._in_order(DELETION, pod.metadata.uid, self._delete, pod, condition)
        except NotFoundError:
            return False
        return True

    async def _delete(self, pod: Pod, condition: PodCondition | None) -> None:
        if condition is not None:
            await self._persistently(self._api.patch_pod_status, pod, condition=condition)
        await self._persistently(self._api.delete_pod, pod)

    async def _patch(self, uid: str, done: Callable[[], None] | None) -> None:
        patch = self._patches[uid]
        try:
            await self._in_order(STATUS_PATCH, uid, self._send_patch, uid)
        except NotFoundError:
            # A pod that is gone needs no status.
            pass
        except Exception as error:
            log.error("API call failed", err=error, call=STATUS_PATCH, pod=patch.pod.key)
        finally:
            if done is not None:
                done()

    async def _send_patch(self, uid: str) -> None:
        # From now on a newer patch is one of its own.
        patch = self._sending[uid] = self._patches.pop(uid)
        try:
            await self._persistently(
                self._api.patch_pod_status, patch.pod, condition=patch.condition, nominated_node=patch.nominated_node
            )
        finally:
            del self._sending[uid]

    async def _in_order(self, kind: str, uid: str, call: Callable[P, Awaitable[T]], *args: P.args, **kw: P.kwargs) -> T:
        """Call when all that was begun before about the same pod is over; how long the call takes is told."""
        loop, before = asyncio.get_running_loop(), self._last.get(uid)
        self._last[uid] = done = loop.create_future()
        try:
            if before is not None:
                await self._turn(kind, before)
            started, result = loop.time(), ERROR
            try:
                answer = await call(*args, **kw)
                result = SUCCESS
            finally:
                self._metrics.async_api_calls.inc(kind, result)
                self._metrics.async_api_call_seconds.observe(loop.time() - started, kind, result)
            return answer
        finally:
            done.set_result(None)
            if self._last.get(uid) is done:
                del self._last[uid]

    async def _turn(self, kind: str, before: asyncio.Future[None]) -> None:
        self.waiting[kind] += 1
        try:
            await asyncio.wait((before,))
        finally:
            self.waiting[kind] -= 1

    async def _persistently(self, call: Callable[P, Awaitable[T]], *args: P.args, **kw: P.kwargs) -> T:
        pause = FIRST_PAUSE
        for _ in range(MOST_ATTEMPTS - 1):
            try:
                return await call(*args, **kw)
            except RETRIABLE as error:
                await asyncio.sleep(max(pause, error.retry_after or 0.0))
                pause = min(2 * pause, LONGEST_PAUSE)
        return await call(*args, **kw)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until everything is sent."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def _after(patch: StatusPatch | None, pod: Pod) -> Pod:
    return pod if patch is None else patch.applied(pod)
