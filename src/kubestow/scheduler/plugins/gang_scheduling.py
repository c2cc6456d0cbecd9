"""GangScheduling: schedules at least `minCount` pods of a gang, or none.

PreEnqueue holds the pods until the group exists and has at least `minCount` pods. PlacementFeasible ends the trial of a
group as soon as too few of its pods can get a node; a group that is not a gang needs one. Permit holds a pod that has a
node until `minCount` pods of the group have one.
"""

from collections.abc import Sequence

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, group_key, group_name
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.results import Code, Rejection, Wait, unschedulable

_MAX_WAIT_SECONDS = 5 * 60.0
_TOO_FEW_PODS = "waiting for minCount pods from a gang to appear in scheduling queue"
_WAIT = Wait(_MAX_WAIT_SECONDS, "waiting for minCount pods from a gang to be scheduled")


class GangScheduling:
    """Holds the pods of a gang until all of them can be scheduled."""

    name = "GangScheduling"

    def __init__(self, args: None, handle: Handle) -> None:
        self._groups = handle.cluster.groups

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        key = group_key(pod)
        if not key or self._groups is None:
            return None
        group = self._groups.get(key)
        if group is None:
            # kube-scheduler's message, including its mistake.
            reason = f'waiting for pods\'s pod group "{group_name(pod)}" to appear in scheduling queue'
            return Rejection((reason,), Code.UNRESOLVABLE, awaits=key)
        if self._groups.members(key).count < group.min_count:
            return Rejection((_TOO_FEW_PODS,), Code.UNRESOLVABLE, awaits=key)
        return None

    def placement_feasible(self, group: TriedGroup, scheduled: int, remaining: int) -> Rejection | Wait | None:
        """Return None if enough pods have a node, Wait if the remaining ones may be enough, or a rejection."""
        least = 1 if group.group is None else group.group.min_count or 1
        if scheduled >= least:
            return None
        counts = f"{scheduled} scheduled, {remaining} remaining"
        if scheduled + remaining < least:
            return unschedulable(f"minCount ({least}) cannot be satisfied: {counts}")
        return Wait(0.0, f"minCount ({least}) is not yet satisfied: {counts}")

    def permit(self, state: None, pod: PodInfo, node: str) -> Wait | None:
        key = group_key(pod.pod)
        if not key or self._groups is None:
            return None
        group = self._groups.get(key)
        if group is None:
            missing = f'podgroup.scheduling.k8s.io "{group_name(pod.pod)}" not found'
            raise LookupError(f"failed to get podGroup {key}: {missing}")
        return _WAIT if len(self._groups.members(key).scheduled) < group.min_count else None

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.UNSCHEDULED_POD, Action.ADD, self._has_same_group, alike=True),
            on(Resource.ASSIGNED_POD, Action.ADD, self._has_same_group, alike=True),
            on(Resource.POD_GROUP, Action.ADD, self._is_group_of_pod, alike=True),
            on(Resource.POD_GROUP, Action.UPDATE, self._needs_fewer_pods, alike=True),
        ]

    def _has_same_group(self, waiting: Pod, old: None, new: Pod) -> bool:
        return group_key(waiting) != "" and group_key(waiting) == group_key(new)

    def _is_group_of_pod(self, waiting: Pod, old: None, new: PodGroup) -> bool:
        return group_key(waiting) == new.key

    def _needs_fewer_pods(self, waiting: Pod, old: PodGroup, new: PodGroup) -> bool:
        return group_key(waiting) == new.key and 0 < new.min_count < old.min_count
