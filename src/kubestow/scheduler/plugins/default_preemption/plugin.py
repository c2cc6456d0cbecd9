"""The DefaultPreemption plugin: its extension points and requeue hints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubestow.api.lazy import lazy
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.priority import PREEMPT_NEVER, preemption_policy
from kubestow.config.plugin_args import DefaultPreemptionArgs
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import GroupVictims, TriedGroup
from kubestow.scheduler.framework.plugin import FailedEvaluation
from kubestow.scheduler.framework.results import Candidates, Code, PostFilterResult, Rejection, unschedulable
from kubestow.scheduler.plugins.default_preemption.eligibility import ineligibility_reason, is_ongoing

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.default_preemption.evaluator import Evaluator

_IS_PREEMPTING = ("waiting for the preemption for this pod to be finished",)
_IS_PREEMPTING_FOR_GROUP = ("waiting for the preemption for this pod group to be finished",)


class DefaultPreemption:
    """Finds the node where a pod fits after the eviction of the fewest and least important pods."""

    name = "DefaultPreemption"

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._evicts_in_background = handle.features.scheduler_async_preemption
        self._groups = handle.cluster.groups
        self._group_has_policy = handle.features.pod_group_preemption_policy

    @lazy
    def _evaluator(self) -> "Evaluator":
        # Imported here, because it is not needed while all pods fit.
        from kubestow.scheduler.plugins.default_preemption.evaluator import Evaluator

        return Evaluator(self._args, self._handle)

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if not self._evicts_in_background:
            return None
        preemptor, reasons = pod.metadata.uid, _IS_PREEMPTING
        if self._groups is not None and group_key(pod):
            group = self._groups.group_of(pod)
            root = None if group is None else self._groups.root_of(group)
            if root is None:
                return None
            preemptor, reasons = root.metadata.uid, _IS_PREEMPTING_FOR_GROUP
        if not self._handle.is_preempting(preemptor):
            return None
        return Rejection(reasons, Code.UNRESOLVABLE, awaits=pod.metadata.uid)

    def requeue_on(self) -> Sequence[Registration]:
        if not self._evicts_in_background:
            return ()
        return [on(Resource.ASSIGNED_POD, Action.DELETE, self._ignore_event)]

    def _ignore_event(self, _waiting: Pod, _old: Pod, _new: None) -> bool:
        """Return False: PreEnqueue holds a pod only during eviction; other plugins determine when to retry it."""
        return False

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        self._handle.metrics.preemption_attempts.inc()
        started = self._handle.clock.now()
        found = self._find_victims(pod, cycle)
        if isinstance(found, PostFilterResult):
            return self._observed(started, found)
        return replace(found, choose=lambda left: self._observed(started, found.choose(left)))

    def _observed(self, started: float, found: PostFilterResult) -> PostFilterResult:
        seconds = self._handle.clock.now() - started
        self._handle.metrics.preemption_evaluation_seconds.observe(seconds, "pod", found.code.label)
        return found

    def _find_victims(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        reason = ineligibility_reason(pod, self._handle.cluster, cycle)
        if reason is not None:
            return PostFilterResult(Code.UNSCHEDULABLE, f"preemption: {reason}")
        return self._evaluator.for_pod(pod, cycle)

    def pod_group_post_filter(self, group: TriedGroup) -> GroupVictims | Rejection:
        """Return the pods that may be evicted for a group: those of lower priority, and whole groups if required."""
        if self._never_preempts(group):
            return unschedulable("pod group preemption: not eligible due to preemptionPolicy=Never.")
        if is_ongoing(group, self._handle.cluster):
            return GroupVictims((), is_ongoing=True)
        return self._evaluator.for_group(group)

    def _never_preempts(self, group: TriedGroup) -> bool:
        if self._group_has_policy:
            return group.group is not None and group.group.spec.preemptionPolicy == PREEMPT_NEVER
        return any(preemption_policy(pod.pod) == PREEMPT_NEVER for pod in group.pods)
