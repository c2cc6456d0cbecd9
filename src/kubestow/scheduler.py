"""The scheduler: pods leave the queue one by one, get a node or go back, and are bound beside later cycles.

    queue -> cycle -> Placed -> binder -> bound
                |                  |
                +---- Failed ------+-----> failure handling -> queue

Everything here happens on one event loop. A cycle never waits, so there are no locks and nothing to copy. Where it has
to ask extenders, all else goes on meanwhile, except that what would change the cluster under it is held back.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kubestow.binding.binder import Attempt, Binder, Step
from kubestow.binding.dispatcher import Dispatcher
from kubestow.binding.evictions import Evictions, for_pod
from kubestow.binding.waiting import WaitingPods
from kubestow.cluster.events import ASSIGNED_POD_DELETE
from kubestow.cluster.gate import Gate
from kubestow.cluster.state import Cluster
from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.outcome import Failed, Outcome, Placed
from kubestow.cycle.scheduling import SchedulingCycles
from kubestow.cycle.trace import Alike, Trace
from kubestow.extenders.extender import Ask, Asking, Call
from kubestow.framework.handle import Recorder
from kubestow.framework.placements import TriedGroup
from kubestow.framework.profile import Profile
from kubestow.intake import Intake
from kubestow.model.clock import Clock
from kubestow.model.pod import Pod
from kubestow.queue.queued_pod import QueuedPod
from kubestow.queue.scheduling_queue import SchedulingQueue
from kubestow.reporting.conditions import fitting_note, scheduling_condition
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

T = TypeVar("T")

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

_MANY_ATTEMPTS = 15
_ATTEMPTS = (*map(str, range(_MANY_ATTEMPTS)), f"{_MANY_ATTEMPTS}+")
"""Numbers of attempts as metrics tell them."""
_TIMED_CYCLES = 10
"""One cycle in so many has its plugin calls timed."""
_CYCLES_PER_TURN = 32
"""So many pods are tried before bindings, watches and serving get their turn, but for the rest of a group."""


class Pause(NamedTuple, Generic[T]):
    """A cycle that has stopped to ask extenders, and what is to become of its outcome."""

    asking: Asking[T]
    conclude: Callable[[T | Asking[T]], None]


Decided = Callable[[Pod, Placed | Failed, float], None]
"""Is told what was decided about a pod, and in how many seconds."""


PlacedAlike = tuple[QueuedPod, Placed, float]
"""A pod that was placed by nothing but what pods like it share, and in how many seconds."""


class GroupScheduling(Protocol):
    """Schedules pods that belong together."""

    def has(self, pod: Pod) -> bool: ...

    def schedule(self, popped: QueuedPod) -> None: ...


class Observer(Protocol):
    """Follows pods from the queue to their node, for those who explain it."""

    is_pending: Callable[[str], bool]
    """Whether a pod, by uid, still has no node; set by whoever knows."""
    is_group_pending: Callable[[str], bool]
    """Whether pods of a pod group, by namespace/name, wait; likewise."""
    stopwatch: Callable[[], float]
    """By which the steps of bindings are timed; likewise."""
    journal_bytes: Callable[[], int]
    """What is remembered for pods that share takes only because cycles are traced; likewise."""

    def moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        """A pod came to a queue, because a plugin's hint said that an event may help it, for example."""

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float, trace: Trace | Alike | None) -> None:
        """A cycle is over; what it left is to be read at once. Of a pod that was placed, the outcome has it."""

    @property
    def placed_alike(self) -> Callable[[Sequence[PlacedAlike]], None] | None:
        """Is told of pods that were placed alike in one turn, before anything else happens; None: tell each at once."""

    def group_decided(
        self, tried: TriedGroup, profile: str, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        """The cycle of a pod group is over, of which `scheduled` pods had a node before."""

    def step(self, placed: Placed, step: Step) -> None:
        """A step of a binding is over."""

    def binding_failed(self, placed: Placed, failed: Failed) -> None:
        """A binding is over, and the pod is not bound."""


class Scheduler:
    """Schedules what is in the queue."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        profiles: Mapping[str, Profile],
        cycles: SchedulingCycles,
        intake: Intake,
        dispatcher: Dispatcher,
        recorder: Recorder,
        metrics: SchedulerMetrics,
        decided: Decided,
        clock: Clock,
        stopwatch: Callable[[], float],
        waiting_pods: WaitingPods,
        work_arrived: asyncio.Event,
        gate: Gate,
        ask: Ask,
        *,
        announces_expectation: bool = True,
        observer: Observer | None = None,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._profiles = profiles
        self._cycles = cycles
        self._intake = intake
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._metrics = metrics
        self._decided = decided
        self._clock = clock
        self._stopwatch = stopwatch
        self._work_arrived = work_arrived
        self._gate = gate
        self._ask = ask
        self._observer = observer
        self._tell_alike = None if observer is None else observer.placed_alike
        self._alike: list[PlacedAlike] = []
        """Of this turn; the observer has not been told of them yet."""
        self._asking: Pause[Any] | None = None
        self._count = 0
        self.groups: GroupScheduling | None = None
        """Who schedules pods that belong to a group; None: they are scheduled like others."""
        self.attempt_ended: Callable[[Profile, Failed | None], None] | None = None
        """Is told how an attempt ended, None for a pod that was bound, and by which profile it was made."""
        self.binder = Binder(
            dispatcher,
            waiting_pods,
            self,
            queue.done,
            metrics,
            stopwatch,
            gate,
            announces_expectation=announces_expectation,
        )
        if observer is not None:
            queue.moved, self.binder.step = observer.moved, observer.step
            observer.is_pending, observer.stopwatch = intake.is_pending, stopwatch
            observer.journal_bytes = cycles.journal_bytes
        self.evictions = Evictions(
            cluster,
            dispatcher,
            waiting_pods,
            self.binder,
            recorder,
            queue.activate,
            queue.wait_only_for,
            clock.now,
            metrics,
        )
        metrics.goroutines.track(lambda: len(self.binder), "binding")
        metrics.goroutines.track(lambda: sum(call.prioritizes for call in self.calls), "prioritizing_extender")
        metrics.cache_size.track(lambda: len(cluster.nodes.row_of), "nodes")
        metrics.cache_size.track(lambda: cluster.pod_count, "pods")
        metrics.cache_size.track(lambda: cluster.assumed_count, "assumed_pods")

    # The main path

    def schedule_one(self) -> bool:
        """Take the next pod out of the queue and decide about it; False if there is none.

        Where extenders are to be asked about it, it is left at that; `run` goes on.
        """
        queued = self._queue.pop()
        if queued is None:
            return False
        if self.groups is not None and self.groups.has(queued.pod):
            self.groups.schedule(queued)
            return True
        attempt = self.begin(queued)
        if attempt is not None:
            self._conclude(attempt, self._cycles.run(attempt.profile, queued.info))
        return True

    def begin(self, queued: QueuedPod) -> Attempt | None:
        """Begin to try a pod; None if it need not be, after all."""
        if self._is_to_be_skipped(queued.pod):
            self._queue.done(queued.uid)
            return None
        profile = self._profiles[queued.profile]
        profile.caller.timing = self._count % _TIMED_CYCLES == 0
        self._count += 1
        return Attempt(queued, profile, self._stopwatch())

    def _conclude(self, attempt: Attempt, outcome: Outcome | Asking[Outcome]) -> None:
        if isinstance(outcome, Asking):
            self.pause(outcome, partial(self._conclude, attempt))
            return
        self._metrics.scheduling_algorithm_seconds.observe(self._stopwatch() - attempt.started)
        self.conclude(attempt, outcome, self._cycles.trace)

    def conclude(self, attempt: Attempt, outcome: Outcome, trace: Trace | Alike | None = None) -> None:
        """Bind a pod that was placed, or put it back into the queue; `trace` is what a cycle that failed left."""
        queued, seconds = attempt.queued, self._stopwatch() - attempt.started
        self._decided(queued.pod, outcome, seconds)
        if isinstance(outcome, Placed):
            if self._tell_alike is not None and isinstance(outcome.trace, Alike) and not outcome.waits:
                self._alike.append((queued, outcome, seconds))
            elif self._observer is not None:
                self._tell(self._observer, attempt, outcome, seconds, trace)
            self._queue.nominator.remove(queued.uid)
            self.binder.start(attempt, outcome)
        else:
            if self._observer is not None:
                self._tell(self._observer, attempt, outcome, seconds, trace)
            self._handle_failure(attempt, outcome)

    def _tell(
        self, observer: Observer, attempt: Attempt, outcome: Outcome, seconds: float, trace: Trace | Alike | None
    ) -> None:
        self._end_turn()
        observer.decided(attempt, outcome, seconds, trace)

    def _end_turn(self) -> None:
        if self._alike and self._tell_alike is not None:
            alike, self._alike = self._alike, []
            self._tell_alike(alike)

    def pause(self, asking: Asking[T], conclude: Callable[[T | Asking[T]], None]) -> None:
        """A cycle has to ask extenders before it can go on."""
        self._asking = Pause(asking, conclude)

    @property
    def calls(self) -> Sequence[Call]:
        """The calls to extenders that a cycle waits for."""
        return () if self._asking is None else self._asking.asking.calls

    async def _ask_extenders(self) -> None:
        """Let the cycle that has stopped for it ask extenders, until it is over."""
        self._gate.close()
        try:
            while self._asking is not None:
                asking, conclude = self._asking
                answers = await self._ask(asking.calls)
                self._asking = None
                conclude(asking.answered(answers))
        finally:
            self._gate.open()

    def _is_to_be_skipped(self, pod: Pod) -> bool:
        if pod.metadata.deletionTimestamp is not None:
            note = f"skip schedule deleting pod: {pod.key}"
            self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self._cluster.is_assumed(pod.metadata.uid)

    # How bindings end

    def bound(self, attempt: Attempt, placed: Placed) -> None:
        """A pod was bound."""
        queued = attempt.queued
        if log.tells(2):
            log.info(
                "Successfully bound pod to node",
                v=2,
                pod=placed.pod.key,
                node=placed.node,
                evaluatedNodes=placed.evaluated,
                feasibleNodes=placed.feasible,
            )
        note = f"Successfully assigned {placed.pod.key} to {placed.node}"
        self._recorder.event(placed.pod.pod, "Normal", "Scheduled", "Binding", note)
        self._attempted(attempt, "scheduled", None)
        since = queued.initial_attempt_timestamp
        waited = self._clock.now() - (queued.timestamp if since is None else since)
        self._metrics.pod_scheduling_attempts.observe(queued.attempts)
        self._metrics.pod_scheduling_sli_seconds.observe(waited, _ATTEMPTS[min(queued.attempts, _MANY_ATTEMPTS)])
        if queued.was_flushed:
            self._metrics.pod_scheduled_after_flush.inc()

    def binding_failed(self, attempt: Attempt, placed: Placed, failed: Failed) -> None:
        """A pod could not be bound: what it took is given back, and it is tried again."""
        uid = placed.pod.uid
        if self._observer is not None:
            self._observer.binding_failed(placed, failed)
        if not self._cycles.give_back(attempt.profile, placed):
            # Seen bound in spite of it, or deleted: nobody gains room now.
            self._handle_failure(attempt, failed)
        elif failed.is_rejection:
            # The pod itself must not be moved by the room it gives back.
            self._handle_failure(attempt, failed)
            self._queue.on_event(ASSIGNED_POD_DELETE, placed.pod.pod, None, only=lambda pod: pod.metadata.uid != uid)
        else:
            self._queue.on_event(ASSIGNED_POD_DELETE, placed.pod.pod, None)
            self._handle_failure(attempt, failed)

    def _handle_failure(self, attempt: Attempt, failed: Failed) -> None:
        queued = attempt.queued
        result = "unschedulable" if failed.is_rejection else "error"
        self._attempted(attempt, result, failed)
        latest = self._intake.pending(queued.pod)
        if latest is None:
            # Deleted, recreated, or given a node by somebody else.
            self._queue.done(queued.uid)
            return
        queued.pod = latest
        if failed.victims and failed.nominated_node:
            # Before the pod is back in the queue: while its victims are evicted it is to be held back there.
            preemption = for_pod(queued.info, failed.nominated_node, failed.preempting_plugin)
            self.evictions.start(preemption, failed.victims, failed.to_unnominate)
        self._queue.requeue_failed(queued, failed.plugins, failed.pending_plugins)
        self._queue.nominator.nominate(latest, failed.nominated_node, queued.info)
        self._report(latest, failed)

    def _attempted(self, attempt: Attempt, result: str, failed: Failed | None) -> None:
        profile, seconds = attempt.profile.name, self._stopwatch() - attempt.started
        self._metrics.schedule_attempts.inc(profile, result)
        self._metrics.scheduling_attempt_seconds.observe(seconds, profile, result)
        if self.attempt_ended is not None:
            self.attempt_ended(attempt.profile, failed)

    def _report(self, pod: Pod, failed: Failed) -> None:
        self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", fitting_note(failed.message))
        reason = UNSCHEDULABLE if failed.is_rejection else SCHEDULER_ERROR
        # Not as it was last seen: an earlier attempt may have said otherwise meanwhile.
        expected = self._dispatcher.expected(pod)
        condition = scheduling_condition(expected, reason, failed.message, self._clock.now())
        nominated = failed.nominated_node
        if nominated == expected.status.nominatedNodeName:
            nominated = None
        if condition is not None or nominated is not None:
            self._dispatcher.patch_status(pod, condition, nominated)

    # Running

    async def run(self) -> None:
        """Schedule until cancelled."""
        while True:
            self._queue.flush_backoff()
            self._queue.flush_unschedulable()
            until = self._count + _CYCLES_PER_TURN
            while self._count < until:
                if not self.schedule_one():
                    break
                if self._asking is not None:
                    await self._ask_extenders()
            self._end_turn()
            if self._queue.has_work:
                await asyncio.sleep(0)
                continue
            await self._wait_for_work()

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
