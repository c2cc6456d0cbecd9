"""Sends every write about a pod: in order for each pod, with waiting status patches merged and failures retried.

A write waits for the earlier writes about the same pod. A status patch that still waits is merged with the next one, so
a pod that fails repeatedly has at most one patch waiting. Retriable failures (the server is unavailable, busy or
failing) are retried with growing pauses; other failures are logged. A binding is retried for a fraction of a second,
and only if the server did not act on it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

import msgspec
from msgspec.structs import replace

from kubestow.api.conditions import with_condition
from kubestow.api.custom_kinds import CustomResource, resource_of, rule_text
from kubestow.api.failures import (
    RETRIABLE,
    CallError,
    ConflictError,
    ConnectError,
    ForbiddenError,
    LeaseLostError,
    NotFoundError,
    ServerFailedError,
    ServerTimedOutError,
)
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.framework.handle import ApiPort
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

BINDING = "pod_binding"
STATUS_PATCH = "pod_status_patch"
GROUP_STATUS_PATCH = "podgroup_status_patch"
DELETION = "pod_delete"
ASIDE = "resource_claim_update"
OBJECT_PATCH = "object_patch"
SUCCESS = "success"
ERROR = "error"

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds between the attempts of a write."""
BIND_PAUSES = (0.01, 0.05, 0.25)
"""Seconds between the attempts of a binding, as in kube-scheduler."""


class StatusPatch(msgspec.Struct):
    """A change of a pod's status; None leaves a field unchanged."""

    pod: Pod
    condition: PodCondition | None
    nominated_node: str | None

    def applied(self, pod: Pod) -> Pod:
        """Return the pod with the patch applied."""
        status = pod.status
        if self.condition is not None:
            status = replace(status, conditions=with_condition(status.conditions, self.condition))
        if self.nominated_node is not None:
            status = replace(status, nominatedNodeName=self.nominated_node)
        return replace(pod, status=status)

    def merge(self, newer: "StatusPatch") -> None:
        """Add a newer patch, whose values take precedence."""
        self.pod = newer.pod
        if newer.condition is not None:
            self.condition = newer.condition
        if newer.nominated_node is not None:
            self.nominated_node = newer.nominated_node


class QueuedPatch(msgspec.Struct):
    """Changes of an object, or of a subresource of it, that are waiting or being written."""

    obj: Any
    subresource: str
    changes: dict[str, Any]
    is_current: Callable[[], bool]
    """Returns whether the object still exists."""


