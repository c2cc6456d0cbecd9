"""A pod group, or a tree of groups, in the queue, and the pods of groups that cannot be queued yet."""

from collections.abc import Iterator
from math import sqrt

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_priority
from kubestow.scheduler.queue.queued_pod import QueuedPod


def entity_uid(key: str) -> str:
    """Return what identifies a group among the pods of the queue."""
    return f"podgroup/{key}"


class QueuedGroup(QueuedPod, kw_only=True):
    """A group without a parent in the queue: it stands for all pods of its tree, which are at no place of their own.

    `pod` is one of the pods, whose priority is that of the group; `uid` is `entity_uid` of the group's key. A group has
    no rejecting plugins.
    """

    members: dict[str, QueuedPod]
    """By UID."""
    key: str
    """The key of the group."""
    gated: QueuedPod | None = None
    """The pod that is the reason for `gate`."""
    seen_events: int = 0
    """Number of events that had happened when it was popped."""

    def __post_init__(self) -> None:
        self.uid = entity_uid(self.key)
        self.profile = self.pod.spec.schedulerName

    @property
    def pods(self) -> list[QueuedPod]:
        """Its pods in the order in which they are tried: by priority, attempts, age and name."""
        return sorted(
            self.members.values(),
            key=lambda one: (-pod_priority(one.pod), -one.attempts, one.timestamp, one.pod.metadata.name),
        )

    @property
    def backoff_factor(self) -> float:
        """The longest backoff of a group grows with its size."""
        return sqrt(len(self.members))

    def set_gate(self, gated: QueuedPod | None) -> None:  # type: ignore[override]
        """Set the pod whose gate keeps the whole group out of the queue; None: the group is not gated."""
        gate = None if gated is None else gated.gate
        for one in self.members.values():
            one.gate = gate
        if gate is not None and gated is not None and gate.awaits == gated.uid:
            gate = gate._replace(awaits=self.uid)
        self.gated, self.gate = gated, gate

    def remove(self, uid: str) -> None:
        """Remove a pod; another one represents the group."""
        del self.members[uid]
        if self.members and self.pod.metadata.uid == uid:
            self.pod = next(iter(self.members.values())).pod


class PodsOfGroups:
    """The waiting groups, and the pods that wait outside their group."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        """The key of the parent of each group that exists, by its key; empty for none."""
        self._children: dict[str, dict[str, None]] = {}
        """The groups that exist, by the key of their parent, which need not exist."""
        self.waiting: dict[str, QueuedGroup] = {}
        """The groups that are active, back off, or are gated, by key."""
        self.in_flight: QueuedGroup | None = None
        """The group whose cycle has not ended."""
        self.pending: dict[str, QueuedPod] = {}
        """Pods that arrived, or failed, while their group is in flight, by UID: they join it when it returns."""
        self.incomplete: dict[str, dict[str, QueuedPod]] = {}
        """Pods whose group, or a group above it, does not exist: by the key of their group and their UID."""
        self.entries: dict[str, tuple[str]] = {}
        """The key of the group by UID of each waiting pod, in a tuple that is new after each move."""

    def add_group(self, key: str, parent: str) -> None:
        """Add a group that exists from now on."""
        self._parents[key] = parent
        if parent:
            self._children.setdefault(parent, {})[key] = None

    def remove_group(self, key: str) -> None:
        """Remove a group that existed."""
        parent = self._parents.pop(key)
        if parent:
            del self._children[parent][key]
            if not self._children[parent]:
                del self._children[parent]

    def parent(self, key: str) -> str | None:
        """Return the key of the parent of a group, empty if it has none; None if the group does not exist."""
        return self._parents.get(key)

    def root(self, key: str) -> str:
        """Return the key of the root of a group's tree; empty if a group on the way does not exist, or is its own."""
        seen = set()
        while key not in seen:
            parent = self._parents.get(key)
            if not parent:
                return "" if parent is None else key
            seen.add(key)
            key = parent
        return ""

    def tree(self, key: str) -> Iterator[str]:
        """Yield the keys of a group that has a root and of the groups below it."""
        # Without recursion: a tree has any number of levels.
        found = [key]
        while found:
            key = found.pop()
            yield key
            found += self._children.get(key, ())

    def group_with(self, uid: str) -> QueuedGroup | None:
        """Return the waiting group that has a pod."""
        entry = self.entries.get(uid)
        group = None if entry is None else self.waiting.get(self.root(entry[0]))
        return group if group is not None and uid in group.members else None

    def get(self, uid: str) -> QueuedPod | None:
        """Return a waiting pod."""
        entry = self.entries.get(uid)
        if entry is None:
            return None
        group = self.group_with(uid)
        return self._aside(entry[0], uid)[uid] if group is None else group.members[uid]

    def must_wait(self, queued: QueuedPod) -> bool:
        """Keep a pod whose tree is not complete up to its root or is in flight; return False for any other."""
        key = group_key(queued.pod)
        root = self.root(key)
        if not root:
            self.incomplete.setdefault(key, {})[queued.uid] = queued
        elif self.in_flight is not None and self.in_flight.key == root:
            self.pending[queued.uid] = queued
        else:
            return False
        self.entries[queued.uid] = (key,)
        return True

    def remove_aside(self, pod: Pod) -> QueuedPod | None:
        """Remove a pod that waits outside its group."""
        key, uid = group_key(pod), pod.metadata.uid
        queued = self._aside(key, uid).pop(uid, None)
        if queued is not None:
            del self.entries[uid]
            if not self.incomplete.get(key, uid):
                del self.incomplete[key]
        return queued

    def _aside(self, key: str, uid: str) -> dict[str, QueuedPod]:
        return self.pending if uid in self.pending else self.incomplete.get(key, {})

    def incomplete_pods(self) -> list[QueuedPod]:
        return [queued for pods in self.incomplete.values() for queued in pods.values()]
