"""The bodies of calls: pods and nodes as received from the API server, each node encoded once per version.

The part of a message that lists nodes is the same for many pods while no node changes and the same nodes are feasible;
the latest such parts are cached.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.framework.results import Victims

_KEPT_LISTS = 4

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


def encode_received(obj: Pod | Node) -> bytes:
    """Return the JSON of an object as received, without fields that kube-scheduler drops; else as decoded."""
    source: msgspec.Raw | None = getattr(obj, "source", None)
    if source is None or not len(source):
        return _encode(obj)
    parts = _fields.decode(source)
    parts.pop("kind", None)
    parts.pop("apiVersion", None)
    metadata = _fields.decode(parts["metadata"])
    if metadata.pop("managedFields", None) is not None:
        parts["metadata"] = msgspec.Raw(_encode(metadata))
    if isinstance(obj, Pod) and obj.spec.nodeName:
        # The pod may only be assumed there.
        spec = _fields.decode(parts["spec"])
        if "nodeName" not in spec:
            spec["nodeName"] = msgspec.Raw(_encode(obj.spec.nodeName))
            parts["spec"] = msgspec.Raw(_encode(spec))
    return _encode(parts)


class NodeList:
    """Some rows in order, with their JSON for extenders."""

    def __init__(self, table: NodeTable, rows: IntArray) -> None:
        self.names = [table.names[row] for row in rows.tolist()]
        self.position_of = {name: position for position, name in enumerate(self.names)}
        self.as_names = b',"Nodes":null,"NodeNames":%b}' % _encode(self.names)
        self.as_nodes = b""


class Messages:
    """Builds the bodies of calls."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._encoded: list[tuple[Node, bytes] | None] = []
        """The JSON of nodes, by row."""
        self._lists: dict[bytes, NodeList] = {}
        """The latest lists, by rows."""
        self._lists_version = -1
        self._pod: tuple[Pod, bytes] | None = None

    def nodes(self, rows: IntArray) -> NodeList:
        """Return the list for some rows; cached as long as no node changes."""
        version = self._table.node_changes.last
        if version != self._lists_version:
            self._lists.clear()
            self._lists_version = version
        key = rows.tobytes()
        found = self._lists.pop(key, None)
        if found is None:
            found = NodeList(self._table, rows)
            if len(self._lists) >= _KEPT_LISTS:
                del self._lists[next(iter(self._lists))]
        self._lists[key] = found
        return found

    def nodes_body(self, pod: Pod, rows: IntArray, *, names_only: bool) -> tuple[bytes, ...]:
        """Return the body of a filter or prioritize call."""
        nodes = self.nodes(rows)
        if names_only:
            return self._start(pod), nodes.as_names
        if not nodes.as_nodes:
            listed = b",".join(map(self._node, rows.tolist()))
            nodes.as_nodes = b',"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % listed
        return self._start(pod), nodes.as_nodes

    def victims_body(self, pod: Pod, victims: Mapping[str, Victims], *, uids_only: bool) -> tuple[bytes, ...]:
        """Return the body of a preempt call."""

        def listed(pods: Any) -> dict[str, Any]:
            return {
                node: {"Pods": [pods(victim.pod) for victim in found.pods], "NumPDBViolations": found.budgets_broken}
                for node, found in victims.items()
            }

        if uids_only:
            whole, meta = None, listed(lambda victim: {"UID": victim.metadata.uid})
        else:
            whole, meta = listed(lambda victim: msgspec.Raw(encode_received(victim))), None
        rest = b',"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (_encode(whole), _encode(meta))
        return self._start(pod), rest

    def nodes_subject(self, pod: Pod, rows: IntArray) -> tuple[bytes, ...]:
        """Return the subject of a call about nodes."""
        return pod.metadata.uid.encode(), self.nodes(rows).as_names

    def victims_subject(self, pod: Pod, victims: Mapping[str, Victims]) -> tuple[bytes, ...]:
        """Return the subject of a call about victims."""
        uids = {node: [victim.uid for victim in found.pods] for node, found in victims.items()}
        return pod.metadata.uid.encode(), _encode(uids)

    @staticmethod
    def binding_body(pod: Pod, node: str) -> tuple[bytes, ...]:
        """Return the body of a bind call."""
        meta = pod.metadata
        body = {"PodName": meta.name, "PodNamespace": meta.namespace, "PodUID": meta.uid, "Node": node}
        return (_encode(body),)

    def _start(self, pod: Pod) -> bytes:
        if self._pod is None or self._pod[0] is not pod:
            self._pod = (pod, b'{"Pod":' + encode_received(pod))
        return self._pod[1]

    def _node(self, row: int) -> bytes:
        if row >= len(self._encoded):
            self._encoded.extend([None] * (self._table.size - len(self._encoded)))
        node, known = self._table.nodes[row], self._encoded[row]
        assert node is not None
        if known is None or known[0] is not node:
            known = self._encoded[row] = (node, encode_received(node))
        return known[1]
