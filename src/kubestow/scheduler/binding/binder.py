"""The binding of one placed pod: permission, PreBind, Bind, PostBind.

Each binding is a task of its own, so later scheduling cycles run in the meantime.
"""

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from kubestow.api.failures import CallError, ConflictError
from kubestow.scheduler.binding.dispatcher import Dispatcher
from kubestow.scheduler.binding.waiting import WaitingPods
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.outcome import Failed, Placed, failed_by, refusal
from kubestow.scheduler.extenders.configured import ConfiguredExtenders
from kubestow.scheduler.framework.caller import Caller
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection, Skip
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

if TYPE_CHECKING:
    from kubestow.scheduler.extenders.protocol import Extenders

ANNOUNCEMENTS = 32
"""Maximum number of pods whose expected node is being written to their status at the same time."""

FAILED = "Failed"
"""The name of the last step of a binding that failed."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt to schedule a pod, from the time it left the queue."""

    queued: QueuedPod
    info: PodInfo
    """The version of the pod that is scheduled; `queued` may be updated in the meantime."""
    profile: Profile
    started: float
    """Stopwatch time."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A finished step of a binding."""

    name: str
    """`WaitOnPermit`, `PreBind`, `Bind`, `PostBind`, `Extender`, or `Failed`."""
    plugin: str
    started: float
    """Stopwatch time, like `ended`."""
    ended: float
    is_bound: bool = False
    """Whether the pod is bound after this step."""
    failed: Failed | None = None
    """Why the binding failed; set in the step `Failed` only."""


class BindingListener(Protocol):
    """Handles the end of bindings. Exactly one of the methods is called for each binding."""

    def on_bound(self, attempt: Attempt, placed: Placed) -> None: ...

    def on_binding_failed(self, attempt: Attempt, placed: Placed, failed: Failed) -> None: ...


