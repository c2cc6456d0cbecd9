"""The binding of one placed pod: permission, PreBind, Bind, PostBind. Runs as a task beside later cycles."""

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from kubestow.binding.dispatcher import Dispatcher
from kubestow.binding.waiting import WaitingPods
from kubestow.cluster.gate import Gate
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.outcome import Failed, Placed, refusal
from kubestow.extenders.configured import ConfiguredExtenders
from kubestow.framework.caller import Caller
from kubestow.framework.hook import Hook
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Rejection, Skip
from kubestow.model.failures import CallError, ConflictError
from kubestow.queue.queued_pod import QueuedPod
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

if TYPE_CHECKING:
    from kubestow.extenders.binding import ExtenderBinding

ANNOUNCEMENTS = 32
"""Maximum number of pods whose expected node is being written to their status at a time."""

FAILED = "Failed"
"""The name of the step that ends a binding without a bound pod."""


class Attempt(msgspec.Struct, frozen=True):
    """One try at scheduling a pod, from the moment it left the queue."""

    queued: QueuedPod
    info: PodInfo
    """The pod as it is scheduled; `queued` may get a newer version."""
    profile: Profile
    started: float
    """On the stopwatch."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A step of a binding that is over."""

    name: str
    """`WaitOnPermit`, `PreBind`, `Bind`, `PostBind`, `Extender`, or `Failed`."""
    plugin: str
    started: float
    """On the stopwatch, as `ended`."""
    ended: float
    is_bound: bool = False
    """Whether the pod is bound now."""
    failed: Failed | None = None
    """Why the pod will not be bound."""


class BindingEnd(Protocol):
    """Takes over when a binding ends. Exactly one of the methods is called for each binding."""

    def bound(self, attempt: Attempt, placed: Placed) -> None: ...

    def binding_failed(self, attempt: Attempt, placed: Placed, failed: Failed) -> None: ...


