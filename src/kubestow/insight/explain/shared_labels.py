"""Labels that several constraints name: to drop one of them is not enough, but one value may meet them all.

They are the pod's own, and the anti-affinity of pods that are there.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.insight.explain import label_keys
from kubestow.insight.explain.changes import POD, Change
from kubestow.insight.explain.obstacles import Obstacle, in_domain, meeting
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.affinity_terms import TermKind
from kubestow.scheduler.cluster.pods import PodInfo


def shared_labels(world: World, pod: Pod) -> Iterator[Obstacle]:
    """All that is wanted of each such label; without it several things are changed, which is nothing to suggest."""
    objecting = _objecting(world, pod)
    for key, times in label_keys.keys(pod).items():
        if times > 1 or key in objecting:
            free = label_keys.without(pod, key)
            if key in objecting:
                # Nobody wants to be away from a pod without labels.
                free = replace(free, metadata=replace(free.metadata, labels={}))
            without = Change(POD, f"all that is wanted of {key} dropped", 1.0, pod=free)
            yield Obstacle(without, _meeting_all(world, pod, key))


def _objecting(world: World, pod: Pod) -> set[str]:
    """The topologies by which pods that are there want to be away from a pod."""
    labels = world.cluster.listers.namespace_labels(pod.metadata.namespace)
    about = world.cluster.carried.about(PodInfo(pod), labels)
    return {carried.term.topology_key for carried, _ in about if carried.kind is TermKind.REQUIRED_ANTI}


def _meeting_all(world: World, pod: Pod, key: str) -> Callable[[Node], Iterator[Change]]:
    conditions = [one for one in label_keys.conditions(pod) if one.key == key]
    # Each value by itself: the other constraints may allow but one of them.
    single = [replace(one, values=(value,)) for one in conditions if one.operator == "In" for value in one.values]
    single += [one for one in conditions if one.operator != "In"]
    ways = [*map(meeting, dict.fromkeys(single)), in_domain(world, pod, key)]

    def at_node(node: Node) -> Iterator[Change]:
        return (change for way in ways for change in way(node))

    return at_node
