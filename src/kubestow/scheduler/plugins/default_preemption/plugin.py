"""The plugin: when a pod is held back while others make room for it, and whether it may have them do so."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from kubestow.scheduler.plugins.default_preemption.eligibility import why_not_eligible

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.default_preemption.making_room import RoomMaker

_IS_PREEMPTING = ("waiting for the preemption for this pod to be finished",)
_IS_PREEMPTING_FOR_GROUP = ("waiting for the preemption for this pod group to be finished",)


class DefaultPreemption:
    """Finds the node where a pod fits if the fewest, least important pods leave."""

    name = "DefaultPreemption"

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._evicts_in_background = handle.features.scheduler_async_preemption
        self._groups = handle.cluster.groups
        self._places_groups = handle.features.topology_aware_workload_scheduling
        self._preempts_for_groups = handle.features.workload_aware_preemption

    @lazy
    def _room_maker(self) -> "RoomMaker":
        # Imported only now: where all pods fit, nobody needs it.
        from kubestow.scheduler.plugins.default_preemption.making_room import RoomMaker

        return RoomMaker(self._args, self._handle)

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if not self._evicts_in_background:
            return None
        preemptor, reasons = pod.metadata.uid, _IS_PREEMPTING
        if self._preempts_for_groups and group_key(pod):
            group = None if self._groups is None else self._groups.group_of(pod)
            if group is None:
                return None
            preemptor, reasons = group.metadata.uid, _IS_PREEMPTING_FOR_GROUP
        if not self._handle.is_preempting(preemptor):
            return None
        return Rejection(reasons, Code.UNRESOLVABLE, awaits=pod.metadata.uid)

    def requeue_on(self) -> Sequence[Registration]:
        if not self._evicts_in_background:
            return ()
        return [on(Resource.POD, Action.DELETE, self._is_for_others_to_say)]

    def _is_for_others_to_say(self, _waiting: Pod, _old: Pod, _new: None) -> bool:
        """A pod is held back only while its victims are evicted; whoever refused it before knows when to retry."""
        return False

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        self._handle.metrics.preemption_attempts.inc()
        reason = self._why_not_by_itself(pod.pod) or why_not_eligible(pod, self._handle.cluster, cycle)
        if reason is not None:
            return PostFilterResult(Code.UNSCHEDULABLE, f"preemption: {reason}")
        return self._room_maker.for_pod(pod, cycle)

    def _why_not_by_itself(self, pod: Pod) -> str | None:
        """Why a pod of a group must leave it to the group to preempt others; None if it need not."""
        if self._groups is None or not group_key(pod):
            return None
        if self._places_groups:
            group = self._groups.group_of(pod)
            if group is None:
                return "pod group for pod not found"
            if group.spec.schedulingConstraints is not None:
                return "not eligible due to placement-based pod group scheduling limitation"
        return "not eligible due to workload aware preemption enabled" if self._preempts_for_groups else None

    def pod_group_post_filter(self, group: TriedGroup) -> GroupVictims | Rejection:
        """The pods that may be evicted for a group: those of lower priority, groups that say so all or none."""
        if any(preemption_policy(pod.pod) == PREEMPT_NEVER for pod in group.pods):
            return unschedulable("not eligible due to preemptionPolicy=Never.")
        return self._room_maker.for_group(group)
