"""Pods that wait for something to happen: rejected ones, and those that a PreEnqueue plugin holds back.

Rejected pods are indexed by profile and rejecting plugin, held-back ones by profile and the plugin that holds them
back, and the one pod they wait for if that is known, so that an event meets only pods it may concern. A second index
knows who has waited too long.
"""

from collections.abc import Iterable, Iterator

from kubestow.queue.heap import PodHeap
from kubestow.queue.queued_pod import QueuedPod

_ANYTHING = ""


class Pool:
    def __init__(self, longest_wait: float) -> None:
        self._longest_wait = longest_wait
        self._pods: dict[str, tuple[QueuedPod, list[tuple[str, str, str]]]] = {}
        self._concerned: dict[tuple[str, str, str], dict[str, QueuedPod]] = {}
        self._awaited: dict[str, str] = {}
        self._by_deadline = PodHeap(self._deadline)
        self._gated: set[str] = set()

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._pods.values())

    @property
    def gated(self) -> int:
        """How many of the pods are held back."""
        return len(self._gated)

    def get(self, uid: str) -> QueuedPod | None:
        found = self._pods.get(uid)
        return found[0] if found else None

    def put(self, queued: QueuedPod) -> None:
        """Adds a pod; or, after its gate or its flush changed, files it anew."""
        uid = queued.uid
        self.remove(uid)
        plugins: Iterable[str] = (queued.gate.plugin,) if queued.gate else queued.rejectors
        awaited = self._awaited.get(uid, _ANYTHING) if queued.gate else _ANYTHING
        filed_under = [(queued.profile, plugin, awaited) for plugin in plugins]
        self._pods[uid] = (queued, filed_under)
        for key in filed_under:
            self._concerned.setdefault(key, {})[uid] = queued
        if queued.gate:
            self._gated.add(uid)
        self._by_deadline.push(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        found = self._pods.pop(uid, None)
        if found is None:
            return None
        queued, filed_under = found
        for key in filed_under:
            concerned = self._concerned[key]
            del concerned[uid]
            if not concerned:
                del self._concerned[key]
        self._gated.discard(uid)
        self._by_deadline.remove(uid)
        return queued

    def wait_only_for(self, uid: str, awaited: str | None) -> None:
        """While a pod is held back, only events about this pod (by uid) concern it; None: any, as usual."""
        if awaited is None:
            self._awaited.pop(uid, None)
        else:
            self._awaited[uid] = awaited
        queued = self.get(uid)
        if queued is not None:
            self.put(queued)

    def concerned(self, profile: str, plugins: Iterable[str], about: str) -> list[QueuedPod]:
        """The profile's pods that wait for one of the plugins and may care about a pod (by uid), each once."""
        if not self._pods:
            return []
        keys = ((profile, plugin, awaited) for plugin in plugins for awaited in (_ANYTHING, about))
        found = [pods for key in keys if (pods := self._concerned.get(key))]
        if not found:
            return []
        if len(found) == 1:
            return list(found[0].values())
        together: dict[str, QueuedPod] = {}
        for pods in found:
            together.update(pods)
        return list(together.values())

    def overdue(self, now: float) -> list[QueuedPod]:
        """The pods that have waited too long; they stay until removed."""
        found = []
        while (queued := self._by_deadline.peek()) and self._deadline(queued) < now:
            self._by_deadline.pop()
            found.append(queued)
        return found

    def next_deadline(self) -> float | None:
        """When the next pod will have waited too long."""
        queued = self._by_deadline.peek()
        return None if queued is None else self._deadline(queued)

    def _deadline(self, queued: QueuedPod) -> float:
        return max(queued.timestamp, queued.flush_timestamp) + self._longest_wait
