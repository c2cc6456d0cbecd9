"""Pods that wait for room on a certain node: preemption is making it, or somebody asked for the node.

What the scheduler nominated counts before the API server has told it back in the pod's status.
"""

from collections.abc import Collection, Mapping

from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.nominated import NominatedPods
from kubestow.cluster.pods import PodInfo
from kubestow.model.pod import Pod


class Nominator:
    """Nominated pods by node."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self.nodes: Collection[str] = self._pods.keys()
        """The nodes that have nominated pods."""
        self._nominated: NominatedPods | None = None

    def __len__(self) -> int:
        return len(self._node_of)

    def nominated_on(self, node: str) -> Collection[PodInfo]:
        """The pods nominated to a node, in the order they were nominated."""
        return self._pods.get(node, _NONE).values()

    def nominated_rows(self, table: NodeTable) -> NominatedPods:
        """What the nominated pods will add to the rows of a table."""
        found = self._nominated
        # Once rows or resource columns have come or gone, all is added anew.
        if found is None or found.table is not table or found.layout != table.layout:
            found = self._nominated = NominatedPods(table)
            for node, pods in self._pods.items():
                for pod in pods.values():
                    found.add(node, pod)
        return found

    def node_of(self, uid: str) -> str:
        """Where a pod is nominated to; empty if nowhere."""
        return self._node_of.get(uid, "")

    def nominate(self, pod: Pod, node: str | None = None, info: PodInfo | None = None) -> None:
        """Nominates a pod to a node, by default to the one in its status; to none if that is empty.

        `info` is the pod as somebody knows it already.
        """
        self.remove(pod.metadata.uid)
        if node is None:
            node = pod.status.nominatedNodeName
        if node:
            self._node_of[pod.metadata.uid] = node
            info = self._pods.setdefault(node, {})[pod.metadata.uid] = info or PodInfo(pod)
            if self._nominated is not None:
                self._nominated.add(node, info)

    def update(self, old: Pod, new: PodInfo) -> None:
        """Takes over a pod's changes.

        An update may have been written before our nomination reached the API server: where neither version names a
        node, the nomination stands.
        """
        uid, wanted = new.uid, new.pod.status.nominatedNodeName
        node = self._node_of.get(uid)
        if not old.status.nominatedNodeName and not wanted:
            wanted = node or ""
        if node is None or node != wanted:
            self.nominate(new.pod, wanted, new)
            return
        pods = self._pods[node]
        del pods[uid]
        pods[uid] = new
        if self._nominated is not None:
            self._nominated.replace(node, new)

    def remove(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            pods = self._pods[node]
            del pods[uid]
            if not pods:
                del self._pods[node]
            if self._nominated is not None:
                self._nominated.remove(uid)


_NONE: Mapping[str, PodInfo] = {}
