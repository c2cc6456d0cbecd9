"""The start and the end of attempts to schedule a pod.

begin -> (cycle) -> conclude: Placed -> binder -> bound
                       |                   |
                       +----- Failed ------+----> queue
"""

from collections.abc import Callable, Mapping

from kubestow.api.conditions import SCHEDULER_ERROR, UNSCHEDULABLE, scheduling_condition, truncate_note
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.scheduler.binding.binder import FAILED, Attempt, Binder, Step
from kubestow.scheduler.binding.dispatcher import Dispatcher
from kubestow.scheduler.binding.evictions import Evictions, Preemption
from kubestow.scheduler.cluster.events import ASSIGNED_POD_DELETE
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.framework.handle import Recorder
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.intake import Intake
from kubestow.scheduler.observer import Observer
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

_MANY_ATTEMPTS = 15
_ATTEMPTS = (*map(str, range(_MANY_ATTEMPTS)), f"{_MANY_ATTEMPTS}+")
"""Metric labels for the number of attempts."""
_TIMED_CYCLES = 10
"""Time the plugin calls of every Nth cycle."""

AttemptEnded = Callable[[Profile, Failed | None], None]
"""Callback for each attempt that ended: `(profile, failed)`; None for a pod that was bound."""


class Attempts:
    """Begins attempts, and carries out the outcomes of their cycles."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        queue: SchedulingQueue,
        profiles: Mapping[str, Profile],
        cycles: SchedulingCycles,
        intake: Intake,
        binder: Binder,
        evictions: Evictions,
        dispatcher: Dispatcher,
        recorder: Recorder,
        metrics: SchedulerMetrics,
        observer: Observer,
        clock: Clock,
        stopwatch: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._profiles = profiles
        self._cycles = cycles
        self._intake = intake
        self._binder = binder
        self._evictions = evictions
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._metrics = metrics
        self._observer = observer
        self._clock = clock
        self._stopwatch = stopwatch
        self._on_end: AttemptEnded | None = None
        self.count = 0
        """Number of attempts so far."""

    def set_end_callback(self, on_end: AttemptEnded | None) -> None:
        """Call `on_end` whenever an attempt ends; None removes the callback."""
        self._on_end = on_end

    def begin(self, queued: QueuedPod) -> Attempt | None:
        """Begin an attempt; None if the pod need not be scheduled any more, in which case it leaves the queue."""
        if self._skips(queued.pod):
            self._queue.done(queued.uid)
            return None
        profile = self._profiles[queued.profile]
        profile.caller.timing = self.count % _TIMED_CYCLES == 0
        self.count += 1
        return Attempt(queued, queued.info, profile, self._stopwatch())

    def _skips(self, pod: Pod) -> bool:
        """Return True for a pod that is being deleted, with an event for it, and for a pod that is assumed."""
        if pod.metadata.deletionTimestamp is not None:
            note = f"skip schedule deleting pod: {pod.key}"
            self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self._cluster.is_assumed(pod.metadata.uid)

    def conclude(self, attempt: Attempt, outcome: Outcome) -> None:
        """Carry out an outcome: start to bind a placed pod, requeue any other."""
        self._observer.on_decision(attempt, outcome, self._stopwatch() - attempt.started)
        if isinstance(outcome, Placed):
            if log.is_enabled(3):
                log.info(
                    "Node chosen for pod",
                    v=3,
                    pod=attempt.queued.pod.key,
                    node=outcome.node,
                    feasibleNodes=outcome.searched.feasible,
                )
            self._queue.nominator.remove(attempt.queued.uid)
            self._binder.start(attempt, outcome, self)
        else:
            self._handle_failure(attempt, outcome)

    # The end of a binding

    def on_bound(self, attempt: Attempt, placed: Placed) -> None:
        """Record that a pod was bound."""
        queued = attempt.queued
        if log.is_enabled(2):
            log.info(
                "Successfully bound pod to node",
                v=2,
                pod=placed.pod.key,
                node=placed.node,
                evaluatedNodes=placed.searched.evaluated,
                feasibleNodes=placed.searched.feasible,
            )
        note = f"Successfully assigned {placed.pod.key} to {placed.node}"
        self._recorder.event(placed.pod.pod, "Normal", "Scheduled", "Binding", note)
        self._count_attempt(attempt, "scheduled", None)
        since = queued.initial_attempt_timestamp
        waited = self._clock.now() - (queued.timestamp if since is None else since)
        self._metrics.pod_scheduling_attempts.observe(queued.attempts)
        self._metrics.pod_scheduling_sli_seconds.observe(waited, _ATTEMPTS[min(queued.attempts, _MANY_ATTEMPTS)])
        if queued.was_flushed:
            self._metrics.pod_scheduled_after_flush.inc()

    def on_binding_failed(self, attempt: Attempt, placed: Placed, failed: Failed) -> None:
        """Undo Reserve for a pod that could not be bound, and requeue it."""
        uid, now = placed.pod.uid, self._stopwatch()
        self._observer.on_binding_step(placed, Step(FAILED, "", now, now, failed=failed))
        if not self._cycles.unreserve(attempt.profile, placed):
            # The pod was bound nevertheless, or deleted: no capacity becomes free here.
            self._handle_failure(attempt, failed, was_placed=True)
        elif failed.is_rejection:
            # The capacity that the pod frees must not retry the pod itself.
            self._handle_failure(attempt, failed, was_placed=True)
            self._queue.on_event(ASSIGNED_POD_DELETE, placed.pod.pod, None, only=lambda pod: pod.metadata.uid != uid)
        else:
            self._queue.on_event(ASSIGNED_POD_DELETE, placed.pod.pod, None)
            self._handle_failure(attempt, failed, was_placed=True)

    # Failures

    def _handle_failure(self, attempt: Attempt, failed: Failed, *, was_placed: bool = False) -> None:
        queued = attempt.queued
        _log_failure(queued.pod, failed)
        self._count_attempt(attempt, "unschedulable" if failed.is_rejection else "error", failed)
        latest = self._intake.latest_pending(queued.pod)
        if latest is None:
            # The pod was deleted, recreated, or bound by another scheduler.
            self._queue.done(queued.uid)
            return
        queued.pod = latest
        if failed.victims and failed.nominated_node:
            # Before the pod is requeued: PreEnqueue gates it there while its victims are being evicted.
            preemption = Preemption.for_pod(queued.info, failed.nominated_node, failed.preempting_plugin)
            self._evictions.start(preemption, failed.victims, failed.to_unnominate)
        self._queue.requeue_failed(queued, failed.plugins, failed.pending_plugins)
        if latest.spec.nodeName:
            # Its resize waits for capacity on its node: it is scheduled already.
            return
        self._queue.nominator.nominate(latest, failed.nominated_node, queued.info)
        self._write_condition(latest, failed, was_placed=was_placed)

    def _count_attempt(self, attempt: Attempt, result: str, failed: Failed | None) -> None:
        profile, seconds = attempt.profile.name, self._stopwatch() - attempt.started
        self._metrics.schedule_attempts.inc(profile, result)
        self._metrics.scheduling_attempt_seconds.observe(seconds, profile, result)
        if self._on_end is not None:
            self._on_end(attempt.profile, failed)

    def _write_condition(self, pod: Pod, failed: Failed, *, was_placed: bool) -> None:
        self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", truncate_note(failed.located_message))
        reason = UNSCHEDULABLE if failed.is_rejection else SCHEDULER_ERROR
        # Compare with the status that is being written, since the one last seen may be older.
        expected = self._dispatcher.expected(pod)
        condition = scheduling_condition(expected, reason, failed.message, self._clock.now())
        nominated = failed.nominated_node
        # The announcement of the node that was chosen may be written, but not be received yet.
        if nominated == expected.status.nominatedNodeName and not was_placed:
            nominated = None
        if condition is not None or nominated is not None:
            self._dispatcher.patch_status(pod, condition, nominated)


def _log_failure(pod: Pod, failed: Failed) -> None:
    if failed.is_rejection:
        log.info("Unable to schedule pod; no fit; waiting", v=2, pod=pod.key, err=failed.message)
    elif failed.is_conflict:
        log.info("Pod changed at the API server while it was being bound; retrying", pod=pod.key, err=failed.message)
    else:
        log.error("Error scheduling pod; retrying", err=failed.located_message, pod=pod.key)