class Binder:
    """Binds placed pods."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        waiting: WaitingPods,
        free_events: Callable[[str], None],
        extenders: ConfiguredExtenders,
        on_step: Callable[[Placed, Step], None],
        metrics: SchedulerMetrics,
        stopwatch: Callable[[], float],
        gate: Gate,
        announces_expectation: bool,
    ) -> None:
        """`free_events` is called with the UID of a pod that no event can help any more."""
        self._dispatcher = dispatcher
        self._waiting = waiting
        self._free_events = free_events
        self._extenders = extenders
        self._on_step = on_step
        self._metrics = metrics
        self._stopwatch = stopwatch
        self._gate = gate
        self._announces_expectation = announces_expectation
        self._announcing = asyncio.Semaphore(ANNOUNCEMENTS)
        self._tasks: dict[str, asyncio.Task[Failed | None]] = {}
        self._pre_binding: set[str] = set()
        self._preempted: dict[str, str] = {}
        metrics.goroutines.track(lambda: len(self), "binding")

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, attempt: Attempt, placed: Placed, end: BindingEnd) -> None:
        """Bind a pod beside later cycles; `end` is told how it ends."""
        if placed.waits:
            # At once, so that plugins can find it before the task first runs.
            self._waiting.add(placed.pod, placed.node, placed.waits)
        task = asyncio.get_running_loop().create_task(self._bind(attempt.profile, placed, self._extenders.binding))
        self._tasks[placed.pod.uid] = task
        task.add_done_callback(partial(self._ended, attempt, placed, end))

    def pods(self) -> Collection[str]:
        """Uids of the pods that are on their way to a node, or wait for permission."""
        return self._tasks.keys()

    def _ended(self, attempt: Attempt, placed: Placed, end: BindingEnd, task: asyncio.Task[Failed | None]) -> None:
        # Even a task that was cancelled before it began ends here, so that no pod is lost.
        if self._gate.is_closed:
            self._gate.hold(self._ended, attempt, placed, end, task)
            return
        del self._tasks[placed.pod.uid]
        self._waiting.remove(placed.pod.uid)
        failed = _failure_of(task)
        if failed is None:
            end.bound(attempt, placed)
            self._post_bind(attempt.profile, placed)
        else:
            end.binding_failed(attempt, placed, failed)

    async def _bind(
        self, profile: Profile, placed: Placed, extender_binding: "ExtenderBinding | None"
    ) -> Failed | None:
        pod, node = placed.pod, placed.node
        to_prepare = _needed(profile, placed) if profile.pre_bind else ()
        if placed.waits:
            await self._announce(placed)
            refused = await self._permission(placed)
            if refused is not None:
                return refusal(refused, placed.searched)
        # From here on a failure is nothing to wait for an event for: the pod is retried whatever happens meanwhile.
        self._free_events(pod.uid)
        if to_prepare:
            refused = await self._pre_bind(profile, to_prepare, placed)
            if refused is not None:
                return Failed(refused.code, refused.message)
        if extender_binding is not None:
            start = self._stopwatch()
            if await extender_binding(pod.pod, node):
                self._report(placed, "Extender", "", start, is_bound=True)
                return None
        return await self._bind_plugins(profile, placed)

    async def _announce(self, placed: Placed) -> None:
        """Write the expected node to the pod's status, for others such as an autoscaler.

        A limited number at a time, so that the first pods of a burst are bound before all the others are announced.
        """
        if self._announces_expectation:
            await self._announcing.acquire()
            self._dispatcher.patch_status(placed.pod.pod, nominated_node=placed.node, done=self._announcing.release)
            # That is sent before what is prepared.
            await asyncio.sleep(0)

    async def _permission(self, placed: Placed) -> Rejection | None:
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
        self._report(placed, "WaitOnPermit", "" if answer is None else answer.plugin, start)
        return answer

    def _report(self, placed: Placed, name: str, plugin: str, started: float, *, is_bound: bool = False) -> None:
        self._on_step(placed, Step(name, plugin, started, self._stopwatch(), is_bound))

    async def _pre_bind(self, profile: Profile, to_prepare: Collection[Hook], placed: Placed) -> Rejection | None:
        uid, refused, preempted = placed.pod.uid, None, None
        self._pre_binding.add(uid)
        try:
            if not placed.waits:
                await self._announce(placed)
            refused = await self._run_pre_bind(profile, to_prepare, placed)
        except asyncio.CancelledError:
            if uid not in self._preempted:
                raise
        finally:
            self._pre_binding.discard(uid)
            preempted = self._preempted.pop(uid, None)
            if preempted is not None:
                self._tasks[uid].uncancel()
        # A plugin may have finished in spite of having been stopped; its pod has lost its place all the same.
        return refused if preempted is None else Rejection((preempted,), Code.ERROR)

    async def _run_pre_bind(self, profile: Profile, to_prepare: Collection[Hook], placed: Placed) -> Rejection | None:
        caller, start, status = profile.caller, profile.caller.started(), Code.ERROR
        try:
            for hook in to_prepare:
                began = self._stopwatch()
                try:
                    refused = await caller.call_async(hook, placed.states.get(hook.name), placed.pod, placed.node)
                except asyncio.CancelledError:
                    if placed.pod.uid in self._preempted:
                        raise PluginError(hook.name, "PreBind", self._preempted[placed.pod.uid]) from None
                    raise
                finally:
                    self._report(placed, "PreBind", hook.name, began)
                if refused is not None:
                    status = refused.code
                    return refused  # type: ignore[no-any-return]
            status = Code.SUCCESS
        finally:
            caller.finished("PreBind", status, start)
        return None

    def cancel_pre_bind(self, uid: str, message: str) -> bool:
        """Stop a pod whose PreBind runs; False if there is none, or it is too late."""
        if uid not in self._pre_binding:
            return False
        self._preempted[uid] = message
        return self._tasks[uid].cancel()

    async def _bind_plugins(self, profile: Profile, placed: Placed) -> Failed | None:
        caller, start, status, by = profile.caller, profile.caller.started(), Code.ERROR, ""
        try:
            for hook in profile.bind:
                by = hook.name
                answer = await caller.call_async(hook, placed.pod, placed.node)
                if not isinstance(answer, Skip):
                    status = Code.SUCCESS
                    return None
            status = Code.SKIP
        finally:
            ended = caller.finished("Bind", status, start)
            self._on_step(placed, Step("Bind", by, start, ended, status is Code.SUCCESS))
        return Failed(Code.ERROR, f"every bind plugin left pod {placed.pod.key} to another one")

    def _post_bind(self, profile: Profile, placed: Placed) -> None:
        if not profile.post_bind:
            return
        caller, start = profile.caller, profile.caller.started()
        for hook in profile.post_bind:
            try:
                caller.call(hook, placed.states.get(hook.name), placed.pod, placed.node)
            except PluginError as error:
                # The pod is bound all the same: call the other plugins, too.
                caller.failed(error)
        caller.finished("PostBind", Code.SUCCESS, start)
        self._report(placed, "PostBind", "", start, is_bound=True)

    async def drain(self, seconds: float | None = None) -> bool:
        """Wait until all bindings have ended, at most `seconds`; False if some have not."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        return not self._tasks

    def abandon(self) -> None:
        """Stop what is left; those pods go back to the queue."""
        for task in self._tasks.values():
            task.cancel()


def _needed(profile: Profile, placed: Placed) -> list[Hook]:
    """The plugins that have something to do before the pod is bound."""
    caller, start, status = profile.caller, profile.caller.started(), Code.ERROR
    try:
        needed = [
            hook
            for hook in profile.pre_bind
            if not (hook.needs_state and hook.name not in placed.states) and _is_needed(caller, hook, placed)
        ]
        status = Code.SUCCESS if needed else Code.SKIP
    finally:
        caller.finished("PreBindPreFlight", status, start)
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
    # What the API server refuses, or does not answer, is no fault of the plugin that asked.
    failing = error.plugin if isinstance(error, PluginError) and not isinstance(cause, CallError) else ""
    return Failed(Code.ERROR, str(error), failing_plugin=failing, is_conflict=isinstance(cause, ConflictError))
