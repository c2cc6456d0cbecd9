"""The binding of one placed pod: permission, PreBind, Bind, PostBind. Runs as a task beside later cycles."""

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from kubestow.binding.dispatcher import Dispatcher
from kubestow.binding.waiting import WaitingPods
from kubestow.cluster.gate import Gate
from kubestow.cycle.outcome import Failed, Placed
from kubestow.cycle.scheduling import refusal
from kubestow.framework.caller import Caller
from kubestow.framework.hook import Hook
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Rejection, Skip
from kubestow.model.failures import CallError
from kubestow.queue.queued_pod import QueuedPod
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

if TYPE_CHECKING:
    from kubestow.extenders.binding import ExtenderBinding

ANNOUNCED_AT_A_TIME = 32
"""Of so many pods at a time it is being told where they are going."""


class Attempt(msgspec.Struct, frozen=True):
    """One try at scheduling a pod, from the moment it left the queue."""

    queued: QueuedPod
    profile: Profile
    started: float
    """On the stopwatch."""


class BindingObserver(Protocol):
    """Is told how bindings end. Exactly one is called for each."""

    def bound(self, attempt: Attempt, placed: Placed) -> None: ...

    def binding_failed(self, attempt: Attempt, placed: Placed, failed: Failed) -> None: ...


Step = tuple[str, str, float, float, bool]
"""A step of a binding: its name, the plugin, from when to when on the stopwatch, and whether the pod is bound now."""


class Binder:
    """Binds placed pods."""

    step: Callable[[Placed, Step], None] | None = None
    """Is told that a step is over."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        waiting: WaitingPods,
        observer: BindingObserver,
        free_events: Callable[[str], None],
        metrics: SchedulerMetrics,
        stopwatch: Callable[[], float],
        gate: Gate,
        *,
        announces_expectation: bool,
    ) -> None:
        self._dispatcher = dispatcher
        self._waiting = waiting
        self._observer = observer
        self._free_events = free_events
        self._metrics = metrics
        self._stopwatch = stopwatch
        self._gate = gate
        self._announces_expectation = announces_expectation
        self._announcing = asyncio.Semaphore(ANNOUNCED_AT_A_TIME)
        self.extender_binding: ExtenderBinding | None = None
        """For the pods that start from now on."""
        self._tasks: dict[str, asyncio.Task[Failed | None]] = {}
        self._pre_binding: set[str] = set()
        self._preempted: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, attempt: Attempt, placed: Placed) -> None:
        """Bind a pod; the observer is told how it ends."""
        if placed.waits:
            # At once, so that plugins can find it before the task first runs.
            self._waiting.add(placed.pod, placed.node, placed.waits)
        task = asyncio.get_running_loop().create_task(self._bind(attempt.profile, placed, self.extender_binding))
        self._tasks[placed.pod.uid] = task
        task.add_done_callback(partial(self._ended, attempt, placed))

    def pods(self) -> Collection[str]:
        """Uids of the pods that are on their way to a node, or wait for permission."""
        return self._tasks.keys()

    def _ended(self, attempt: Attempt, placed: Placed, task: asyncio.Task[Failed | None]) -> None:
        # Even a task that was cancelled before it began comes by here, so that no pod is lost.
        if self._gate.is_closed:
            self._gate.hold(self._ended, attempt, placed, task)
            return
        del self._tasks[placed.pod.uid]
        self._waiting.remove(placed.pod.uid)
        failed = _failure_of(task)
        if failed is None:
            self._observer.bound(attempt, placed)
            self._post_bind(attempt.profile, placed)
        else:
            self._observer.binding_failed(attempt, placed, failed)

    async def _bind(
        self, profile: Profile, placed: Placed, extender_binding: "ExtenderBinding | None"
    ) -> Failed | None:
        pod, node = placed.pod, placed.node
        to_prepare = _needed(profile, placed) if profile.pre_bind else ()
        if placed.waits:
            await self._announce(placed)
            refused = await self._permission(placed)
            if refused is not None:
                return refusal(refused)
        # From here on a failure is nothing to wait for an event for: the pod is retried whatever happens meanwhile.
        self._free_events(pod.uid)
        if to_prepare:
            refused = await self._pre_bind(profile, to_prepare, placed)
            if refused is not None:
                return Failed(refused.code, refused.message)
        if extender_binding is not None:
            start = self._stopwatch()
            if await extender_binding(pod.pod, node):
                self._tell(placed, "Extender", "", start, is_bound=True)
                return None
        return await self._bind_plugins(profile, placed)

    async def _announce(self, placed: Placed) -> None:
        """Let others (an autoscaler, say) know where a pod is going while it takes its time.

        So many at a time: the first pods of a burst are to be bound before all the others have been told of.
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
        self._tell(placed, "WaitOnPermit", "" if answer is None else answer.plugin, start)
        return answer

    def _tell(self, placed: Placed, step: str, plugin: str, start: float, *, is_bound: bool = False) -> None:
        if self.step is not None:
            self.step(placed, (step, plugin, start, self._stopwatch(), is_bound))

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
                    self._tell(placed, "PreBind", hook.name, began)
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
            end = caller.finished("Bind", status, start)
            if self.step is not None:
                self.step(placed, ("Bind", by, start, end, status is Code.SUCCESS))
        return Failed(Code.ERROR, f"every bind plugin left pod {placed.pod.key} to another one")

    def _post_bind(self, profile: Profile, placed: Placed) -> None:
        if not profile.post_bind:
            return
        caller, start = profile.caller, profile.caller.started()
        for hook in profile.post_bind:
            try:
                caller.call(hook, placed.states.get(hook.name), placed.pod, placed.node)
            except PluginError as error:
                # The pod is bound: all there is to do is to tell the others too.
                caller.failed(error)
        caller.finished("PostBind", Code.SUCCESS, start)
        self._tell(placed, "PostBind", "", start, is_bound=True)

    async def drain(self, seconds: float | None = None) -> bool:
        """Wait until all bindings have ended, at most so long; False if some have not."""
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
    # What the API server refuses, or does not answer, is no fault of the plugin that asked.
    is_own = not isinstance(error.__cause__, CallError)
    failing = error.plugin if isinstance(error, PluginError) and is_own else ""
    return Failed(Code.ERROR, str(error), failing_plugin=failing)
