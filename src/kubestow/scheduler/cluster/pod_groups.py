"""Pod groups and their members: pending, assumed or bound."""

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, group_key
from kubestow.scheduler.cluster.history import MEMBER, History
from kubestow.scheduler.cluster.listers import Store


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

    def __init__(self, objects: Store[PodGroup], history: History | None = None) -> None:
        self._objects = objects
        self._history = history
        self._members: dict[str, Members] = {}

    def copy(self, objects: Store[PodGroup]) -> "PodGroups":
        """Return an independent copy without history; `objects` are the groups of the copy."""
        other = PodGroups(objects)
        other._members = {key: members.copy() for key, members in self._members.items()}
        return other

    def group_of(self, pod: Pod) -> PodGroup | None:
        """Return the group that a pod belongs to, if it exists."""
        return self._objects.get(group_key(pod))

    def get(self, key: str) -> PodGroup | None:
        return self._objects.get(key)

    def members(self, key: str) -> Members:
        """Return the members of a group."""
        return self._members.get(key) or Members()

    def nodes(self) -> set[str]:
        """Return the nodes that have pods of groups."""
        return {node for members in self._members.values() for node in members.scheduled.values()}

    # Changes of members

    def add_pending(self, key: str, pod: Pod) -> None:
        """Add or replace a pod without a node."""
        members = self._members.setdefault(key, Members())
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
            members.waiting_to_be_placed -= uid not in members.scheduled
            self._drop_if_empty(key, members)

    def add_scheduled(self, key: str, uid: str, node: str) -> None:
        """Add a pod that is assumed or bound on a node."""
        members = self._members.setdefault(key, Members())
        members.waiting_to_be_placed -= uid in members.pending and uid not in members.scheduled
        members.scheduled[uid] = node

    def remove_scheduled(self, key: str, uid: str) -> None:
        """Remove a pod from its node."""
        members = self._members[key]
        del members.scheduled[uid]
        members.waiting_to_be_placed += uid in members.pending
        self._drop_if_empty(key, members)

    def _drop_if_empty(self, key: str, members: Members) -> None:
        if not members.pending and not members.scheduled:
            del self._members[key]
