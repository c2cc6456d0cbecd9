"""The scheduling of pod groups: one cycle decides for all waiting pods of a group, or of a tree of groups.

popped group -> group cycle -> bound, or back to the queue together
                            -> condition PodGroupInitiallyScheduled of each pod group
"""

from collections.abc import Callable, Sequence

from kubestow.api.conditions import SCHEDULER_ERROR, UNSCHEDULABLE, group_condition
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import AnyGroup, group_key
from kubestow.api.priority import PREEMPT_LOWER_PRIORITY, pod_priority, preemption_policy
from kubestow.clock import Clock
from kubestow.config.features import Features
from kubestow.scheduler.attempts import Attempts
from kubestow.scheduler.binding.binder import Attempt
from kubestow.scheduler.binding.dispatcher import Dispatcher
from kubestow.scheduler.binding.evictions import Evictions, Preemption
from kubestow.scheduler.cluster.pod_groups import PodGroups
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.group_outcome import GroupOutcome, PostFiltered
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.scheduler.cycle.pod_group import GroupCycles
from kubestow.scheduler.extenders.extender import Conversation
from kubestow.scheduler.framework.placements import TriedGroup, tried_tree
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.observer import Observer
from kubestow.scheduler.queue.group_queue import GroupQueue
from kubestow.scheduler.queue.queued_group import QueuedGroup
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

_RESULTS = {Code.SUCCESS: "scheduled", Code.UNSCHEDULABLE: "unschedulable", Code.ERROR: "error"}
_PROBLEMS = {Code.SUCCESS: "", Code.UNSCHEDULABLE: UNSCHEDULABLE, Code.ERROR: SCHEDULER_ERROR}


