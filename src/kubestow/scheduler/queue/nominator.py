"""The pods nominated to nodes: preemption frees resources for them there, or an external component chose the node.

A nomination by the scheduler counts before the API server has reported it back in the pod's status.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.history import NOMINATION, History
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.nominated import NominatedPods
from kubestow.scheduler.cluster.pods import PodInfo


class Nomination(NamedTuple):
    """A pod that is nominated to a node."""

    node: str
    info: PodInfo
    number: int
    """The pods nominated to a node are in ascending order of these numbers."""


class Nominator:
    """Nominated pods by node."""

    def __init__(self, *, history: History | None = None) -> None:
        self._history = history
        self._pods: dict[str, dict[str, PodInfo]] = {}
        self._nominations: dict[str, Nomination] = {}
        """Nominations by UID of the pod."""
        self._last_number = 0
        self.nodes: Collection[str] = self._pods.keys()
        """The nodes that have nominated pods."""
        self._nominated: NominatedPods | None = None

    def __len__(self) -> int:
        return len(self._nominations)

    def copy(self) -> "Nominator":
        """Return an independent copy without history."""
        other = Nominator()
        other._pods.update((node, pods.copy()) for node, pods in self._pods.items())
        other._nominations, other._last_number = self._nominations.copy(), self._last_number
        return other

    def nominated_on(self, node: str) -> Collection[PodInfo]:
        """Return the pods nominated to a node, in the order they were nominated."""
        return self._pods.get(node, _NO_PODS).values()

    def nominated_rows(self, table: NodeTable) -> NominatedPods:
        """Return the requests of the nominated pods by row of a table."""
        found = self._nominated
        # A change of the rows or resource columns requires a new object.
        if found is None or found.table is not table or found.layout != table.layout:
            found = self._nominated = NominatedPods(table)
            for node, pods in self._pods.items():
                for pod in pods.values():
                    found.add(node, pod)
        return found

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to; empty if there is none."""
        nomination = self._nominations.get(uid)
        return "" if nomination is None else nomination.node

    def nominate(self, pod: Pod, node: str | None = None, info: PodInfo | None = None) -> None:
        """Nominate a pod to a node, by default to the one in its status; remove the nomination if that is empty.

        A pod that has a node holds its resources there, so it is not nominated.
        `info` is the `PodInfo` of the pod, if the caller has it.
        """
        uid = pod.metadata.uid
        if node is None:
            node = pod.status.nominatedNodeName
        if not node or pod.spec.nodeName:
            self.remove(uid)
            return
        before = self._pop(uid)
        after = self._numbered(node, info or PodInfo(pod))
        self._put(after)
        if self._history is not None:
            self._history.note(NOMINATION, uid, before, after)

    def _numbered(self, node: str, info: PodInfo) -> Nomination:
        self._last_number += 1
        return Nomination(node, info, self._last_number)

    def _put(self, nomination: Nomination) -> None:
        node, info, _ = nomination
        self._pods.setdefault(node, {})[info.uid] = info
        self._nominations[info.uid] = nomination
        if self._nominated is not None:
            self._nominated.add(node, info)

    def replace(self, nominations: Mapping[str, Nomination | None]) -> None:
        """Replace some nominations, by UID, by those at another revision; None stands for no nomination."""
        replaced = {**self._nominations, **nominations}
        for uid in list(self._nominations):
            self._pop(uid)
        present = [nomination for nomination in replaced.values() if nomination is not None]
        for nomination in sorted(present, key=lambda one: one.number):
            self._put(nomination)

    def update(self, old: Pod, new: PodInfo) -> None:
        """Apply an update of a pod.

        The update may have been written before the scheduler's nomination reached the API server: if neither version
        names a node, the nomination stays.
        """
        uid, wanted = new.uid, new.pod.status.nominatedNodeName
        before = self._nominations.get(uid)
        node = None if before is None else before.node
        if not old.status.nominatedNodeName and not wanted:
            wanted = node or ""
        if node is None or node != wanted:
            self.nominate(new.pod, wanted, new)
            return
        pods = self._pods[node]
        del pods[uid]
        pods[uid] = new
        self._nominations[uid] = after = self._numbered(node, new)
        if self._nominated is not None:
            self._nominated.replace(node, new)
        if self._history is not None:
            self._history.note(NOMINATION, uid, before, after)

    def remove(self, uid: str) -> None:
        """Remove the nomination of a pod, if there is one."""
        if uid in self._nominations:
            before = self._pop(uid)
            if self._history is not None:
                self._history.note(NOMINATION, uid, before, None)

    def _pop(self, uid: str) -> Nomination | None:
        nomination = self._nominations.pop(uid, None)
        if nomination is not None:
            pods = self._pods[nomination.node]
            del pods[uid]
            if not pods:
                del self._pods[nomination.node]
            if self._nominated is not None:
                self._nominated.remove(uid)
        return nomination


_NO_PODS: Mapping[str, PodInfo] = {}
