"""GangScheduling: schedules at least `minCount` pods of a gang, or none.

PreEnqueue holds the pods until the group exists and has at least `minCount` pods. Permit holds a pod that has a node
until `minCount` pods of the group have one.
"""

from collections.abc import Sequence

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, group_key, group_name
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Code, Rejection, Wait

_MAX_WAIT_SECONDS = 5 * 60.0
_TOO_FEW_PODS = "waiting for minCount pods from a gang to appear in scheduling queue"
_WAIT = Wait(_MAX_WAIT_SECONDS, "waiting for minCount pods from a gang to be scheduled")


class GangScheduling:
    """Holds the pods of a gang in PreEnqueue and in Permit."""

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
            on(Resource.POD, Action.ADD, self._has_same_group, alike=True),
            on(Resource.POD_GROUP, Action.ADD, self._is_group_of_pod, alike=True),
        ]

    def _has_same_group(self, waiting: Pod, old: None, new: Pod) -> bool:
        return group_key(waiting) != "" and group_key(waiting) == group_key(new)

    def _is_group_of_pod(self, waiting: Pod, old: None, new: PodGroup) -> bool:
        return group_key(waiting) == new.key
