"""The scheduling loop: pods leave the queue one by one, and each goes through one scheduling cycle.

    queue -> cycle -> attempts.conclude -> binding (beside later cycles), or back to the queue

Everything here runs on one event loop, and a cycle is synchronous code, so there are no locks and no snapshots. Only a
cycle that has to call extenders is paused until they have answered; the gate holds back changes of the cluster then.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from kubestow.clock import Clock
from kubestow.scheduler.attempts import Attempts
from kubestow.scheduler.binding.binder import Binder
from kubestow.scheduler.binding.evictions import Evictions
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.extenders.extender import Call, CallExtenders, Conversation, PausedConversation, run_until_calls
from kubestow.scheduler.queue.queued_group import QueuedGroup
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_CYCLES_PER_TURN = 32
"""Maximum number of cycles per event-loop turn; only the cycle of a pod group may exceed it."""


class GroupScheduling(Protocol):
    """Schedules pods that belong together."""

    def schedule(self, popped: QueuedGroup) -> Conversation[None]:
        """Schedule a popped group; yield the calls to extenders."""
        ...


class Scheduler:
    """Schedules the pods in the queue."""

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        cycles: SchedulingCycles,
        attempts: Attempts,
        groups: GroupScheduling | None,
        binder: Binder,
        evictions: Evictions,
        work_arrived: asyncio.Event,
        gate: Gate,
        ask: CallExtenders,
        metrics: SchedulerMetrics,
        clock: Clock,
        stopwatch: Callable[[], float],
    ) -> None:
        """`groups` is required for a queue with pod groups."""
        self.binder = binder
        self.evictions = evictions
        self.attempts = attempts
        self._queue = queue
        self._cycles = cycles
        self._groups = groups
        self._work_arrived = work_arrived
        self._gate = gate
        self._ask = ask
        self._metrics = metrics
        self._clock = clock
        self._stopwatch = stopwatch
        self._paused: PausedConversation[None] | None = None
        metrics.goroutines.track(lambda: sum(call.prioritizes for call in self.calls), "prioritizing_extender")

    async def run(self) -> None:
        """Schedule until cancelled."""
        while True:
            self._queue.flush_backoff()
            self._queue.flush_unschedulable()
            limit = self.attempts.count + _CYCLES_PER_TURN
            while self.attempts.count < limit and self.schedule_one():
                if self._paused is not None:
                    await self._call_extenders()
            if self._queue.has_work:
                await asyncio.sleep(0)
            else:
                await self._wait_for_work()

    def schedule_one(self) -> bool:
        """Schedule the next pod in the queue, or its group; return False if there is none.

        A cycle that has to call extenders is left paused; `run` resumes it.
        """
        queued = self._queue.pop()
        if queued is None:
            return False
        if isinstance(queued, QueuedGroup):
            assert self._groups is not None, "a queue without groups has no queued groups"
            self._paused = run_until_calls(self._groups.schedule(queued))
        else:
            self._paused = run_until_calls(self._schedule(queued))
        return True

    def _schedule(self, queued: QueuedPod) -> Conversation[None]:
        attempt = self.attempts.begin(queued)
        if attempt is not None:
            outcome = yield from self._cycles.schedule(attempt.profile, attempt.info)
            self._metrics.scheduling_algorithm_seconds.observe(self._stopwatch() - attempt.started)
            self.attempts.conclude(attempt, outcome)

    @property
    def calls(self) -> Sequence[Call]:
        """The calls to extenders that the paused cycle waits for."""
        return () if self._paused is None else self._paused.calls

    async def _call_extenders(self) -> None:
        """Call extenders and resume the paused cycle until it ends."""
        self._gate.close()
        try:
            while self._paused is not None:
                answers = await self._ask(self._paused.calls)
                paused, self._paused = self._paused, None
                self._paused = paused.resume(answers)
        finally:
            self._gate.open()

    async def _wait_for_work(self) -> None:
        self._work_arrived.clear()
        wakeup = self._queue.next_wakeup()
        if wakeup is None:
            await self._work_arrived.wait()
            return
        try:
            async with asyncio.timeout(max(wakeup - self._clock.now(), 0.0)):
                await self._work_arrived.wait()
        except TimeoutError:
            pass