class GroupScheduling:
    """Schedules popped groups."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        groups: PodGroups,
        queue: GroupQueue,
        cycles: GroupCycles,
        attempts: Attempts,
        evictions: Evictions,
        dispatcher: Dispatcher,
        observer: Observer,
        metrics: SchedulerMetrics,
        features: Features,
        clock: Clock,
        stopwatch: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        self._queue = queue
        self._cycles = cycles
        self._attempts = attempts
        self._evictions = evictions
        self._dispatcher = dispatcher
        self._observer = observer
        self._metrics = metrics
        self._group_has_policy = features.pod_group_preemption_policy
        self._clock = clock
        self._stopwatch = stopwatch

    def schedule(self, popped: QueuedGroup) -> Conversation[None]:
        """Schedule a popped group; yield the calls to extenders."""
        started = self._stopwatch()
        problem = self._problem(popped)
        begun = [attempt for queued in popped.pods if (attempt := self._attempts.begin(queued))]
        group = self._tried(popped.key, [attempt.info for attempt in begun])
        of_pod = {attempt.queued.uid: attempt for attempt in begun}
        attempts = [of_pod[pod.uid] for pod in group.pods]
        code = Code.SUCCESS
        if problem:
            code = Code.ERROR
            for attempt in attempts:
                self._attempts.conclude(attempt, Failed(code, problem))
            for leaf in group.leaves:
                self._write_condition(leaf, code, problem)
        elif attempts:
            outcome = yield from self._cycles.schedule(attempts[0].profile, group)
            self._conclude(group, attempts, started, outcome)
            code = outcome.code
        self._queue.requeue_group(popped, code)

    def _tried(self, key: str, pods: Sequence[PodInfo]) -> TriedGroup:
        """Return the group, or the tree, to try with the pods."""
        group = self._groups.find(key)
        if group is None:
            namespace, _, name = key.partition("/")
            return TriedGroup(namespace, name, None, pods)
        of_group: dict[str, list[PodInfo]] = {}
        for pod in pods:
            of_group.setdefault(group_key(pod.pod), []).append(pod)
        return tried_tree(self._groups, group, of_group)

    def _problem(self, popped: QueuedGroup) -> str:
        """Return why the pods cannot be scheduled together; empty if they can."""
        pods = [queued.pod for queued in popped.pods]
        group = self._groups.find(popped.key)
        if group is None:
            return f'podgroup.scheduling.k8s.io "{popped.key.partition("/")[2]}" not found'
        scheduled = (self._cluster.pod(uid) for uid in self._groups.scheduled(group))
        policy = _policy_of(group) if self._group_has_policy else preemption_policy(pods[0])
        problems = (
            self._problem_of(pod, group, pods[0], policy)
            for pod in (*pods, *(placed.pod for placed in scheduled if placed is not None))
        )
        return next(filter(None, problems), "")

    def _problem_of(self, pod: Pod, group: AnyGroup, first: Pod, policy: str) -> str:
        """Return what differs between a pod and the others; empty if nothing does."""
        name, priority, of_pod = pod.spec.schedulerName, pod_priority(pod), preemption_policy(pod)
        same = "all pods in a single pod group should have the same"
        if name != first.spec.schedulerName:
            return f'{same} .spec.schedulerName set, got: "{name}" and "{first.spec.schedulerName}"'
        if priority != group.priority:
            return f"{same} priority as the pod group's priority, got {priority} and {group.priority}"
        if of_pod != policy:
            of_group = " as the pod group's preemption policy" if self._group_has_policy else ""
            return f"{same} preemption policy{of_group}, got {of_pod} and {policy}"
        return ""

    def _conclude(self, group: TriedGroup, attempts: Sequence[Attempt], started: float, outcome: GroupOutcome) -> None:
        profile, seconds = attempts[0].profile, self._stopwatch() - started
        self._metrics.podgroup_scheduling_algorithm_seconds.observe(seconds)
        of_leaves = outcome.leaves or (outcome,)
        self._count_placements(outcome, profile.name)
        self._count_preemption(outcome.found, group)
        self._observer.on_group_decision(group, profile, outcome, seconds)
        if outcome.found.victims and group.group is not None:
            # Before the pods are requeued: PreEnqueue gates them there while the victims are being evicted.
            preemption = Preemption.for_group(group.group, group.pods, outcome.found.plugin)
            self._evictions.start(preemption, outcome.found.victims, ())
        for attempt, pod_outcome in zip(attempts, outcome.outcomes, strict=True):
            # The pods are not timed one by one, so each counts an equal share.
            self._metrics.scheduling_algorithm_seconds.observe(seconds / len(attempts))
            self._attempts.conclude(attempt, pod_outcome)
        result = "waiting_on_preemption" if outcome.waits_for_preemption else _RESULTS[outcome.code]
        self._metrics.podgroup_schedule_attempts.inc(profile.name, result)
        self._metrics.podgroup_scheduling_attempt_seconds.observe(self._stopwatch() - started, profile.name, result)
        if log.is_enabled(2):
            placed = sum(isinstance(pod_outcome, Placed) for pod_outcome in outcome.outcomes)
            log.info("Tried a pod group", v=2, podGroup=group.key, result=result, scheduledPods=placed)
        for leaf, of_leaf in zip(group.leaves, of_leaves, strict=True):
            self._write_condition(leaf, of_leaf.code, of_leaf.message)

    def _count_placements(self, outcome: GroupOutcome, profile: str) -> None:
        self._metrics.generated_placements.add(len(outcome.evaluated), profile)
        for one in outcome.evaluated:
            result = "feasible" if one.fits else "infeasible"
            self._metrics.placement_evaluations.inc(profile, result)
            self._metrics.placement_evaluation_seconds.observe(one.seconds, profile, result)

    def _count_preemption(self, found: PostFiltered, group: TriedGroup) -> None:
        metrics, kind = self._metrics, type(group.group).__name__.lower()
        if found.attempted is not None:
            metrics.workload_preemption_attempts.inc(found.attempted.label)
        if found.attempted is not None and found.seconds is not None:
            metrics.preemption_evaluation_seconds.observe(found.seconds, "podgroup", found.attempted.label)
        if found.disruptions:
            metrics.preemption_workload_disruptions.observe(found.disruptions, kind)
        if found.budgets_broken:
            metrics.preemption_budget_violations.add(found.budgets_broken, kind)

    def _write_condition(self, group: TriedGroup, code: Code, message: str) -> None:
        current = self._groups.get(group.key)
        if current is None:
            return
        expected = self._dispatcher.expected_group(current)
        condition = group_condition(expected, _PROBLEMS[code], message, self._clock.now())
        if condition is not None:
            self._dispatcher.patch_group_status(current, condition)


def _policy_of(group: AnyGroup) -> str:
    return group.spec.preemptionPolicy or PREEMPT_LOWER_PRIORITY
