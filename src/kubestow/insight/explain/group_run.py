"""A pod group tried on every node, told as a decision: what the scheduler would do with it now.

It is the cycle of pod groups itself; what it takes is given back. Of several nodes or placements that are equally good,
the first is taken.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, group_key
from kubestow.api.priority import pod_priority
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.group_results import group_decision, try_group
from kubestow.insight.decisions.schema import GroupDecision
from kubestow.insight.explain.world import ExplainError, World
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.framework.placements import TriedGroup


class GroupRun:
    """A group of a world, its pods that wait, and what would become of them."""

    def __init__(self, world: World, group: PodGroup, only: str = "") -> None:
        """`only` is the one placement to try, if not all are; raises ExplainError for a group of which no pod waits."""
        self.only = only
        self.world = world
        self.group = group
        waiting = [pod for pod in world.pending.values() if group_key(pod) == group.key]
        self.pods = sorted(waiting, key=lambda pod: (-pod_priority(pod), pod.key))
        self.scheduled = 0 if world.cluster.groups is None else len(world.cluster.groups.members(group.key).scheduled)
        if not self.pods:
            raise ExplainError(f"pod group {group.key}: none of its pods waits; {self.scheduled} have a node")
        self.lacks = max(0, group.min_count - self.scheduled - len(self.pods))
        """How many pods of a gang have not even been created."""
        self.outcome = tried(world, group, self.pods, only)

    def against(self, name: str) -> "GroupRun":
        """The same in one placement only, or in that of a node; raises ExplainError if there is none."""
        key, pod = self.group.topology_key, self.pods[0]
        if not key:
            instead = f"kubestow explain {pod.key} --against NODE"
            raise ExplainError(
                f"pod group {self.group.key} has no topology constraint; ask about a pod of it: {instead}"
            )
        nodes = [node for node in self.world.cluster.nodes.nodes if node is not None]
        values = {node.metadata.labels.get(key, "") for node in nodes if node.metadata.name == name}
        values = values or {name} & {node.metadata.labels.get(key, "") for node in nodes}
        value = values.pop() if values else ""
        if not value:
            raise ExplainError(f"{name} is neither a value of {key}, nor a node that has one")
        return GroupRun(self.world, self.group, value)

    @property
    def best(self) -> int:
        """How many pods of the group find a node in the best of the placements."""
        return max((one.placed for one in self.outcome.tried), default=0)

    def decision(self) -> GroupDecision:
        """All of it, as JSON has it."""
        decision = group_decision(_to_try(self.group, self.pods), self.outcome, self.scheduled)
        if not self.lacks:
            return decision
        words = f"the gang waits for {self.lacks} more pods to be created"
        missing = self.group.min_count - self.scheduled - self.best
        return replace(decision, outcome=schema.UNSCHEDULABLE, chosen={}, placement="", message=words, missing=missing)


def tried(world: World, group: PodGroup, pods: Sequence[Pod], only: str = "") -> GroupOutcome:
    """Return the outcome of the group's cycle, in one placement only if one is named.

    Raises ExplainError if no profile schedules its pods. Extenders are not asked.
    """
    profile = world.profile_of(pods[0])
    return try_group(profile, world.cluster, world.nominator, world.features, _to_try(group, pods), only=only)


def take_group(run: GroupRun) -> None:
    """Put the pods where they would go, and leave out those that would go nowhere."""
    chosen = run.decision().chosen
    for pod in run.pods:
        info, node = run.world.take_out(pod), chosen.get(pod.key)
        if node is not None:
            run.world.cluster.assume(info.placed_on(node), node)


def _to_try(group: PodGroup, pods: Sequence[Pod]) -> TriedGroup:
    return TriedGroup(group.metadata.namespace, group.metadata.name, group, [PodInfo(pod) for pod in pods])
