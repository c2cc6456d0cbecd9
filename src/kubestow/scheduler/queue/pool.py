"""The pods that wait for an event: rejected pods, and gated pods.

Rejected pods are indexed by profile and rejecting plugin, gated ones by profile and gating plugin. Pods that wait for
one particular pod or group are in an index of their own, so an event only visits pods that it may concern. Equivalent
rejected pods are grouped: if a hint returns false for one of them, it does so for all. Another index orders the pods by
the time at which they will have waited too long.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kubestow.api.pod import Pod
from kubestow.scheduler.queue.heap import PodHeap
from kubestow.scheduler.queue.queued_pod import QueuedPod

PluginKey = tuple[str, str]
"""A plugin, as (profile, plugin)."""

_ANYTHING = ""
_GATED = b""
"""Stands for the equivalence key of gated pods, which are all in one group."""
_SMALL_GROUP = 4
"""Maximum size of a group of equivalent pods whose hints are called for each pod."""

_Pods = dict[str, QueuedPod]
"""Pods by UID."""
_Index = dict[PluginKey, dict[bytes, _Pods]]
"""Pods by plugin, then by equivalence key."""


class PoolEntry(NamedTuple):
    """A pod of the pool, and its position in the indexes."""

    queued: QueuedPod
    awaited: str
    """UID of the pod, or key of the group, whose events alone matter; `_ANYTHING` for all events."""
    plugins: list[PluginKey]
    equivalence_key: bytes


class Pool:
    """The pods that wait for an event."""

    def __init__(self, longest_wait: float) -> None:
        self._longest_wait = longest_wait
        self.entries: dict[str, PoolEntry] = {}
        """Entries by UID, in order of arrival; putting a pod creates a new entry object."""
        self._indexes: dict[str, _Index] = {}
        """Indexes by the UID of the pod, or the key of the group, that is awaited; `_ANYTHING` for any event."""
        self._awaited: dict[str, str] = {}
        self._by_deadline = PodHeap(self.deadline)
        self._gated: set[str] = set()

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self.entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return (entry.queued for entry in self.entries.values())

    @property
    def gated(self) -> int:
        """The number of gated pods."""
        return len(self._gated)

    def get(self, uid: str) -> QueuedPod | None:
        entry = self.entries.get(uid)
        return entry.queued if entry else None

    def put(self, queued: QueuedPod) -> None:
        """Add a pod; or index a pod of the pool again, after its gate or its flush time has changed."""
        uid = queued.uid
        self.detach(uid)
        plugins: Iterable[str] = (queued.gate.plugin,) if queued.gate else queued.rejectors
        awaited = self._awaited.get(uid, _ANYTHING)
        if not awaited and queued.gate and queued.gate.awaits != uid:
            awaited = queued.gate.awaits
        keys = [(queued.profile, plugin) for plugin in plugins]
        equivalence_key = _GATED if queued.gate else queued.equivalence_key
        self.entries[uid] = PoolEntry(queued, awaited, keys, equivalence_key)
        index = self._indexes.setdefault(awaited, {})
        for key in keys:
            index.setdefault(key, {}).setdefault(equivalence_key, {})[uid] = queued
        if queued.gate:
            self._gated.add(uid)
        self._by_deadline.push(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod, and forget which pod or group it awaits."""
        self._awaited.pop(uid, None)
        return self.detach(uid) if uid in self.entries else None

    def detach(self, uid: str) -> QueuedPod | None:
        """Remove a pod for a move; if it is put back, it still awaits the same pod or group."""
        entry = self.entries.pop(uid, None)
        if entry is None:
            return None
        queued, awaited, keys, equivalence_key = entry
        index = self._indexes.get(awaited, {})
        for key in keys:
            equivalent = index[key][equivalence_key]
            del equivalent[uid]
            if not equivalent:
                del index[key][equivalence_key]
            if not index[key]:
                del index[key]
        if not index:
            self._indexes.pop(awaited, None)
        self._gated.discard(uid)
        self._by_deadline.remove(uid)
        return queued

    def reindex(self, queued: QueuedPod) -> None:
        """Move a pod to another group of equivalent pods if a change of the pod requires it."""
        known = self.entries[queued.uid].equivalence_key
        if known != _GATED and known != queued.equivalence_key:
            self.put(queued)

    def wait_only_for(self, uid: str, awaited: str | None) -> None:
        """Let a pod await only events about the pod with the UID `awaited` while it is here; None: any event."""
        if awaited is not None:
            self._awaited[uid] = awaited
        elif self._awaited.pop(uid, None) is None:
            return
        queued = self.get(uid)
        if queued is not None:
            self.put(queued)

    def affected_by(
        self, plugins: Iterable[PluginKey], about: str, group: str, is_irrelevant: Callable[[PluginKey, Pod], bool]
    ) -> list[QueuedPod]:
        """Return the pods that wait for one of the plugins and that an event may concern, each once.

        `about` is the UID of the pod and `group` the key of the group that the event is about; both may be empty.
        `is_irrelevant(plugin, pod)` returns True if the plugin hints false for the pod, and so for all equivalent pods.
        """
        found: _Pods = {}
        if not self._indexes:
            return []
        for awaited in (_ANYTHING, about, group) if group else (_ANYTHING, about) if about else (_ANYTHING,):
            index = self._indexes.get(awaited)
            if index is None:
                continue
            for plugin in plugins:
                if plugin not in index:
                    continue
                for equivalence_key, pods in index[plugin].items():
                    is_group = equivalence_key != _GATED and len(pods) > _SMALL_GROUP
                    if not (is_group and is_irrelevant(plugin, next(iter(pods.values())).pod)):
                        found |= pods
        return list(found.values())

    def overdue(self, now: float) -> list[QueuedPod]:
        """Return the pods that have waited too long; they stay in the pool until they are removed."""
        found = []
        while (queued := self._by_deadline.peek()) and self.deadline(queued) < now:
            self._by_deadline.pop()
            found.append(queued)
        return found

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of all pods."""
        queued = self._by_deadline.peek()
        return None if queued is None else self.deadline(queued)

    def deadline(self, queued: QueuedPod) -> float:
        """Return the time after which a pod has waited too long."""
        return max(queued.timestamp, queued.flush_timestamp) + self._longest_wait
