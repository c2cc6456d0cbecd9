"""The scheduling of pod groups: a popped pod brings the other pods of its group, and one cycle decides for all.

popped pod -> the other waiting pods of its group -> group cycle -> bound, or back to the queue together
                                                                         -> condition PodGroupInitiallyScheduled
"""

from collections.abc import Callable, Sequence

from kubestow.api.conditions import SCHEDULER_ERROR, UNSCHEDULABLE, group_condition
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_priority
from kubestow.clock import Clock
from kubestow.scheduler.attempts import Attempts
from kubestow.scheduler.binding.binder import Attempt
from kubestow.scheduler.binding.dispatcher import Dispatcher
from kubestow.scheduler.binding.evictions import Evictions, Preemption
from kubestow.scheduler.cluster.pod_groups import PodGroups
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.scheduler.cycle.pod_group import GroupCycles
from kubestow.scheduler.extenders.extender import Conversation
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.observer import Observer
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

_RESULTS = {Code.SUCCESS: "scheduled", Code.UNSCHEDULABLE: "unschedulable", Code.ERROR: "error"}
_PROBLEMS = {Code.SUCCESS: "", Code.UNSCHEDULABLE: UNSCHEDULABLE, Code.ERROR: SCHEDULER_ERROR}


class GroupScheduling:
    """Schedules the pod groups of popped pods."""

    def __init__(
        self,
        *,
        groups: PodGroups,
        queue: SchedulingQueue,
        cycles: GroupCycles,
        attempts: Attempts,
        evictions: Evictions,
        dispatcher: Dispatcher,
        observer: Observer,
        metrics: SchedulerMetrics,
        clock: Clock,
        stopwatch: Callable[[], float],
    ) -> None:
        self._groups = groups
        self._queue = queue
        self._cycles = cycles
        self._attempts = attempts
        self._evictions = evictions
        self._dispatcher = dispatcher
        self._observer = observer
        self._metrics = metrics
        self._clock = clock
        self._stopwatch = stopwatch

    def has(self, pod: Pod) -> bool:
        """Return whether a pod belongs to a group."""
        return bool(group_key(pod)) and not pod.spec.nodeName

    def schedule(self, popped: QueuedPod) -> Conversation[None]:
        """Schedule the group of a popped pod; yield the calls to extenders."""
        attempts = [attempt for queued in self._waiting_members(popped) if (attempt := self._attempts.begin(queued))]
        if not attempts:
            return
        names = list(dict.fromkeys(attempt.queued.profile for attempt in attempts))
        if len(names) > 1:
            message = "all pods in a single pod group should have the same .spec.schedulerName set"
            failed = Failed(Code.ERROR, f'{message}, got: "{names[1]}" and "{names[0]}"')
            for attempt in attempts:
                self._attempts.conclude(attempt, failed)
            return
        namespace, _, name = group_key(popped.pod).partition("/")
        pods = [attempt.info for attempt in attempts]
        group = TriedGroup(namespace, name, self._groups.get(group_key(popped.pod)), pods)
        scheduled, started = len(self._groups.members(group.key).scheduled), self._stopwatch()
        outcome = yield from self._cycles.schedule(attempts[0].profile, group)
        self._conclude(group, attempts, scheduled, started, outcome)

    def _waiting_members(self, popped: QueuedPod) -> list[QueuedPod]:
        """Pop the waiting pods of the group, by descending priority, then by the time they were first tried."""
        members = self._groups.members(group_key(popped.pod))
        others = [uid for uid in members.pending if uid != popped.uid and uid not in members.scheduled]
        found = {queued.uid: queued for queued in (popped, *self._queue.pop_pods(others))}
        in_order = [found.pop(uid) for uid in members.pending if uid in found] + list(found.values())
        return sorted(in_order, key=lambda queued: (-pod_priority(queued.pod), queued.initial_attempt_timestamp or 0.0))

    def _conclude(
        self, group: TriedGroup, attempts: Sequence[Attempt], scheduled: int, started: float, outcome: GroupOutcome
    ) -> None:
        profile, seconds = attempts[0].profile, self._stopwatch() - started
        self._metrics.podgroup_scheduling_algorithm_seconds.observe(seconds)
        self._observer.on_group_decision(group, profile, outcome, scheduled, seconds)
        if outcome.victims and group.group is not None:
            # Before the pods are requeued: PreEnqueue gates them there while the victims are being evicted.
            preemption = Preemption.for_group(group.group.metadata.uid, group.pods, outcome.preempting_plugin)
            self._evictions.start(preemption, outcome.victims, ())
        for attempt, pod_outcome in zip(attempts, outcome.outcomes, strict=True):
            # The pods are not timed one by one, so each counts an equal share.
            self._metrics.scheduling_algorithm_seconds.observe(seconds / len(attempts))
            self._attempts.conclude(attempt, pod_outcome)
        self._write_condition(group, outcome, profile.name, self._stopwatch() - started)

    def _write_condition(self, group: TriedGroup, outcome: GroupOutcome, profile: str, seconds: float) -> None:
        result = "waiting_on_preemption" if outcome.waits_for_preemption else _RESULTS[outcome.code]
        self._metrics.podgroup_schedule_attempts.inc(profile, result)
        self._metrics.podgroup_scheduling_attempt_seconds.observe(seconds, profile, result)
        if log.is_enabled(2):
            scheduled = sum(isinstance(pod_outcome, Placed) for pod_outcome in outcome.outcomes)
            log.info("Tried a pod group", v=2, podGroup=group.key, result=result, scheduledPods=scheduled)
        current = self._groups.get(group.key)
        if current is None:
            return
        expected = self._dispatcher.expected_group(current)
        condition = group_condition(expected, _PROBLEMS[outcome.code], outcome.message, self._clock.now())
        if condition is not None:
            self._dispatcher.patch_group_status(current, condition)