class Dispatcher:
    """Sends writes to the API server; `bind`, `evict` and the status patches of a pod are in order."""

    def __init__(self, api: ApiPort, metrics: SchedulerMetrics) -> None:
        self._api = api
        self._metrics = metrics
        self._last: dict[str, asyncio.Future[None]] = {}
        self._patches: dict[str, StatusPatch] = {}
        self._sending: dict[str, StatusPatch] = {}
        self._group_conditions: dict[str, Condition] = {}
        """By the UID of the group, the condition that waits or is being written."""
        self._object_patches: dict[tuple[str, str], QueuedPatch] = {}
        """By the UID of the object and the subresource."""
        self._logged: set[tuple[type, str, type]] = set()
        """Kinds, subresources and failures that were logged and have persisted since."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting: Counter[str] = Counter()
        """Number of writes that wait for earlier ones about the same pod, by kind."""
        # Writes of plugins that need no order.
        self.update_volume = api.update_volume
        self.update_claim = api.update_claim
        self.get_resource_claim = api.get_resource_claim
        self.create_resource_claim = api.create_resource_claim
        self.update_resource_claim = api.update_resource_claim
        self.update_resource_claim_status = api.update_resource_claim_status
        self.unreserve_resource_claim = api.unreserve_resource_claim
        self.delete_resource_claim = api.delete_resource_claim
        metrics.pending_async_api_calls.watch(lambda: {(kind,): count for kind, count in self.waiting.items()})

    def __len__(self) -> int:
        """Return the number of background writes that have not ended."""
        return len(self._tasks)

    def bind(self, pod: Pod, node: str) -> Coroutine[Any, Any, None]:
        """Bind a pod. A failure that remains is raised, and the pod goes back to the queue."""
        bind = partial(self._api.bind, pod, node)
        return self._in_order(BINDING, pod.metadata.uid, _with_retries, bind, BIND_PAUSES, _did_nothing)

    def patch_status(
        self,
        pod: Pod,
        condition: PodCondition | None = None,
        nominated_node: str | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Patch a pod's status in the background; `done` is called when the write has ended or was merged."""
        uid = pod.metadata.uid
        # The patch is computed against the status that the server will have by then.
        patch = StatusPatch(_patched(self._sending.get(uid), pod), condition, nominated_node)
        waiting = self._patches.get(uid)
        if waiting is not None:
            waiting.merge(patch)
            if done is not None:
                done()
            return
        self._patches[uid] = patch
        send = partial(self._in_order, STATUS_PATCH, uid, self._send_patch, uid)
        self._spawn(self._log_failure(STATUS_PATCH, send, done, pod=pod.key))

    def expected(self, pod: Pod) -> Pod:
        """Return the pod with all waiting and running status patches applied."""
        uid = pod.metadata.uid
        return _patched(self._patches.get(uid), _patched(self._sending.get(uid), pod))

    def patch_group_status(self, group: PodGroup, condition: Condition) -> None:
        """Write a condition to a group's status in the background."""
        is_waiting = group.metadata.uid in self._group_conditions
        self._group_conditions[group.metadata.uid] = condition
        if not is_waiting:
            self._spawn(self._log_failure(GROUP_STATUS_PATCH, partial(self._patch_group, group), podGroup=group.key))

    def expected_group(self, group: PodGroup) -> PodGroup:
        """Return the group with its waiting or running condition applied."""
        condition = self._group_conditions.get(group.metadata.uid)
        if condition is None:
            return group
        return replace(
            group, status=replace(group.status, conditions=with_condition(group.status.conditions, condition))
        )

    async def _patch_group(self, group: PodGroup) -> None:
        uid, written = group.metadata.uid, None
        try:
            # A condition that replaces this one in the meantime is written next.
            while (condition := self._group_conditions[uid]) is not written:
                write = self._api.patch_pod_group_status
                send = partial(write, group, condition)
                await self._in_order(GROUP_STATUS_PATCH, uid, _with_retries, send, PAUSES, _patch_may_succeed_later)
                written = condition
        finally:
            del self._group_conditions[uid]

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        uid = pod.metadata.uid
        await self._in_order(STATUS_PATCH, uid, self._api.set_extended_resource_claim, pod, status)

    def write_aside(self, pod: Pod, call: Callable[[], Awaitable[Any]], done: Callable[[], None] | None = None) -> None:
        """Call an API in the background, about a pod but not in order with its other writes; then call `done`."""
        self._spawn(self._log_failure(ASIDE, partial(_with_retries, call), done, pod=pod.key))

    def enqueue_patch(
        self, obj: Any, changes: dict[str, Any], subresource: str, is_current: Callable[[], bool]
    ) -> None:
        """Patch an object in the background, together with its waiting patch, if there is one."""
        key = obj.metadata.uid, subresource
        queued = self._object_patches.get(key)
        if queued is None:
            self._object_patches[key] = QueuedPatch(obj, subresource, changes, is_current)
            self._spawn(self._write_object(key))
        else:
            queued.obj, queued.changes = obj, _combined(queued.changes, changes)

    async def patch_object(self, obj: T, changes: dict[str, Any], subresource: str) -> T:
        patch = partial(self._api.patch_object, obj, changes, subresource)
        uid: str = obj.metadata.uid  # type: ignore[attr-defined]
        return await self._in_order(OBJECT_PATCH, uid, _with_retries, patch)

    async def _write_object(self, key: tuple[str, str]) -> None:
        queued, written = self._object_patches[key], None
        kind = type(queued.obj)

        def may_succeed(error: CallError) -> bool:
            # The server may be ahead of the watch, or in the middle of another update.
            is_outdated = isinstance(error, ConflictError | NotFoundError)
            return isinstance(error, RETRIABLE) or (is_outdated and queued.is_current())

        try:
            # Changes that are added in the meantime are written next.
            while queued.changes is not written and queued.is_current():
                send = partial(self._send_object_patch, queued)
                written = await self._in_order(OBJECT_PATCH, key[0], _with_retries, send, PAUSES, may_succeed)
                self._logged = {one for one in self._logged if one[:2] != (kind, key[1])}
        except LeaseLostError:
            # The leader writes.
            pass
        except Exception as error:
            if queued.is_current() and (kind, key[1], type(error)) not in self._logged:
                self._logged.add((kind, key[1], type(error)))
                self._log_object_failure(queued, error)
        finally:
            del self._object_patches[key]

    async def _send_object_patch(self, queued: QueuedPatch) -> dict[str, Any]:
        """Write the latest changes, and return them."""
        changes = queued.changes
        await self._api.patch_object(queued.obj, changes, queued.subresource)
        return changes

    def _log_object_failure(self, queued: QueuedPatch, error: Exception) -> None:
        resource: CustomResource | None = resource_of(type(queued.obj))
        assert resource is not None
        name = f"{resource.plural}/{queued.subresource}" if queued.subresource else resource.plural
        missing = rule_text(resource.group, (name,), ("patch",)) if isinstance(error, ForbiddenError) else None
        log.error(
            "Objects of a plugin cannot be written; not logged again until a write succeeds",
            err=error,
            resource=f"{name}.{resource.group}",
            object=key_of(queued.obj),
            **({} if missing is None else {"missing_rule": missing}),
        )

    async def evict(self, pod: Pod, condition: PodCondition | None) -> bool:
        """Write a condition to a pod's status and delete the pod; return False if it was gone already."""
        try:
            await self._in_order(DELETION, pod.metadata.uid, self._delete, pod, condition)
        except NotFoundError:
            return False
        return True

    async def _delete(self, pod: Pod, condition: PodCondition | None) -> None:
        if condition is not None:
            write = partial(self._api.patch_pod_status, pod, condition=condition)
            await _with_retries(write, PAUSES, _patch_may_succeed_later)
        await _with_retries(partial(self._api.delete_pod, pod))

    async def _log_failure(
        self, kind: str, write: Callable[[], Awaitable[Any]], done: Callable[[], None] | None = None, **subject: str
    ) -> None:
        """Run a background write, log its failure, and call `done` when it has ended."""
        try:
            await write()
        except NotFoundError:
            # The object was deleted, so there is nothing left to write.
            pass
        except Exception as error:
            log.error("API call failed", err=error, call=kind, **subject)
        finally:
            if done is not None:
                done()

    async def _send_patch(self, uid: str) -> None:
        # Patches that come from now on are sent separately.
        patch = self._sending[uid] = self._patches.pop(uid)
        try:
            write = self._api.patch_pod_status
            send = partial(write, patch.pod, condition=patch.condition, nominated_node=patch.nominated_node)
            await _with_retries(send, PAUSES, _patch_may_succeed_later)
        finally:
            del self._sending[uid]

    async def _in_order(self, kind: str, uid: str, call: Callable[P, Awaitable[T]], *args: P.args, **kw: P.kwargs) -> T:
        """Call after the earlier writes about the same pod have ended; record the duration of the call."""
        loop, previous = asyncio.get_running_loop(), self._last.get(uid)
        self._last[uid] = done = loop.create_future()
        try:
            if previous is not None:
                await self._wait_for(kind, previous)
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

    async def _wait_for(self, kind: str, previous: asyncio.Future[None]) -> None:
        self.waiting[kind] += 1
        try:
            await asyncio.wait((previous,))
        finally:
            self.waiting[kind] -= 1

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until all background writes have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def _may_succeed_later(error: CallError) -> bool:
    return isinstance(error, RETRIABLE)


def _patch_may_succeed_later(error: CallError) -> bool:
    """Return whether to repeat a status patch: servers give up after several conflicts with concurrent updates."""
    return isinstance(error, (*RETRIABLE, ConflictError))


def _did_nothing(error: CallError) -> bool:
    """Return whether the server failed before it acted on a request, as far as that is known."""
    return isinstance(error, ConnectError | ServerFailedError) and not isinstance(error, ServerTimedOutError)


async def _with_retries(
    call: Callable[[], Awaitable[T]],
    pauses: Sequence[float] = PAUSES,
    is_retriable: Callable[[CallError], bool] = _may_succeed_later,
) -> T:
    """Repeat a call after each of the pauses, or later if the server asks for it, while its failure is retriable."""
    for pause in pauses:
        try:
            return await call()
        except CallError as error:
            if not is_retriable(error):
                raise
            await asyncio.sleep(max(pause, error.retry_after or 0.0))
    return await call()


def _combined(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """Return one merge patch for two in sequence."""
    combined = dict(older)
    for name, value in newer.items():
        before = combined.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _combined(before, value)
        combined[name] = value
    return combined


def _patched(patch: StatusPatch | None, pod: Pod) -> Pod:
    return pod if patch is None else patch.applied(pod)
