"""Pod groups and their members: pending, assumed or bound.

Groups that name a composite pod group as their parent form a tree. Its leaves are pod groups, its other groups are
composite, and its root has no parent. Without the feature gate, parents are ignored: each group is a tree of its own.
"""

from collections.abc import Iterator

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import COMPOSITE, AnyGroup, PodGroup, group_key
from kubestow.config.features import Features
from kubestow.scheduler.cluster.history import MEMBER, History
from kubestow.scheduler.cluster.listers import Listers

MOST_LEVELS = 4
"""Maximum number of levels of a tree, as in the API."""


class Members:
    """The pods of one group, by UID."""

    __slots__ = ("pending", "scheduled", "waiting_to_be_placed")

    def __init__(self) -> None:
        self.pending: dict[str, Pod] = {}
        """Pods that have not been seen on a node: they are queued, or assumed on one."""
        self.scheduled: dict[str, str] = {}
        """The nodes of pods that are assumed or bound."""
        self.waiting_to_be_placed = 0
        """Number of pending pods that are not scheduled."""

    def copy(self) -> "Members":
        """Return an independent copy."""
        other = Members()
        other.pending, other.scheduled = self.pending.copy(), self.scheduled.copy()
        other.waiting_to_be_placed = self.waiting_to_be_placed
        return other

    @property
    def count(self) -> int:
        return self.waiting_to_be_placed + len(self.scheduled)


