"""Causes in the pod group of the pod, and gates."""

from collections.abc import Iterator

from msgspec.structs import replace

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import PodSchedulingGroup
from kubestow.api.pod_groups import (
    AnyGroup,
    CompositeGangPolicy,
    CompositePodGroup,
    CompositePodGroupPolicy,
    PodGroup,
    PodGroupConstraints,
    TopologyConstraint,
    group_key,
    group_name,
)
from kubestow.insight.explain.causes.cause import NEAR, Cause, Scene, counted, label_keys, names_in
from kubestow.insight.explain.changes import CLUSTER, Change
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.insight.explain.obstacles import pod_change
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.pod_groups import PodGroups

_GANG = "GangScheduling"


def topology_causes(world: World, group: PodGroup) -> Iterator[Cause]:
    """Yield the topology key of a group that no node has as a label."""
    key, keys = group.topology_key, world.of_nodes(label_keys)
    if key and keys and key not in keys:
        similar = nearest(key, keys)
        changes = []
        for near in similar:
            constraints = PodGroupConstraints((TopologyConstraint(near),))
            changed = replace(group, spec=replace(group.spec, schedulingConstraints=constraints))
            changes.append(Change(CLUSTER, f"topology key {key} changed to {near}", NEAR, objects=(changed,)))
        text = f"no node has the label {key} of the topology constraint{did_you_mean(similar)}"
        yield Cause("TopologyPlacementGenerator", text, similar, tuple(changes))


def group_causes(scene: Scene) -> Iterator[Cause]:
    """Yield what the group of the pod lacks."""
    groups, key = scene.cluster.groups, group_key(scene.pod)
    if groups is None or not key or _GANG not in scene.rejecting:
        return
    group = groups.get(key)
    if group is None:
        namespace = scene.pod.metadata.namespace
        similar = nearest(group_name(scene.pod), names_in(scene.listers.pod_groups, namespace))
        changes = []
        for one in similar if scene.pod.spec.schedulingGroup is not None else ():
            named = replace(scene.pod.spec.schedulingGroup or PodSchedulingGroup(), podGroupName=one)
            changes.append(pod_change(scene.pod, f"pod group changed to {one}", NEAR, schedulingGroup=named))
        made = PodGroup(ObjectMeta(group_name(scene.pod), namespace))
        if scene.pod.spec.schedulingGroup is not None:
            changes.append(Change(CLUSTER, f"pod group {made.key} created", 0.2, objects=(made,)))
        text = (
            f"there is no pod group {group_name(scene.pod)} in namespace {namespace}: create it{did_you_mean(similar)}"
        )
        yield Cause(_GANG, text, similar, tuple(changes))
        return
    gang, count, root = group.spec.schedulingPolicy.gang, groups.members(key).count, groups.root_of(group)
    if root is None:
        parent = group.spec.parentCompositePodGroupName or ""
        similar = nearest(parent, names_in(scene.listers.composite_pod_groups, group.metadata.namespace))
        moved = [_moved(group, one, f"parent of pod group {key} changed from {parent} to {one}") for one in similar]
        moved.append(_moved(group, None, f"parent {parent} of pod group {key} removed")._replace(size=0.4))
        text = f"pod group {key} is in no complete tree: {groups.missing_root(group)}{did_you_mean(similar)}"
        yield Cause(_GANG, text, similar, tuple(moved))
    elif gang is None or count >= group.min_count:
        yield _of_tree(groups, group, root)
    else:
        policy = replace(group.spec.schedulingPolicy, gang=replace(gang, minCount=count))
        lower = replace(group, spec=replace(group.spec, schedulingPolicy=policy))
        lowered = Change(CLUSTER, f"minCount of pod group {key} lowered to {count}", 0.3, objects=(lower,))
        text = f"pod group {key} has {counted(count, 'pod')}, and its minCount is {group.min_count}"
        yield Cause(_GANG, text, (), (lowered,) if count else ())


def _moved(group: PodGroup, parent: str | None, text: str) -> Change:
    moved = replace(group, spec=replace(group.spec, parentCompositePodGroupName=parent))
    return Change(CLUSTER, text, NEAR, objects=(moved,))


def _of_tree(groups: PodGroups, group: PodGroup, root: AnyGroup) -> Cause:
    """Return which group above a group, the lowest one, has too few groups with enough pods."""
    lacking = next((one for one in groups.path(group) if one is not None and not groups.has_quorum(one)), root)
    ready = sum(map(groups.has_quorum, groups.children(lacking)))
    name, changes = lacking.metadata.name, []
    if ready and isinstance(lacking, CompositePodGroup):
        policy = CompositePodGroupPolicy(CompositeGangPolicy(ready))
        lower = replace(lacking, spec=replace(lacking.spec, schedulingPolicy=policy))
        text = f"minGroupCount of composite pod group {name} lowered to {ready}"
        changes.append(Change(CLUSTER, text, 0.3, objects=(lower,)))
    needed = f"it needs {lacking.min_count or 1}"
    text = f"composite pod group {name} has {counted(ready, 'group')} with enough pods, and {needed}"
    return Cause(_GANG, text, (), tuple(changes))
