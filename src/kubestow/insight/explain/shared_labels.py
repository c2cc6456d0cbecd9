"""Labels that several constraints use: removing one constraint is not enough, but one label value may meet them all.

The constraints are those of the pod, and the anti-affinity of existing pods.
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
    """Yield an obstacle for each label that several constraints use; removing them all is not suggested."""
    excluding = _excluding(world, pod)
    for key, count in label_keys.keys(pod).items():
        if count > 1 or key in excluding:
            free = label_keys.without(pod, key)
            if key in excluding:
                # No anti-affinity excludes a pod without labels.
                free = replace(free, metadata=replace(free.metadata, labels={}))
            without = Change(POD, f"all constraints on {key} removed", 1.0, pod=free)
            yield Obstacle(without, _meeting_all(world, pod, key))


def _excluding(world: World, pod: Pod) -> set[str]:
    """Return the topology keys of the required anti-affinity terms of existing pods that exclude a pod."""
    labels = world.cluster.listers.namespace_labels(pod.metadata.namespace)
    about = world.cluster.carried.matching(PodInfo(pod), labels)
    return {carried.term.topology_key for carried, _ in about if carried.kind is TermKind.REQUIRED_ANTI}


def _meeting_all(world: World, pod: Pod, key: str) -> Callable[[Node], Iterator[Change]]:
    conditions = [one for one in label_keys.conditions(pod) if one.key == key]
    # Try each value separately: the other constraints may allow only one of them.
    single = [replace(one, values=(value,)) for one in conditions if one.operator == "In" for value in one.values]
    single += [one for one in conditions if one.operator != "In"]
    ways = [*map(meeting, dict.fromkeys(single)), in_domain(world, pod, key)]

    def at_node(node: Node) -> Iterator[Change]:
        return (change for way in ways for change in way(node))

    return at_node
