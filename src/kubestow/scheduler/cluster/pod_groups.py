"""Pod groups and their members: who is pending, who is on a node, assumed or bound."""

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, group_key
from kubestow.scheduler.cluster.history import MEMBER, History
from kubestow.scheduler.cluster.listers import Store


class Members:
    """The pods of one group, known by uid."""

    __slots__ = ("pending", "scheduled", "waiting_to_be_placed")

    def __init__(self) -> None:
        self.pending: dict[str, Pod] = {}
        """Pods that have not been seen on a node: they wait, or are assumed on one."""
        self.scheduled: dict[str, str] = {}
        """Pods that are assumed or bound, with their node."""
        self.waiting_to_be_placed = 0
        """How many of the pending ones are not scheduled."""

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
    """The groups by namespace/name. Members are known whether or not their group exists."""

    def __init__(self, objects: Store[PodGroup], history: History | None = None) -> None:
        self._objects = objects
        self._history = history
        self._members: dict[str, Members] = {}

    def copy(self, objects: Store[PodGroup]) -> "PodGroups":
        """Return an independent copy without history; `objects` are the groups that it goes by."""
        other = PodGroups(objects)
        other._members = {key: members.copy() for key, members in self._members.items()}
        return other

    def group_of(self, pod: Pod) -> PodGroup | None:
        """The group that a pod belongs to, if it exists."""
        return self._objects.get(group_key(pod))

    def get(self, key: str) -> PodGroup | None:
        return self._objects.get(key)

    def members(self, key: str) -> Members:
        """The members of a group."""
        return self._members.get(key) or Members()

    # What happens to members

    def add_pending(self, key: str, pod: Pod) -> None:
        """A pod without a node was seen, new or changed."""
        members = self._members.setdefault(key, Members())
        uid = pod.metadata.uid
        if uid not in members.pending and uid not in members.scheduled:
            members.waiting_to_be_placed += 1
        if self._history is not None:
            self._history.note(MEMBER, (key, uid), members.pending.get(uid), pod)
        members.pending[uid] = pod

    def remove_pending(self, key: str, uid: str) -> None:
        """A pod has got its node, or is gone."""
        members = self._members.get(key)
        if members is not None and (pod := members.pending.pop(uid, None)) is not None:
            if self._history is not None:
                self._history.note(MEMBER, (key, uid), pod, None)
            members.waiting_to_be_placed -= uid not in members.scheduled
            self._drop_if_empty(key, members)

    def add_scheduled(self, key: str, uid: str, node: str) -> None:
        """A pod is on a node, assumed or bound."""
        members = self._members.setdefault(key, Members())
        members.waiting_to_be_placed -= uid in members.pending and uid not in members.scheduled
        members.scheduled[uid] = node

    def remove_scheduled(self, key: str, uid: str) -> None:
        """A pod is off its node."""
        members = self._members[key]
        del members.scheduled[uid]
        members.waiting_to_be_placed += uid in members.pending
        self._drop_if_empty(key, members)

    def _drop_if_empty(self, key: str, members: Members) -> None:
        if not members.pending and not members.scheduled:
            del self._members[key]
