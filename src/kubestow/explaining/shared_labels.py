"""Labels that several constraints of a pod name: to drop one of them is not enough, but one value may meet them all."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kubestow.explaining import label_keys
from kubestow.explaining.changes import POD, Change
from kubestow.explaining.obstacles import Obstacle, in_domain, meeting
from kubestow.explaining.world import World
from kubestow.model.node import Node
from kubestow.model.pod import Pod


def shared_labels(world: World, pod: Pod) -> Iterator[Obstacle]:
    """All that a pod wants of each such label; without it several things are changed, which is nothing to suggest."""
    for key, times in label_keys.keys(pod).items():
        if times > 1:
            without = Change(POD, f"all that is wanted of {key} dropped", 1.0, pod=label_keys.without(pod, key))
            yield Obstacle(without, _meeting_all(world, pod, key))


def _meeting_all(world: World, pod: Pod, key: str) -> Callable[[Node], Iterator[Change]]:
    conditions = [one for one in label_keys.conditions(pod) if one.key == key]
    # Each value by itself: the other constraints may allow but one of them.
    single = [replace(one, values=(value,)) for one in conditions if one.operator == "In" for value in one.values]
    single += [one for one in conditions if one.operator != "In"]
    ways = [*map(meeting, dict.fromkeys(single)), in_domain(world, pod, key)]

    def at_node(node: Node) -> Iterator[Change]:
        return (change for way in ways for change in way(node))

    return at_node
