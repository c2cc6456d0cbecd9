"""GangScheduling: schedules at least `minCount` pods of a gang, or none.

PreEnqueue holds the pods until the group exists and has at least `minCount` pods; in a tree of groups, until enough of
the groups of the root do, at each level. PlacementFeasible ends the trial of a group as soon as too few of its pods, or
of its groups, can be placed; a group that is not a gang needs one. Permit holds a pod that has a node until enough pods
of the group, or of the tree, have one.
"""

from collections.abc import Sequence

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import AnyGroup, PodGroup, group_key, group_name
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.results import Code, Rejection, Wait, unschedulable

_MAX_WAIT_SECONDS = 5 * 60.0
_TOO_FEW_PODS = "waiting for minCount pods from a gang to appear in scheduling queue"
_TOO_FEW_GROUPS = 'waiting for composite pod group "{}" tree to meet quorum'
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
        root = self._groups.root_of(group)
        if root is None:
            return Rejection((self._groups.missing_root(group),), Code.UNRESOLVABLE)
        if self._groups.has_quorum(root):
            return None
        reason = _TOO_FEW_PODS if root is group else _TOO_FEW_GROUPS.format(root.metadata.name)
        return Rejection((reason,), Code.UNRESOLVABLE, awaits=root.key)

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
        root = self._groups.root_of(group)
        if root is None:
            raise LookupError(self._groups.missing_root(group))
        if self._groups.has_quorum(root, scheduled=True):
            return None
        return _WAIT if root is group else Wait(_MAX_WAIT_SECONDS, _TOO_FEW_GROUPS.format(root.metadata.name))

    def requeue_on(self) -> Sequence[Registration]:
        has_trees = self._groups is not None and self._groups.has_trees
        added = on(Resource.COMPOSITE_POD_GROUP, Action.ADD, self._is_group_of_pod, alike=True)
        composite = [added] if has_trees else []
        return [
            on(Resource.UNSCHEDULED_POD, Action.ADD, self._has_same_group, alike=True),
            on(Resource.ASSIGNED_POD, Action.ADD, self._has_same_group, alike=True),
            on(Resource.POD_GROUP, Action.ADD, self._is_group_of_pod, alike=True),
            on(Resource.POD_GROUP, Action.UPDATE, self._needs_fewer_pods, alike=True),
            *composite,
        ]

    def _has_same_group(self, waiting: Pod, old: None, new: Pod) -> bool:
        return self._are_in_one_tree(group_key(waiting), group_key(new))

    def _is_group_of_pod(self, waiting: Pod, old: None, new: AnyGroup) -> bool:
        return self._are_in_one_tree(group_key(waiting), new.key)

    def _needs_fewer_pods(self, waiting: Pod, old: PodGroup, new: PodGroup) -> bool:
        return 0 < new.min_count < old.min_count and self._are_in_one_tree(group_key(waiting), new.key)

    def _are_in_one_tree(self, one: str, other: str) -> bool:
        if self._groups is None or not self._groups.has_trees:
            return one != "" and one == other
        root = self._groups.root_key(one)
        return root != "" and root == self._groups.root_key(other)
