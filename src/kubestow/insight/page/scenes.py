"""The input of a dry run: objects, configuration and time, of a live scheduler or of a simulation at its end."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.workloads import PriorityClass
from kubestow.insight.explain.world import Setup, World
from kubestow.scheduler.cluster.state import Cluster


class Scene(NamedTuple):
    """The objects and settings of dry runs."""

    setup: Setup
    objects: list[Any]
    now: float

    def world(self) -> World:
        """Return a new world. Raises ExplainError, ProfileError."""
        return World(self.setup, [*_priority_classes(self.objects), *self.objects], self.now)


def pods_of(objects: Iterable[Any]) -> Iterator[Pod]:
    """Return the objects that are pods."""
    return (obj for obj in objects if isinstance(obj, Pod))


def all_objects(cluster: Cluster, pending: Iterable[Pod]) -> list[Any]:
    """Return all objects of a cluster and the pending pods. Must be called between two cycles."""
    found: list[Any] = [node for node in cluster.nodes.nodes if node is not None]
    for store in cluster.listers.stores():
        found += store
    placed = {info.uid: info.pod for _, info in cluster.placed_pods()}
    return [*found, *placed.values(), *(pod for pod in pending if pod.metadata.uid not in placed)]


def _priority_classes(objects: Iterable[Any]) -> Iterator[PriorityClass]:
    """Yield priority classes made from the pods that name them, because a scheduler does not read the objects."""
    values = {}
    for pod in pods_of(objects):
        if pod.spec.priorityClassName and pod.spec.priority is not None:
            values[pod.spec.priorityClassName] = pod.spec.priority
    for name, value in values.items():
        yield PriorityClass(metadata=replace(ObjectMeta(), name=name), value=value)
