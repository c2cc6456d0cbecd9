"""Runs the cycle of a pod group on every node, and returns the decision that the scheduler would make now.

A group of a tree is tried with the whole tree. All reservations are undone. Among equally good nodes or placements, the
first is chosen.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import AnyGroup, GangPolicy, PodGroup, group_key
from kubestow.api.priority import pod_priority
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.group_results import group_decision, try_group
from kubestow.insight.decisions.schema import GroupDecision
from kubestow.insight.explain.world import ExplainError, World
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.framework.placements import TriedGroup, tried_tree


class GroupRun:
    """A pod group of a world, its pending pods, and the outcome of its cycle."""

    def __init__(self, world: World, group: PodGroup, only: str = "") -> None:
        """`only` limits the cycle to one placement. Raises ExplainError for a group without pending pods."""
        self.only = only
        self.world = world
        self.group = group
        waiting = [pod for pod in world.pending.values() if group_key(pod) == group.key]
        self.pods = sorted(waiting, key=lambda pod: (-pod_priority(pod), pod.key))
        self.scheduled = 0 if world.cluster.groups is None else len(world.cluster.groups.members(group.key).scheduled)
        if not self.pods:
            raise ExplainError(f"pod group {group.key} has no pending pods; {self.scheduled} have a node")
        root = _root(world, group)
        part_of = f"it is part of composite pod group {root.metadata.name}, all pods of which are tried together."
        self.notes = () if root is group else (part_of,)
        self.waits = _missing_root(world, group)
        """Why the group is not tried at all: its tree is not complete."""
        self.lacks = max(0, group.min_count - self.scheduled - len(self.pods))
        """Number of pods of a gang that do not exist yet."""
        # If pods are missing, the cycle would end before it has tried one.
        self.outcome = (
            evaluate_group(world, _of_any_size(group), self.pods, only)
            if self.lacks
            else evaluate_group(world, group, self.pods, only, preempts=True)
        )

    def against(self, name: str) -> "GroupRun":
        """Run the cycle in one placement, by its name or a node's name. Raises ExplainError if there is none."""
        key, pod = self.group.topology_key, self.pods[0]
        if _root(self.world, self.group) is not self.group:
            raise ExplainError(f"pod group {self.group.key} is tried with its composite pod group: omit --against")
        if not key:
            instead = f"kubestow explain {pod.key} --against NODE"
            raise ExplainError(f"pod group {self.group.key} has no topology constraint; use one of its pods: {instead}")
        nodes = [node for node in self.world.cluster.nodes.nodes if node is not None]
        values = {node.metadata.labels.get(key, "") for node in nodes if node.metadata.name == name}
        values = values or {name} & {node.metadata.labels.get(key, "") for node in nodes}
        value = values.pop() if values else ""
        if not value:
            raise ExplainError(f"{name} is neither a value of label {key} nor a node with this label")
        return GroupRun(self.world, self.group, value)

    @property
    def best(self) -> int:
        """Number of pods that find a node in the best placement."""
        return max((one.placed for one in self.outcome.tried), default=0)

    def decision(self) -> GroupDecision:
        """Return the decision in the form of the JSON schema."""
        decision = group_decision(_to_try(self.group, self.pods), self.outcome)
        if not self.lacks and not self.waits:
            return decision
        message = self.waits or f"the gang waits for {self.lacks} more pods to be created"
        missing = max(0, self.group.min_count - self.scheduled - self.best)
        unschedulable = replace(decision, outcome=schema.UNSCHEDULABLE, chosen={}, placement="", victims=())
        return replace(unschedulable, message=message, missing=missing)


def evaluate_group(
    world: World, group: PodGroup, pods: Sequence[Pod], only: str = "", *, preempts: bool = False
) -> GroupOutcome:
    """Run the cycle of a group, or of its tree, without extenders; `only` limits it to one placement.

    Without `preempts`, no victims are searched for a group that does not fit. Raises ExplainError if no profile
    schedules its pods.
    """
    tried, root = _to_try(group, pods), _root(world, group)
    if root is not group and world.cluster.groups is not None:
        waiting: dict[str, list[PodInfo]] = {}
        for pod in world.pending.values():
            waiting.setdefault(group_key(pod), []).append(PodInfo(pod))
        tried = tried_tree(world.cluster.groups, root, waiting | {group.key: tried.pods})
    outcome = try_group(
        world.profile_of(pods[0]),
        world.cluster,
        world.nominator,
        world.features,
        tried,
        only=only,
        runs_post_filter=preempts,
    )
    of_leaves = zip(tried.leaves, outcome.leaves or (outcome,), strict=True)
    return next(of_leaf for leaf, of_leaf in of_leaves if leaf.key == group.key)


def _root(world: World, group: PodGroup) -> AnyGroup:
    """Return the root of a group's tree; the group itself if it has no root."""
    groups = world.cluster.groups
    return group if groups is None else groups.root_of(group) or group


def _missing_root(world: World, group: PodGroup) -> str:
    """Return why a group has no root; empty if it has one."""
    groups = world.cluster.groups
    return "" if groups is None or groups.root_of(group) is not None else groups.missing_root(group)


def assume_group(run: GroupRun) -> None:
    """Assume the pods on their chosen nodes, and remove pods without one from the world."""
    chosen = run.decision().chosen
    for pod in run.pods:
        info, node = run.world.remove_for_scheduling(pod), chosen.get(pod.key)
        if node is not None:
            run.world.cluster.assume(info.placed_on(node), node)


def _to_try(group: PodGroup, pods: Sequence[Pod]) -> TriedGroup:
    return TriedGroup(group.metadata.namespace, group.metadata.name, group, [PodInfo(pod) for pod in pods])


def _of_any_size(group: PodGroup) -> PodGroup:
    """Return a group that fits if one of its pods does."""
    policy = replace(group.spec.schedulingPolicy, gang=GangPolicy(1))
    return replace(group, spec=replace(group.spec, schedulingPolicy=policy))
