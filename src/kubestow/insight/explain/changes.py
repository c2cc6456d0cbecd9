"""A single change of the pod or the world, and which nodes would do after it.

A change is data: what is there instead, and what is gone. `changed` makes it and takes it back; in between the same
engine that decides says where the pod fits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.results import PluginError

T = TypeVar("T")

POD, NODE, CLUSTER = "pod", "node", "cluster"
_PATIENCE = 0.1
"""In seconds."""


class Change(NamedTuple):
    """What would be different."""

    side: str
    """What is changed: the `pod`, a `node`, or something else in the `cluster`."""
    words: str
    size: float
    """How much it changes, to rank by: 0 is nothing, 1 is a lot."""
    pod: Pod | None = None
    """Instead of the pod at hand."""
    nodes: tuple[Node, ...] = ()
    """Instead of those of the same name, or new ones."""
    gone: tuple[PodInfo, ...] = ()
    objects: tuple[Any, ...] = ()
    """Instead of those of the same name."""


def as_one(changes: Sequence[Change]) -> Change:
    """Changes that are made one after the other, each found in the world that those before it have left, as one."""
    return Change(
        CLUSTER,
        ", ".join(change.words for change in changes),
        sum(change.size for change in changes),
        next((change.pod for change in reversed(changes) if change.pod is not None), None),
        tuple({node.metadata.name: node for change in changes for node in change.nodes}.values()),
        tuple(pod for change in changes for pod in change.gone),
        tuple({(type(obj), key_of(obj)): obj for change in changes for obj in change.objects}.values()),
    )


Opened = Callable[[Change], list[str]]
"""The nodes that would do after a change."""


def in_time(several: Iterable[T]) -> Iterator[T]:
    """What to try of one kind, of which there may be as many as nodes: at least one, and no more once it takes long."""
    end = 0.0
    for one in several:
        end = end or perf_counter() + _PATIENCE
        yield one
        if perf_counter() > end:
            return


def smallest(too_little: int, enough: int, is_enough: Callable[[int], bool]) -> int:
    """Return the smallest number that is enough, by bisection; the two that are given are not tried."""
    while enough - too_little > 1:
        middle = (too_little + enough) // 2
        too_little, enough = (too_little, middle) if is_enough(middle) else (middle, enough)
    return enough


@contextmanager
def changed(world: World, change: Change) -> Iterator[None]:
    """The world with a change made, and as before once it is left."""
    cluster = world.cluster
    nodes = [(node.metadata.name, cluster.node(node.metadata.name)) for node in change.nodes]
    objects = [cluster.listers.store_of(type(obj)).get(key_of(obj)) for obj in change.objects]
    try:
        for node in change.nodes:
            cluster.set_node(node)
        for pod in change.gone:
            cluster.remove_pod(pod.uid)
        for obj in change.objects:
            cluster.set_object(obj)
        yield
    finally:
        for obj in objects:
            cluster.set_object(obj)
        for pod in change.gone:
            cluster.set_pod(pod.pod)
        for name, old in nodes:
            if old is None:
                cluster.remove_node(name)
            else:
                cluster.set_node(old)


def judged(world: World, pod: Pod) -> Evaluation | None:
    """The judgement of all nodes; None if there is none, because a plugin refuses the pod or fails."""
    profile = world.profile_of(pod)
    evaluation = Evaluation(profile, world.cluster, world.nominator, PodInfo(pod))
    try:
        if QueueRules(profile).pre_enqueue(pod, None) is not None or not evaluation.pre_filter():
            return None
        evaluation.filter()
    except (PluginError, ValueError):
        return None
    return evaluation


def fitting(world: World, pod: Pod) -> list[str]:
    """The nodes that would do for a pod, by name."""
    evaluation = judged(world, pod)
    if evaluation is None or evaluation.verdicts is None:
        return []
    names = world.cluster.nodes.names
    return sorted(names[row] for row in evaluation.verdicts.feasible().tolist())


def opened(world: World, pod: Pod, change: Change) -> list[str]:
    """The nodes that would do after a change."""
    with changed(world, change):
        return fitting(world, pod if change.pod is None else change.pod)