class Binder:
    """Binds placed pods."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        waiting: WaitingPods,
        stop_recording_events: Callable[[str], None],
        extenders: ConfiguredExtenders,
        on_step: Callable[[Placed, Step], None],
        metrics: SchedulerMetrics,
        stopwatch: Callable[[], float],
        gate: Gate,
        announces_expected_node: bool,
    ) -> None:
        """`stop_recording_events` is called with the UID of a pod once events can no longer affect its attempt.

        With `announces_expected_node`, the node of a pod that waits or has a PreBind to run is written to its status.
        """
        self._dispatcher = dispatcher
        self._waiting = waiting
        self._stop_recording_events = stop_recording_events
        self._extenders = extenders
        self._on_step = on_step
        self._metrics = metrics
        self._stopwatch = stopwatch
        self._gate = gate
        self._announces_expected_node = announces_expected_node
        self._announcing = asyncio.Semaphore(ANNOUNCEMENTS)
        self._tasks: dict[str, asyncio.Task[Failed | None]] = {}
        self._pre_binding: set[str] = set()
        self._preempted: dict[str, str] = {}
        metrics.goroutines.track(lambda: len(self), "binding")

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, attempt: Attempt, placed: Placed, listener: BindingListener) -> None:
        """Start to bind a pod; `listener` is called when the binding ends."""
        if placed.waits:
            # Not in the task, so that plugins find the pod before the task runs for the first time.
            self._waiting.add(placed.pod, placed.node, placed.waits)
        task = asyncio.get_running_loop().create_task(self._bind(attempt.profile, placed, self._extenders.current))
        self._tasks[placed.pod.uid] = task
        task.add_done_callback(partial(self._on_task_done, attempt, placed, listener))

    def pods(self) -> Collection[str]:
        """Return the UIDs of the pods that are being bound or wait for permission."""
        return self._tasks.keys()

    def _on_task_done(
        self, attempt: Attempt, placed: Placed, listener: BindingListener, task: asyncio.Task[Failed | None]
    ) -> None:
        # A task that is cancelled before it starts ends here, too, so no pod is lost.
        if self._gate.is_closed:
            self._gate.defer(self._on_task_done, attempt, placed, listener, task)
            return
        del self._tasks[placed.pod.uid]
        self._waiting.remove(placed.pod.uid)
        failed = _failure_of(task)
        if failed is None:
            listener.on_bound(attempt, placed)
            self._post_bind(attempt.profile, placed)
        else:
            listener.on_binding_failed(attempt, placed, failed)

    async def _bind(self, profile: Profile, placed: Placed, extenders: "Extenders | None") -> Failed | None:
        pod, node = placed.pod, placed.node
        pre_bind_hooks = _needed_pre_bind_hooks(profile, placed) if profile.pre_bind else ()
        if placed.waits:
            await self._announce(placed)
            refused = await self._wait_for_permission(placed)
            if refused is not None:
                return refusal(refused, placed.searched)
        # From here on a failure names no plugins, so the pod is retried after a backoff, without waiting for an event.
        self._stop_recording_events(pod.uid)
        if pre_bind_hooks:
            refused = await self._pre_bind(profile, pre_bind_hooks, placed)
            if refused is not None:
                return Failed(refused.code, refused.message)
        if extenders is not None:
            start = self._stopwatch()
            if await extenders.bind(pod.pod, node, self._extenders.ask):
                self._report_step(placed, "Extender", "", start, is_bound=True)
                return None
        return await self._bind_plugins(profile, placed)

    async def _announce(self, placed: Placed) -> None:
        """Write the expected node to the pod's status, for components such as the cluster autoscaler.

        The number of concurrent writes is limited, so the first pods of a burst are bound before all are announced.
        """
        if self._announces_expected_node:
            await self._announcing.acquire()
            self._dispatcher.patch_status(placed.pod.pod, nominated_node=placed.node, done=self._announcing.release)
            # Let the dispatcher send this patch before the requests of PreBind plugins.
            await asyncio.sleep(0)

    async def _wait_for_permission(self, placed: Placed) -> Rejection | None:
        uid = placed.pod.uid
        waiting = self._waiting.get(uid)
        assert waiting is not None
        start = self._stopwatch()
        try:
            answer = await waiting.answer()
        finally:
            self._waiting.remove(uid)
        code = Code.SUCCESS if answer is None else answer.code
        self._metrics.permit_wait_seconds.observe(self._stopwatch() - start, code.label)
        self._report_step(placed, "WaitOnPermit", "" if answer is None else answer.plugin, start)
        return answer

    def _report_step(self, placed: Placed, name: str, plugin: str, started: float, *, is_bound: bool = False) -> None:
        self._on_step(placed, Step(name, plugin, started, self._stopwatch(), is_bound))

    async def _pre_bind(self, profile: Profile, hooks: Collection[Hook], placed: Placed) -> Rejection | None:
        uid, refused, preempted = placed.pod.uid, None, None
        self._pre_binding.add(uid)
        try:
            if not placed.waits:
                await self._announce(placed)
            refused = await self._run_pre_bind(profile, hooks, placed)
        except asyncio.CancelledError:
            if uid not in self._preempted:
                raise
        finally:
            self._pre_binding.discard(uid)
            preempted = self._preempted.pop(uid, None)
            if preempted is not None:
                self._tasks[uid].uncancel()
        # The pod is preempted even if the plugin finished in spite of the cancellation.
        return refused if preempted is None else Rejection((preempted,), Code.ERROR)

    async def _run_pre_bind(self, profile: Profile, hooks: Collection[Hook], placed: Placed) -> Rejection | None:
        caller, start, status = profile.caller, profile.caller.started(), Code.ERROR
        try:
            for hook in hooks:
                began = self._stopwatch()
                try:
                    refused = await caller.call_async(hook, placed.states.get(hook.name), placed.pod, placed.node)
                except asyncio.CancelledError:
                    if placed.pod.uid in self._preempted:
                        raise PluginError(hook.name, "PreBind", self._preempted[placed.pod.uid]) from None
                    raise
                finally:
                    self._report_step(placed, "PreBind", hook.name, began)
                if refused is not None:
                    status = refused.code
                    return refused  # type: ignore[no-any-return]
            status = Code.SUCCESS
        finally:
            caller.record_point("PreBind", status, start)
        return None

    def cancel_pre_bind(self, uid: str, message: str) -> bool:
        """Cancel the PreBind of a pod; return False if it is not running."""
        if uid not in self._pre_binding:
            return False
        self._preempted[uid] = message
        return self._tasks[uid].cancel()

    async def _bind_plugins(self, profile: Profile, placed: Placed) -> Failed | None:
        caller, start, status, plugin = profile.caller, profile.caller.started(), Code.ERROR, ""
        try:
            for hook in profile.bind:
                plugin = hook.name
                answer = await caller.call_async(hook, placed.pod, placed.node)
                if not isinstance(answer, Skip):
                    status = Code.SUCCESS
                    return None
            status = Code.SKIP
        finally:
            ended = caller.record_point("Bind", status, start)
            self._on_step(placed, Step("Bind", plugin, start, ended, status is Code.SUCCESS))
        return Failed(Code.ERROR, f"every bind plugin skipped pod {placed.pod.key}")

    def _post_bind(self, profile: Profile, placed: Placed) -> None:
        if not profile.post_bind:
            return
        caller, start = profile.caller, profile.caller.started()
        for hook in profile.post_bind:
            try:
                caller.call(hook, placed.states.get(hook.name), placed.pod, placed.node)
            except PluginError as error:
                # The pod is bound in any case, so call the other plugins, too.
                caller.log_failure(error)
        caller.record_point("PostBind", Code.SUCCESS, start)
        self._report_step(placed, "PostBind", "", start, is_bound=True)

    async def drain(self, seconds: float | None = None) -> bool:
        """Wait until all bindings have ended, for at most `seconds`; return False if some have not."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        return not self._tasks

    def cancel_remaining(self) -> None:
        """Cancel the remaining bindings; their pods go back to the queue."""
        for task in self._tasks.values():
            task.cancel()


def _needed_pre_bind_hooks(profile: Profile, placed: Placed) -> list[Hook]:
    """Return the PreBind hooks that have work to do for the pod."""
    caller, start, status = profile.caller, profile.caller.started(), Code.ERROR
    try:
        needed = [
            hook
            for hook in profile.pre_bind
            if not (hook.needs_state and hook.name not in placed.states) and _is_needed(caller, hook, placed)
        ]
        status = Code.SUCCESS if needed else Code.SKIP
    finally:
        caller.record_point("PreBindPreFlight", status, start)
    return needed


def _is_needed(caller: Caller, hook: Hook, placed: Placed) -> bool:
    assert hook.pre_bind_needed is not None
    state = placed.states.get(hook.name)
    return bool(caller.call(hook.pre_bind_needed, state, placed.pod, placed.node))


def _failure_of(task: asyncio.Task[Failed | None]) -> Failed | None:
    if task.cancelled():
        return Failed(Code.ERROR, "the scheduler is stopping")
    error = task.exception()
    if error is None:
        return task.result()
    cause = error.__cause__
    # A plugin is not to blame for a request that the API server rejects or does not answer.
    if isinstance(error, PluginError) and not isinstance(cause, CallError):
        return failed_by(error, None)
    return Failed(Code.ERROR, str(error), is_conflict=isinstance(cause, ConflictError))
