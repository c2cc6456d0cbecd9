"""Pod groups as passed to plugins: the group that is tried, its placements, and the pods placed in a placement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kubestow.api.pod_groups import PodGroup
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo


class TriedGroup(msgspec.Struct, frozen=True):
    """A pod group that is being scheduled."""

    namespace: str
    name: str
    group: PodGroup | None
    """None if the group does not exist (any more)."""
    pods: Sequence[PodInfo]
    """The pods of the group that are tried."""
    states: Mapping[str, Any] = {}
    """In PodGroupPostFilter: by UID, the state that the plugin's PreFilter returned for a pod that was tried last."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Placement(NamedTuple):
    """A set of nodes among which all pods of a group are to be placed."""

    name: str
    rows: IntArray
    """The rows of the nodes in the cluster's table, `handle.cluster.nodes`."""


class PlacedPods:
    """The pods of a group that would be placed within a placement."""

    def __init__(self, placement: Placement, pods: Sequence[PodInfo], find: Callable[[], Sequence[str]]) -> None:
        self.placement = placement
        self.pods = pods
        self._find = find
        self._nodes: Sequence[str] | None = None

    @property
    def nodes(self) -> Sequence[str]:
        """The node of each of the pods; computed on demand."""
        if self._nodes is None:
            self._nodes = self._find()
        return self._nodes


class VictimUnit(msgspec.Struct, frozen=True):
    """Pods that are evicted together, or not at all."""

    pods: tuple[PodInfo, ...]
    in_group: bool = False
    """Whether they belong to a pod group."""
    budgets_broken: int = 0
    """Number of these evictions that violate a disruption budget."""


class GroupVictims(msgspec.Struct, frozen=True):
    """From PodGroupPostFilter: the pods that may be evicted, in the order in which to try to spare them."""

    units: Sequence[VictimUnit]
    is_ongoing: bool = False
    """Victims of an earlier preemption have not ended yet: nothing is evicted, and the pods keep their nominations."""
