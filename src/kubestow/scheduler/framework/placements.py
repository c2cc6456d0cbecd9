"""Pod groups as passed to plugins: the group that is tried, its placements, and the pods placed in a placement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kubestow.api.pod_groups import AnyGroup, CompositePodGroup, PodGroup
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pod_groups import MOST_LEVELS, PodGroups
from kubestow.scheduler.cluster.pods import PodInfo


class TriedGroup(msgspec.Struct, frozen=True):
    """A pod group that is being scheduled, or a composite pod group with all groups below it."""

    namespace: str
    name: str
    group: AnyGroup | None
    """None if the group does not exist (any more)."""
    pods: Sequence[PodInfo]
    """The pods of the group that are tried; of a composite pod group, those of its groups in their order."""
    children: "Sequence[TriedGroup]" = ()
    """The groups of a composite pod group, the oldest first."""
    states: Mapping[str, Any] = {}
    """In PodGroupPostFilter: by UID, the state that the plugin's PreFilter returned for a pod that was tried last."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.group is None else self.group.key

    @property
    def is_composite(self) -> bool:
        """Whether it consists of groups, of which there may be none."""
        return isinstance(self.group, CompositePodGroup)

    @property
    def leaves(self) -> "Sequence[TriedGroup]":
        """The pod groups at the ends of the tree: itself, unless it is composite."""
        return [leaf for child in self.children for leaf in child.leaves] if self.is_composite else [self]


def tried_tree(
    groups: PodGroups, root: AnyGroup, pods: Mapping[str, Sequence[PodInfo]], levels: int = MOST_LEVELS
) -> TriedGroup:
    """Return a group with the groups below it; `pods` are those to try, by the key of their group."""
    meta, below = root.metadata, groups.children(root) if levels > 1 else ()
    children = [tried_tree(groups, child, pods, levels - 1) for child in below]
    of_root = pods.get(root.key, ()) if isinstance(root, PodGroup) else [pod for one in children for pod in one.pods]
    return TriedGroup(meta.namespace, meta.name, root, of_root, children)


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
