"""Scheduling pod groups: a member that leaves the queue brings the others, and what is decided is decided for all.

popped member -> the group's other pods, out of the queue -> group cycle -> bound, or back to the queue together
                                                                         -> condition PodGroupScheduled
"""

from collections.abc import Callable, Sequence
from functools import partial

from kubestow.attempts import Attempts
from kubestow.binding.binder import Attempt
from kubestow.binding.dispatcher import Dispatcher
from kubestow.binding.evictions import Evictions, Preemption
from kubestow.cluster.pod_groups import PodGroups
from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.outcome import Failed, Placed
from kubestow.cycle.pod_group import GroupCycles
from kubestow.extenders.extender import Asking
from kubestow.framework.placements import TriedGroup
from kubestow.framework.results import Code
from kubestow.model.clock import Clock
from kubestow.model.pod import Pod
from kubestow.model.pod_groups import group_key
from kubestow.model.standing import pod_priority
from kubestow.observer import Observer
from kubestow.queue.queued_pod import QueuedPod
from kubestow.queue.scheduling_queue import SchedulingQueue
from kubestow.reporting.conditions import SCHEDULER_ERROR, UNSCHEDULABLE, group_condition
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics
from kubestow.scheduler import Pause

log = get_logger(__name__)

_RESULTS = {Code.SUCCESS: "scheduled", Code.UNSCHEDULABLE: "unschedulable", Code.ERROR: "error"}
_PROBLEMS = {Code.SUCCESS: "", Code.UNSCHEDULABLE: UNSCHEDULABLE, Code.ERROR: SCHEDULER_ERROR}


class GroupScheduling:
    """Schedules the groups of pods that the scheduler takes out of the queue."""

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
        """Whether a pod belongs to a group."""
        return bool(group_key(pod))

    def schedule(self, popped: QueuedPod) -> Pause[GroupOutcome] | None:
        """Run the cycle of the group of a pod that was popped from the queue."""
        attempts = [attempt for queued in self._together(popped) if (attempt := self._attempts.begin(queued))]
        if not attempts:
            return None
        names = list(dict.fromkeys(attempt.queued.profile for attempt in attempts))
        if len(names) > 1:
            words = "all pods in a single pod group should have the same .spec.schedulerName set"
            failed = Failed(Code.ERROR, f'{words}, got: "{names[1]}" and "{names[0]}"')
            for attempt in attempts:
                self._attempts.conclude(attempt, failed)
            return None
        namespace, _, name = group_key(popped.pod).partition("/")
        pods = [attempt.info for attempt in attempts]
        group = TriedGroup(namespace, name, self._groups.get(group_key(popped.pod)), pods)
        scheduled, started = len(self._groups.members(group.key).scheduled), self._stopwatch()
        return self._conclude(group, attempts, scheduled, started, self._cycles.run(attempts[0].profile, group))

    def _together(self, popped: QueuedPod) -> list[QueuedPod]:
        """The pods of the group that wait, the most important first, then in the order they were first tried."""
        members = self._groups.members(group_key(popped.pod))
        others = [uid for uid in members.pending if uid != popped.uid and uid not in members.scheduled]
        found = {queued.uid: queued for queued in (popped, *self._queue.pop_pods(others))}
        came = [found.pop(uid) for uid in members.pending if uid in found] + list(found.values())
        return sorted(came, key=lambda queued: (-pod_priority(queued.pod), queued.initial_attempt_timestamp or 0.0))

    def _conclude(
        self,
        group: TriedGroup,
        attempts: Sequence[Attempt],
        scheduled: int,
        started: float,
        outcome: GroupOutcome | Asking[GroupOutcome],
    ) -> Pause[GroupOutcome] | None:
        if isinstance(outcome, Asking):
            return Pause(outcome, partial(self._conclude, group, attempts, scheduled, started))
        profile, seconds = attempts[0].profile, self._stopwatch() - started
        self._metrics.podgroup_scheduling_algorithm_seconds.observe(seconds)
        self._observer.group_decided(group, profile, outcome, scheduled, seconds)
        if outcome.victims and group.group is not None:
            # Before the pods are back in the queue: while the victims are evicted they are to be held back there.
            preemption = Preemption.for_group(group.group.metadata.uid, group.pods, outcome.preempting_plugin)
            self._evictions.start(preemption, outcome.victims, ())
        for attempt, of_pod in zip(attempts, outcome.outcomes, strict=True):
            # An equal share for each: the pods are not timed one by one.
            self._metrics.scheduling_algorithm_seconds.observe(seconds / len(attempts))
            self._attempts.conclude(attempt, of_pod)
        self._report(group, outcome, profile.name, self._stopwatch() - started)
        return None

    def _report(self, group: TriedGroup, outcome: GroupOutcome, profile: str, seconds: float) -> None:
        result = "waiting_on_preemption" if outcome.waits_for_preemption else _RESULTS[outcome.code]
        self._metrics.podgroup_schedule_attempts.inc(profile, result)
        self._metrics.podgroup_scheduling_attempt_seconds.observe(seconds, profile, result)
        if log.is_enabled(2):
            scheduled = sum(isinstance(of_pod, Placed) for of_pod in outcome.outcomes)
            log.info("Tried a pod group", v=2, podGroup=group.key, result=result, scheduledPods=scheduled)
        current = self._groups.get(group.key)
        if current is None:
            return
        expected = self._dispatcher.expected_group(current)
        condition = group_condition(expected, _PROBLEMS[outcome.code], outcome.message, self._clock.now())
        if condition is not None:
            self._dispatcher.patch_group_status(current, condition)