class PodGroups:
    """The groups by namespace/name. Members are recorded even if their group does not exist."""

    def __init__(self, listers: Listers, features: Features, history: History | None = None) -> None:
        self._objects = listers.pod_groups
        self._composites = listers.composite_pod_groups
        self._features = features
        self.has_trees = features.composite_pod_group
        """Whether groups have parents."""
        self._history = history
        self._members: dict[str, Members] = {}
        self._changes = 0
        """Number of changes of members."""
        self._quorums: dict[tuple[str, bool, int], bool] = {}
        """The results of `has_quorum` for composite pod groups, which all pods of a tree ask for in turn."""
        self._quorums_at = (0, 0, 0)

    def copy(self, listers: Listers) -> "PodGroups":
        """Return an independent copy without history; `listers` have the groups of the copy."""
        other = PodGroups(listers, self._features)
        other._members = {key: members.copy() for key, members in self._members.items()}
        return other

    def group_of(self, pod: Pod) -> PodGroup | None:
        """Return the group that a pod belongs to, if it exists."""
        return self._objects.get(group_key(pod))

    def get(self, key: str) -> PodGroup | None:
        return self._objects.get(key)

    def find(self, key: str) -> AnyGroup | None:
        """Return a pod group or a composite pod group."""
        namespace, composite, name = key.partition(f"/{COMPOSITE}")
        return self._composites.get(f"{namespace}/{name}") if composite else self.get(key)

    def members(self, key: str) -> Members:
        """Return the members of a group."""
        return self._members.get(key) or Members()

    def nodes(self) -> set[str]:
        """Return the nodes that have pods of groups."""
        return {node for members in self._members.values() for node in members.scheduled.values()}

    # Trees

    def path(self, group: AnyGroup) -> Iterator[AnyGroup | None]:
        """Yield a group, its parent and so on up to the root; None, at the end, for a parent that does not exist.

        More than `MOST_LEVELS` groups mean that the tree has too many levels, or no root.
        """
        above: AnyGroup | None = group
        for _ in range(MOST_LEVELS + 1):
            yield above
            parent = self.parent_key(above) if above is not None else ""
            if not parent:
                return
            above = self.find(parent)

    def parent_key(self, group: AnyGroup) -> str:
        """Return the key of the parent of a group, which need not exist; empty for a root."""
        return group.parent_key if self.has_trees else ""

    def root_of(self, group: AnyGroup) -> AnyGroup | None:
        """Return the root of a group's tree; None if it does not exist or is too many levels above."""
        if not self.has_trees:
            return group
        path = list(self.path(group))
        return path[-1] if len(path) <= MOST_LEVELS else None

    def missing_root(self, group: AnyGroup) -> str:
        """Return why a group has no root."""
        path = list(self.path(group))
        if len(path) > MOST_LEVELS:
            why = f"exceeded maximum hierarchy depth at {type(group).__name__.lower()}/{group.key}"
        else:
            namespace, _, name = next(self.parent_key(one) for one in reversed(path) if one is not None).partition("/")
            kind, _, name = name.partition("/")
            why = f"parent composite pod group state not found for {kind}/{namespace}/{name}"
        return f"failed to build hierarchy snapshot: {why}"

    def root_key(self, key: str) -> str:
        """Return the key of the root of a group's tree; empty if there is no root."""
        if not self.has_trees:
            return key
        group = self.find(key)
        root = None if group is None else self.root_of(group)
        return "" if root is None else root.key

    def children(self, group: AnyGroup) -> list[AnyGroup]:
        """Return the groups of a composite pod group, the oldest first."""
        if isinstance(group, PodGroup):
            return []
        found: list[AnyGroup] = [*self._objects.group(group.key), *self._composites.group(group.key)]
        return sorted(found, key=lambda one: (one.metadata.creationTimestamp or "", one.metadata.name))

    def leaves(self, group: AnyGroup, levels: int = MOST_LEVELS) -> Iterator[PodGroup]:
        """Yield the pod groups of a tree, whose further levels are ignored."""
        if isinstance(group, PodGroup):
            yield group
        for child in self.children(group) if levels > 1 else ():
            yield from self.leaves(child, levels - 1)

    def scheduled(self, group: AnyGroup) -> dict[str, str]:
        """Return the nodes of the pods of a tree that are assumed or bound, by UID."""
        if isinstance(group, PodGroup):
            return self.members(group.key).scheduled
        return {uid: node for leaf in self.leaves(group) for uid, node in self.members(leaf.key).scheduled.items()}

    def has_quorum(self, group: AnyGroup, *, scheduled: bool = False, levels: int = MOST_LEVELS) -> bool:
        """Return whether a pod group has enough pods, or enough that are scheduled; a composite one, enough groups.

        Further levels are ignored.
        """
        if isinstance(group, PodGroup):
            members = self.members(group.key)
            return (len(members.scheduled) if scheduled else members.count) >= (group.min_count or 1)
        version = (self._changes, self._objects.revision, self._composites.revision)
        if version != self._quorums_at:
            self._quorums_at = version
            self._quorums.clear()
        key = group.key, scheduled, levels
        found = self._quorums.get(key)
        if found is None:
            children = self.children(group) if levels > 1 else ()
            ready = sum(self.has_quorum(child, scheduled=scheduled, levels=levels - 1) for child in children)
            found = self._quorums[key] = ready >= (group.min_count or 1)
        return found

    # Changes of members

    def add_pending(self, key: str, pod: Pod) -> None:
        """Add or replace a pod without a node."""
        members = self._changed(key)
        uid = pod.metadata.uid
        if uid not in members.pending and uid not in members.scheduled:
            members.waiting_to_be_placed += 1
        if self._history is not None:
            self._history.note(MEMBER, (key, uid), members.pending.get(uid), pod)
        members.pending[uid] = pod

    def remove_pending(self, key: str, uid: str) -> None:
        """Remove a pending pod: it has got a node, or was deleted."""
        members = self._members.get(key)
        if members is not None and (pod := members.pending.pop(uid, None)) is not None:
            if self._history is not None:
                self._history.note(MEMBER, (key, uid), pod, None)
            self._changes += 1
            members.waiting_to_be_placed -= uid not in members.scheduled
            self._drop_if_empty(key, members)

    def add_scheduled(self, key: str, uid: str, node: str) -> None:
        """Add a pod that is assumed or bound on a node."""
        members = self._changed(key)
        members.waiting_to_be_placed -= uid in members.pending and uid not in members.scheduled
        members.scheduled[uid] = node

    def remove_scheduled(self, key: str, uid: str) -> None:
        """Remove a pod from its node."""
        members = self._changed(key)
        del members.scheduled[uid]
        members.waiting_to_be_placed += uid in members.pending
        self._drop_if_empty(key, members)

    def _changed(self, key: str) -> Members:
        """Return the members of a group, to be changed."""
        self._changes += 1
        return self._members.setdefault(key, Members())

    def _drop_if_empty(self, key: str, members: Members) -> None:
        if not members.pending and not members.scheduled:
            del self._members[key]
