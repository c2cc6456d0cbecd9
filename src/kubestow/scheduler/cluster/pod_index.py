"""Pods by keys that plugins choose: the pods on nodes, assumed ones included, and those that wait for a node.

An index is maintained with every change of a pod. Without an index, a change of a pod costs one test.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo

K = TypeVar("K", bound=Hashable)

_NO_AMOUNTS: Mapping[str, int] = MappingProxyType({})


class _Entry:
    """The pods of one key."""

    def __init__(self) -> None:
        self.assigned: dict[str, PodInfo] = {}
        self.unscheduled: dict[str, PodInfo] = {}
        self.requested: Counter[str] = Counter()
        """The sums of the requests of the assigned pods."""


class PodIndex(Generic[K]):
    """Pods by the result of a key function; pods with the key None are not in it. Assumed pods count as assigned."""

    def __init__(
        self,
        key: Callable[[PodInfo], K | None],
        *,
        check_readable: Callable[[], None] = lambda: None,
        wrap: Callable[[Callable[[K], object]], Callable[[K], object]] = lambda callback: callback,
    ) -> None:
        """`check_readable` is called before each read, and raises if it is not allowed now; `wrap` wraps callbacks."""
        self._key = key
        self._check_readable = check_readable
        self._wrap = wrap
        self._callbacks: list[Callable[[K], object]] = []
        self._entries: dict[K, _Entry] = {}
        self._key_of: dict[str, K] = {}
        """The key of each pod, by UID."""
        self.version = 0
        """Number of changes of pods in the index."""

    def __getitem__(self, key: K) -> Sequence[PodInfo]:
        """Return all pods with a key: those on nodes, and those without a node."""
        found = self._entry(key)
        return () if found is None else (*found.assigned.values(), *found.unscheduled.values())

    def __iter__(self) -> Iterator[K]:
        """Return the keys that have pods."""
        self._check_readable()
        return iter(self._entries)

    def __len__(self) -> int:
        self._check_readable()
        return len(self._entries)

    def assigned(self, key: K) -> Sequence[PodInfo]:
        """Return the pods with a key that are on nodes."""
        found = self._entry(key)
        return () if found is None else tuple(found.assigned.values())

    def unscheduled(self, key: K) -> Sequence[PodInfo]:
        """Return the pods with a key that have no node, in the order of their arrival; gated ones included."""
        found = self._entry(key)
        return () if found is None else tuple(found.unscheduled.values())

    def assigned_count(self, key: K) -> int:
        """Return the number of pods with a key that are on nodes."""
        found = self._entry(key)
        return 0 if found is None else len(found.assigned)

    def requested(self, key: K) -> Mapping[str, int]:
        """Return the sums of the requests of the pods on nodes, in the units of `pod.requests.amounts`."""
        found = self._entry(key)
        return _NO_AMOUNTS if found is None else MappingProxyType(found.requested)

    def on_change(self, callback: Callable[[K], object]) -> None:
        """Call `callback(key)` for each key that has pods, and whenever a pod with a key has changed."""
        wrapped = self._wrap(callback)
        for key in tuple(self._entries):
            wrapped(key)
        self._callbacks.append(wrapped)

    def _entry(self, key: K) -> _Entry | None:
        self._check_readable()
        return self._entries.get(key)

    def _changed(self, key: K) -> None:
        self.version += 1
        for callback in self._callbacks:
            callback(key)

    def put(self, pod: PodInfo, *, assigned: bool) -> None:
        """Add a pod, or replace its previous version."""
        old, key = self._take_out(pod.uid), self._key(pod)
        if old is not None and old != key:
            self._changed(old)
        if key is None:
            return
        entry = self._entries.setdefault(key, _Entry())
        self._key_of[pod.uid] = key
        if assigned:
            entry.assigned[pod.uid] = pod
            entry.requested.update(pod.requests.amounts)
        else:
            entry.unscheduled[pod.uid] = pod
        self._changed(key)

    def remove(self, uid: str) -> None:
        """Remove a pod, if it is in the index."""
        key = self._take_out(uid)
        if key is not None:
            self._changed(key)

    def _take_out(self, uid: str) -> K | None:
        """Remove a pod without a notification; returns its key, None if it is not in the index."""
        key = self._key_of.pop(uid, None)
        if key is None:
            return None
        entry = self._entries[key]
        pod = entry.assigned.pop(uid, None)
        if pod is None:
            del entry.unscheduled[uid]
        else:
            for name, amount in pod.requests.amounts.items():
                entry.requested[name] -= amount
                if not entry.requested[name]:
                    del entry.requested[name]
        if not entry.assigned and not entry.unscheduled:
            del self._entries[key]
        return key


class PodIndexes:
    """The indexes of a cluster, and the pods without a node, which no other part of the cluster contains."""

    def __init__(self, assigned: Callable[[], Iterable[PodInfo]], is_assigned: Callable[[str], bool]) -> None:
        """`assigned` returns the pods on nodes, assumed ones included; `is_assigned` tests for one by UID."""
        self.unscheduled: dict[str, Pod] = {}
        """The unassigned pods with one of the scheduler names, by UID; an assumed pod is one until it is bound."""
        self._assigned, self._is_assigned = assigned, is_assigned
        self._indexes: tuple[PodIndex[Any], ...] = ()

    def add(self, index: PodIndex[Any]) -> None:
        """Fill an index, and maintain it until `drop`."""
        for pod in self.unscheduled.values():
            index.put(PodInfo(pod), assigned=False)
        for info in self._assigned():
            index.put(info, assigned=True)
        self._indexes += (index,)

    def drop(self, index: PodIndex[Any]) -> None:
        """Stop to maintain an index."""
        self._indexes = tuple(one for one in self._indexes if one is not index)

    def placed(self, pod: PodInfo) -> None:
        """Record that a pod is on a node, or that its version there has changed."""
        for index in self._indexes:
            index.put(pod, assigned=True)

    def taken_off(self, uid: str) -> None:
        """Record that a pod is on no node any more."""
        if self._indexes:
            pod = self.unscheduled.get(uid)
            self._set(uid, pod)

    def set_unscheduled(self, pod: Pod) -> None:
        """Add a pod without a node, or replace its previous version; an assumed pod is on a node for the indexes."""
        self.unscheduled[pod.metadata.uid] = pod
        if self._indexes and not self._is_assigned(pod.metadata.uid):
            self._set(pod.metadata.uid, pod)

    def remove_unscheduled(self, uid: str) -> None:
        """Remove a pod that was deleted or assigned, or whose scheduler name was removed."""
        self.unscheduled.pop(uid, None)
        if self._indexes and not self._is_assigned(uid):
            self._set(uid, None)

    def _set(self, uid: str, pod: Pod | None) -> None:
        info = None if pod is None else PodInfo(pod)
        for index in self._indexes:
            if info is None:
                index.remove(uid)
            else:
                index.put(info, assigned=False)
