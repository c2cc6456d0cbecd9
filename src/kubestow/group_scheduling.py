"""Scheduling pod groups: a member that leaves the queue brings the others, and what is decided is decided for all.

popped member -> the group's other pods, out of the queue -> group cycle -> bound, or back to the queue together
                                                                         -> condition PodGroupScheduled
"""

from collections.abc import Callable
from functools import partial
from itertools import zip_longest

from kubestow.binding.binder import Attempt
from kubestow.binding.dispatcher import Dispatcher
from kubestow.binding.evictions import for_group
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
from kubestow.queue.queued_pod import QueuedPod
from kubestow.queue.scheduling_queue import SchedulingQueue
from kubestow.reporting.conditions import SCHEDULER_ERROR, UNSCHEDULABLE, group_condition
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics
from kubestow.scheduler import Scheduler

log = get_logger(__name__)

_RESULTS = {Code.SUCCESS: "scheduled", Code.UNSCHEDULABLE: "unschedulable", Code.ERROR: "error"}
_PROBLEMS = {Code.SUCCESS: "", Code.UNSCHEDULABLE: UNSCHEDULABLE, Code.ERROR: SCHEDULER_ERROR}

GroupDecided = Callable[[TriedGroup, str, GroupOutcome, int, float], None]
"""What was decided about a group, by which profile, with how many pods scheduled before, in how many seconds."""


def told_to_nobody(_tried: TriedGroup, _profile: str, _outcome: GroupOutcome, _scheduled: int, _seconds: float) -> None:
    """Nobody wants to know."""


class GroupScheduling:
    """Schedules the groups of pods that the scheduler takes out of the queue."""

    def __init__(
        self,
        groups: PodGroups,
        queue: SchedulingQueue,
        cycles: GroupCycles,
        scheduler: Scheduler,
        dispatcher: Dispatcher,
        metrics: SchedulerMetrics,
        clock: Clock,
        stopwatch: Callable[[], float],
        decided: GroupDecided = told_to_nobody,
    ) -> None:
        self._groups = groups
        self._queue = queue
        self._cycles = cycles
        self._scheduler = scheduler
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._clock = clock
        self._stopwatch = stopwatch
        self._decided = decided

    def has(self, pod: Pod) -> bool:
        """Whether a pod belongs to a group."""
        return bool(group_key(pod))

    def schedule(self, popped: QueuedPod) -> None:
        """Decide about the group of a pod that was taken out of the queue."""
        attempts = [attempt for queued in self._together(popped) if (attempt := self._scheduler.begin(queued))]
        if not attempts:
            return
        names = list(dict.fromkeys(attempt.queued.profile for attempt in attempts))
        if len(names) > 1:
            words = "all pods in a single pod group should have the same .spec.schedulerName set"
            failed = Failed(Code.ERROR, f'{words}, got: "{names[1]}" and "{names[0]}"')
            for attempt in attempts:
                self._scheduler.conclude(attempt, failed)
            return
        namespace, _, name = group_key(popped.pod).partition("/")
        pods = [attempt.queued.info for attempt in attempts]
        group = TriedGroup(namespace, name, self._groups.get(group_key(popped.pod)), pods)
        scheduled, start = len(self._groups.members(group.key).scheduled), self._stopwatch()
        self._conclude(group, attempts, scheduled, start, self._cycles.run(attempts[0].profile, group))

    def _together(self, popped: QueuedPod) -> list[QueuedPod]:
        """The pods of the group that wait, the most important first, then in the order they were first tried."""
        members = self._groups.members(group_key(popped.pod))
        others = [uid for uid in members.pending if uid != popped.uid and uid not in members.scheduled]
        found = {queued.uid: queued for queued in (popped, *self._queue.pop_too(others))}
        came = [found.pop(uid) for uid in members.pending if uid in found] + list(found.values())
        return sorted(came, key=lambda queued: (-pod_priority(queued.pod), queued.initial_attempt_timestamp or 0.0))

    def _conclude(
        self,
        group: TriedGroup,
        attempts: list[Attempt],
        scheduled: int,
        start: float,
        outcome: GroupOutcome | Asking[GroupOutcome],
    ) -> None:
        if isinstance(outcome, Asking):
            self._scheduler.pause(outcome, partial(self._conclude, group, attempts, scheduled, start))
            return
        seconds = self._stopwatch() - start
        self._metrics.podgroup_scheduling_algorithm_seconds.observe(seconds)
        self._decided(group, attempts[0].profile.name, outcome, scheduled, seconds)
        if outcome.victims and group.group is not None:
            # Before the pods are back in the queue: while the victims are evicted they are to be held back there.
            preemption = for_group(group.group.metadata.uid, group.pods, outcome.preempting_plugin)
            self._scheduler.evictions.start(preemption, outcome.victims, ())
        for attempt, of_pod, trace in zip_longest(attempts, outcome.outcomes, outcome.traces):
            # The share of each: they are not timed one by one.
            self._metrics.scheduling_algorithm_seconds.observe(seconds / len(attempts))
            self._scheduler.conclude(attempt, of_pod, trace)
        self._report(group, outcome, attempts[0].profile.name, self._stopwatch() - start)

    def _report(self, group: TriedGroup, outcome: GroupOutcome, profile: str, seconds: float) -> None:
        result = "waiting_on_preemption" if outcome.waits_for_preemption else _RESULTS[outcome.code]
        self._metrics.podgroup_schedule_attempts.inc(profile, result)
        self._metrics.podgroup_scheduling_attempt_seconds.observe(seconds, profile, result)
        if log.tells(2):
            scheduled = sum(isinstance(of_pod, Placed) for of_pod in outcome.outcomes)
            log.info("Tried a pod group", v=2, podGroup=group.key, result=result, scheduledPods=scheduled)
        current = self._groups.get(group.key)
        if current is None:
            return
        expected = self._dispatcher.expected_group(current)
        condition = group_condition(expected, _PROBLEMS[outcome.code], outcome.message, self._clock.now())
        if condition is not None:
            self._dispatcher.patch_group_status(current, condition)
