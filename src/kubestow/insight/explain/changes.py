"""A single change of the pod or the world, and the nodes that are feasible after it.

A change is data: the objects that are set and the pods that are removed. `changed` applies it and undoes it; in between
the scheduler's own engine evaluates the pod.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.results import PluginError

T = TypeVar("T")

POD, NODE, CLUSTER = "pod", "node", "cluster"
_TIME_LIMIT = 0.1
"""Seconds for trying changes of one kind."""


class Change(NamedTuple):
    """A change of the pod, of nodes or of other objects."""

    side: str
    """What is changed: the `pod`, a `node`, or something else in the `cluster`."""
    text: str
    size: float
    """How large the change is, for ranking: 0 is nothing, 1 is large."""
    pod: Pod | None = None
    """Replaces the pod."""
    nodes: tuple[Node, ...] = ()
    """Nodes to add, or to replace by name."""
    removed: tuple[PodInfo, ...] = ()
    objects: tuple[Any, ...] = ()
    """Other objects to add, or to replace by name."""


def combine_changes(changes: Sequence[Change]) -> Change:
    """Combine changes, each of which was found in the world after the previous ones."""
    return Change(
        CLUSTER,
        ", ".join(change.text for change in changes),
        sum(change.size for change in changes),
        next((change.pod for change in reversed(changes) if change.pod is not None), None),
        tuple({node.metadata.name: node for change in changes for node in change.nodes}.values()),
        tuple(pod for change in changes for pod in change.removed),
        tuple({(type(obj), key_of(obj)): obj for change in changes for obj in change.objects}.values()),
    )


FeasibleAfter = Callable[[Change], list[str]]
"""Returns the nodes that are feasible after a change."""


def until_time_limit(several: Iterable[T]) -> Iterator[T]:
    """Yield items until the time limit for one kind of change has passed, but at least one item."""
    end = 0.0
    for one in several:
        end = end or perf_counter() + _TIME_LIMIT
        yield one
        if perf_counter() > end:
            return


def smallest(too_little: int, enough: int, is_enough: Callable[[int], bool]) -> int:
    """Return the smallest sufficient number by bisection between `too_little` and `enough`, which are not tried."""
    while enough - too_little > 1:
        middle = (too_little + enough) // 2
        too_little, enough = (too_little, middle) if is_enough(middle) else (middle, enough)
    return enough


@contextmanager
def changed(world: World, change: Change) -> Iterator[None]:
    """Apply a change to the world, and undo it on exit."""
    cluster = world.cluster
    nodes = [(node.metadata.name, cluster.node(node.metadata.name)) for node in change.nodes]
    objects = [cluster.listers.store_of(type(obj)).get(key_of(obj)) for obj in change.objects]
    joins = _joined_group(world, change.pod)
    try:
        if joins and change.pod is not None and cluster.groups is not None:
            cluster.groups.add_pending(joins, change.pod)
        for node in change.nodes:
            cluster.set_node(node)
        for pod in change.removed:
            cluster.remove_pod(pod.uid)
        for obj in change.objects:
            cluster.set_object(obj)
        yield
    finally:
        if joins and change.pod is not None and cluster.groups is not None:
            cluster.groups.remove_pending(joins, change.pod.metadata.uid)
        for new, obj in reversed(list(zip(change.objects, objects, strict=True))):
            if obj is None:
                cluster.remove_object(new)
            else:
                cluster.set_object(obj)
        for pod in change.removed:
            cluster.set_pod(pod.pod)
        for name, old in nodes:
            if old is None:
                cluster.remove_node(name)
            else:
                cluster.set_node(old)


def _joined_group(world: World, pod: Pod | None) -> str:
    """Return the key of the pod group that a pod joins by a change; empty if there is none."""
    groups = world.cluster.groups
    if pod is None or groups is None or not (key := group_key(pod)):
        return ""
    members = groups.members(key)
    return "" if pod.metadata.uid in members.pending or pod.metadata.uid in members.scheduled else key


def evaluate(world: World, pod: Pod, rows: IntArray | None = None) -> Evaluation | None:
    """Evaluate a pod on all nodes, or on some rows.

    None if no node can be evaluated: a plugin rejects the pod as a whole or fails.
    """
    profile = world.profile_of(pod)
    evaluation = Evaluation(profile, world.cluster, world.nominator, PodInfo(pod), rows)
    try:
        if QueueRules(profile).pre_enqueue(pod, None) is not None or not evaluation.pre_filter():
            return None
        evaluation.filter()
    except (PluginError, ValueError):
        return None
    return evaluation


def feasible_nodes(world: World, pod: Pod) -> list[str]:
    """Return the names of the feasible nodes of a pod, in natural order."""
    evaluation = evaluate(world, pod)
    if evaluation is None or evaluation.verdicts is None:
        return []
    return world.in_natural_order(evaluation.verdicts.feasible())


def is_feasible_on(world: World, pod: Pod, node: str) -> bool:
    """Return whether a node is feasible for a pod."""
    evaluation = evaluate(world, pod, np.array([world.cluster.nodes.row_of[node]]))
    return evaluation is not None and evaluation.verdicts is not None and bool(len(evaluation.verdicts.feasible()))


def feasible_after(world: World, pod: Pod, change: Change) -> list[str]:
    """Return the names of the nodes that are feasible for a pod after a change, in natural order."""
    with changed(world, change):
        return feasible_nodes(world, pod if change.pod is None else change.pod)
