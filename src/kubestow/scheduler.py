"""The scheduling loop: pods leave the queue one by one, and each goes through one scheduling cycle.

    queue -> cycle -> attempts.conclude -> (bound beside later cycles | back to the queue)

Everything here happens on one event loop. A cycle never waits, so there are no locks and nothing to copy. Where a cycle
has to ask extenders, bindings and reads go on meanwhile; changes of the cluster are held back by the gate.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kubestow.attempts import Attempts
from kubestow.binding.binder import Attempt, Binder
from kubestow.binding.evictions import Evictions
from kubestow.cluster.gate import Gate
from kubestow.cycle.outcome import Outcome
from kubestow.cycle.scheduling import SchedulingCycles
from kubestow.extenders.extender import Ask, Asking, Call
from kubestow.model.clock import Clock
from kubestow.model.pod import Pod
from kubestow.queue.queued_pod import QueuedPod
from kubestow.queue.scheduling_queue import SchedulingQueue
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

T = TypeVar("T")

_CYCLES_PER_TURN = 32
"""Maximum number of cycles per event-loop turn; only the cycle of a pod group may exceed it."""


class Pause(NamedTuple, Generic[T]):
    """A cycle that has stopped to ask extenders."""

    asking: Asking[T]
    conclude: "Callable[[T | Asking[T]], Pause[Any] | None]"
    """Takes what the cycle comes to once the answers are there; returns another pause if it has to ask again."""


class GroupScheduling(Protocol):
    """Schedules pods that belong together."""

    def has(self, pod: Pod) -> bool:
        """Return whether a pod is scheduled with a group."""
        ...

    def schedule(self, popped: QueuedPod) -> Pause[Any] | None:
        """Run the cycle of the group that a popped pod belongs to."""


class Scheduler:
    """Schedules what is in the queue."""

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
        ask: Ask,
        metrics: SchedulerMetrics,
        clock: Clock,
        stopwatch: Callable[[], float],
    ) -> None:
        """Without `groups`, pods that name a group are scheduled like others."""
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
        self._pause: Pause[Any] | None = None
        metrics.goroutines.track(lambda: sum(call.prioritizes for call in self.calls), "prioritizing_extender")

    async def run(self) -> None:
        """Schedule until cancelled."""
        while True:
            self._queue.flush_backoff()
            self._queue.flush_unschedulable()
            until = self.attempts.count + _CYCLES_PER_TURN
            while self.attempts.count < until and self.schedule_one():
                if self._pause is not None:
                    await self._ask_extenders()
            if self._queue.has_work:
                await asyncio.sleep(0)
                continue
            await self._wait_for_work()

    def schedule_one(self) -> bool:
        """Run the cycle of the next pod in the queue; False if there is none.

        If the cycle has to ask extenders, it is left paused, and `run` resumes it.
        """
        queued = self._queue.pop()
        if queued is None:
            return False
        if self._groups is not None and self._groups.has(queued.pod):
            self._pause = self._groups.schedule(queued)
            return True
        attempt = self.attempts.begin(queued)
        if attempt is not None:
            self._pause = self._conclude(attempt, self._cycles.run(attempt.profile, attempt.info))
        return True

    def _conclude(self, attempt: Attempt, outcome: Outcome | Asking[Outcome]) -> Pause[Outcome] | None:
        if isinstance(outcome, Asking):
            return Pause(outcome, partial(self._conclude, attempt))
        self._metrics.scheduling_algorithm_seconds.observe(self._stopwatch() - attempt.started)
        self.attempts.conclude(attempt, outcome)
        return None

    @property
    def calls(self) -> Sequence[Call]:
        """The calls to extenders that a cycle waits for."""
        return () if self._pause is None else self._pause.asking.calls

    async def _ask_extenders(self) -> None:
        """Have extenders answer the paused cycle until it is over."""
        self._gate.close()
        try:
            while self._pause is not None:
                asking, conclude = self._pause
                answers = await self._ask(asking.calls)
                self._pause = None
                self._pause = conclude(asking.answered(answers))
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
