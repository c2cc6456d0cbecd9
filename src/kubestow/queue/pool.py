"""Pods that wait for something to happen: rejected ones, and those that a PreEnqueue plugin holds back.

Rejected pods are filed by profile and rejecting plugin, held-back ones by profile and the plugin that holds them back;
those that wait for one certain pod apart from the others. So an event meets only pods it may concern. Rejected pods
that are alike are together: if an event is no use to one of them, it is none to the others. A second index knows who
has waited too long.
"""

from collections.abc import Callable, Iterable, Iterator

from kubestow.model.pod import Pod
from kubestow.queue.heap import PodHeap
from kubestow.queue.queued_pod import QueuedPod

_ANYTHING = ""
_HELD_BACK = b""
_FEW = 4
"""So few are asked one by one."""

_Pods = dict[str, QueuedPod]
"""By uid."""
_File = dict[tuple[str, str], dict[bytes, _Pods]]
"""Pods by profile and plugin, then by likeness; those that are held back are all together."""


class Pool:
    def __init__(self, longest_wait: float, longest_wait_in_group: float | None = None) -> None:
        """The second is that of pods that belong to a group and were rejected; None: the same."""
        self._longest_wait = longest_wait
        self._longest_wait_in_group = longest_wait if longest_wait_in_group is None else longest_wait_in_group
        self.entries: dict[str, tuple[QueuedPod, str, list[tuple[str, str]], bytes]] = {}
        """By uid, in the order in which they came, with where in which file each of them is; an entry is another one
        whenever its pod was put here."""
        self._files: dict[str, _File] = {}
        """By the uid of the pod, or the key of the group, that is waited for; empty for anything."""
        self._awaited: dict[str, str] = {}
        self._by_deadline = PodHeap(self.deadline)
        self._gated: set[str] = set()

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self.entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, *_ in self.entries.values())

    @property
    def gated(self) -> int:
        """How many of the pods are held back."""
        return len(self._gated)

    def get(self, uid: str) -> QueuedPod | None:
        found = self.entries.get(uid)
        return found[0] if found else None

    def put(self, queued: QueuedPod) -> None:
        """Adds a pod; or, after its gate or its flush changed, files it anew."""
        uid = queued.uid
        self.take_out(uid)
        plugins: Iterable[str] = (queued.gate.plugin,) if queued.gate else queued.rejectors
        awaited = self._awaited.get(uid, _ANYTHING)
        if not awaited and queued.gate and queued.gate.awaits != uid:
            awaited = queued.gate.awaits
        keys = [(queued.profile, plugin) for plugin in plugins]
        likeness = _HELD_BACK if queued.gate else queued.likeness
        self.entries[uid] = (queued, awaited, keys, likeness)
        file = self._files.setdefault(awaited, {})
        for key in keys:
            file.setdefault(key, {}).setdefault(likeness, {})[uid] = queued
        if queued.gate:
            self._gated.add(uid)
        self._by_deadline.push(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        self._awaited.pop(uid, None)
        return self.take_out(uid) if uid in self.entries else None

    def take_out(self, uid: str) -> QueuedPod | None:
        """The same for a pod that may come back at once: what it waits for is not forgotten."""
        found = self.entries.pop(uid, None)
        if found is None:
            return None
        queued, awaited, keys, likeness = found
        file = self._files.get(awaited, {})
        for key in keys:
            alike = file[key][likeness]
            del alike[uid]
            if not alike:
                del file[key][likeness]
            if not file[key]:
                del file[key]
        if not file:
            self._files.pop(awaited, None)
        self._gated.discard(uid)
        self._by_deadline.remove(uid)
        return queued

    def file_anew(self, queued: QueuedPod) -> None:
        """A pod has changed: it may be like others now."""
        *_, likeness = self.entries[queued.uid]
        if likeness != _HELD_BACK and likeness != queued.likeness:
            self.put(queued)

    def wait_only_for(self, uid: str, awaited: str | None) -> None:
        """As long as a pod is here, only events about this pod (by uid) concern it; None: any, as usual."""
        if awaited is not None:
            self._awaited[uid] = awaited
        elif self._awaited.pop(uid, None) is None:
            return
        queued = self.get(uid)
        if queued is not None:
            self.put(queued)

    def concerned(
        self,
        plugins: Iterable[tuple[str, str]],
        about: str,
        group: str,
        is_no_use: Callable[[tuple[str, str], Pod], bool],
    ) -> list[QueuedPod]:
        """The pods that wait for one of the plugins (of a profile) and may care about a pod or a group, each once.

        The pod is given by its uid, the group by its key; both may be empty.
        `is_no_use` tells whether a plugin says no to a pod, as to all that are alike but the very pod it is about.
        """
        together: _Pods = {}
        if not self._files:
            return []
        for awaited in (_ANYTHING, about, group) if group else (_ANYTHING, about) if about else (_ANYTHING,):
            file = self._files.get(awaited)
            if file is None:
                continue
            for plugin in plugins:
                if plugin not in file:
                    continue
                for likeness, pods in file[plugin].items():
                    if likeness != _HELD_BACK and len(pods) > _FEW:
                        other = next(queued.pod for uid, queued in pods.items() if uid != about)
                        if is_no_use(plugin, other):
                            pods = {about: pods[about]} if about in pods else {}
                    together |= pods
        return list(together.values())

    def overdue(self, now: float) -> list[QueuedPod]:
        """The pods that have waited too long; they stay until removed."""
        found = []
        while (queued := self._by_deadline.peek()) and self.deadline(queued) < now:
            self._by_deadline.pop()
            found.append(queued)
        return found

    def next_deadline(self) -> float | None:
        """When the next pod will have waited too long."""
        queued = self._by_deadline.peek()
        return None if queued is None else self.deadline(queued)

    def deadline(self, queued: QueuedPod) -> float:
        """When a pod will have waited too long."""
        in_group = queued.pod.spec.schedulingGroup is not None and not queued.gate
        longest = self._longest_wait_in_group if in_group else self._longest_wait
        return max(queued.timestamp, queued.flush_timestamp) + longest
