"""Pod groups as plugins see them: the group that is tried, placements for it, and what a placement would take."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from kubestow.api.pod_groups import PodGroup
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo


class TriedGroup(msgspec.Struct, frozen=True):
    """A pod group whose turn it is."""

    namespace: str
    name: str
    group: PodGroup | None
    """None for a group that does not exist (any more)."""
    pods: Sequence[PodInfo]
    """Those of its pods that are tried."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Placement(NamedTuple):
    """Nodes among which all pods of a group are to be placed."""

    name: str
    rows: IntArray
    """Their rows in the cluster's table, `handle.cluster.nodes`."""


class PlacedPods:
    """The pods of a group that would be placed within a placement."""

    def __init__(self, placement: Placement, pods: Sequence[PodInfo], find: Callable[[], Sequence[str]]) -> None:
        self.placement = placement
        self.pods = pods
        self._find = find
        self._nodes: Sequence[str] | None = None

    @property
    def nodes(self) -> Sequence[str]:
        """Where each of the pods would be placed; found out when first asked for."""
        if self._nodes is None:
            self._nodes = self._find()
        return self._nodes


class VictimUnit(msgspec.Struct, frozen=True):
    """Pods that are evicted together, or not at all."""

    pods: tuple[PodInfo, ...]


class GroupVictims(msgspec.Struct, frozen=True):
    """From PostFilter for a group: who may be evicted for it, in the order in which to try to spare them."""

    units: Sequence[VictimUnit]
