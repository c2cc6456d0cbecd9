"""The cluster: nodes, the pods on them, and all else that is known, kept in step event by event.

A pod counts on its node from the moment it is assumed there (chosen, not yet bound), so that the next cycle sees it.
The bound pod, when it arrives, confirms the assumption; a failed binding takes it back with `forget`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.counts import CarriedTerms, MatchCounts
from kubestow.cluster.devices import Devices
from kubestow.cluster.images import ImageIndex
from kubestow.cluster.listers import Listers
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.order import ZoneOrder
from kubestow.cluster.pod_groups import PodGroups
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.ranking import PodRanking
from kubestow.config.features import Features
from kubestow.model.devices import DeviceClass
from kubestow.model.node import Namespace, Node
from kubestow.model.pod import Pod
from kubestow.model.pod_groups import group_key
from kubestow.model.requests import resource_amounts
from kubestow.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

_SIGNED_BY = frozenset({Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, DeviceClass})
"""The kinds that a plugin may look at when it signs a pod. Claims and volumes change with every pod that uses them."""


class Lifted(Struct, eq=False, gc=False):
    """A pod on a row, or one that was lifted off it."""

    pod: PodInfo
    row: int
    assumed: bool


class Cluster:
    """All that is known. Every method is one event; each is O(1) in nodes and pods."""

    def __init__(self, features: Features | None = None) -> None:
        self.nodes = NodeTable()
        self.ranking = PodRanking(self.nodes)
        self.listers = Listers()
        features = features or Features()
        self.devices = Devices(self.nodes, self.listers, features)
        self.groups = PodGroups(self.listers.pod_groups) if features.generic_workload else None
        """None where pods are scheduled one by one, whatever group they name."""
        self.images = ImageIndex()
        self.order = ZoneOrder()
        self.matches = MatchCounts(self.nodes.labels.column)
        self.carried = CarriedTerms(self.nodes.labels.column)
        self.claim_users: dict[str, set[str]] = {}
        """Uids of the placed pods that use each persistent volume claim."""
        self.listed_version = 0
        """Grows with every change of an object in the listers that plugins sign by, and of a node's labels."""
        self.assumed_count = 0
        """How many pods are assumed, and not yet seen bound."""
        self._placed: dict[str, Lifted] = {}

    @property
    def signing_version(self) -> int:
        """Grows with every change, other than of the pods waiting, that may have plugins sign a pod differently."""
        return self.listed_version + self.images.version + self.carried.version

    # Nodes

    def set_node(self, node: Node) -> None:
        """A node was added or has changed. A bad one changes nothing: ValueError."""
        allocatable = resource_amounts(node.status.allocatable)
        row = self.nodes.row_for(node.metadata.name)
        old = self.nodes.nodes[row]
        pods_must_move = old is None or old.metadata.labels != node.metadata.labels
        if old is not None and pods_must_move:
            self._index_pods_of(row, -1)
        if old is None or old.status.images != node.status.images:
            if old is not None:
                self.images.remove(row, old)
            self.images.add(row, node)
        self.nodes.set_node(row, node, allocatable)
        if pods_must_move:
            self._index_pods_of(row, 1)
            self.devices.node_changed(node.metadata.name, row)
            self.listed_version += 1
        self.order.set(row, node)

    def remove_node(self, name: str) -> None:
        """A node is gone. Its pods are kept until they are gone themselves."""
        row = self.nodes.row_of.get(name)
        node = self.nodes.nodes[row] if row is not None else None
        if row is None or node is None:
            return
        self._index_pods_of(row, -1)
        self.images.remove(row, node)
        self.order.remove(row)
        self.nodes.clear_node(row)
        self.devices.node_changed(name, row)
        self.listed_version += 1

    def node(self, name: str) -> Node | None:
        row = self.nodes.row_of.get(name)
        return None if row is None else self.nodes.nodes[row]

    # Pods

    def set_pod(self, pod: Pod) -> None:
        """A bound pod was seen, new or changed; confirms it if assumed. A bad one changes nothing: ValueError."""
        placed = self._placed.get(pod.metadata.uid)
        info, is_same_spec = (PodInfo(pod), False) if placed is None else placed.pod.in_version(pod)
        info.prepare()
        if placed is not None:
            if is_same_spec and info.counts_like(placed.pod):
                if not (is_like := info.matches_like(placed.pod)) and self.nodes.live[placed.row]:
                    # An API server labels a pod with its node's topology when it is bound.
                    self.matches.add(placed.row, placed.pod, -1)
                    self.matches.add(placed.row, info, 1)
                # The very pod that was assumed changes nothing on its row, nor does one that is told why it must go.
                same = is_like and (
                    info.looks_like(placed.pod) if placed.assumed else info.is_only_marked_since(placed.pod)
                )
                self.assumed_count -= placed.assumed
                placed.assumed, placed.pod = False, info
                self.nodes.replace_pod(placed.row, info)
                if not same:
                    self.nodes.changes.touch(placed.row)
                return
            self._take_off(placed)
        self._put_on(info, pod.spec.nodeName, assumed=False)

    def remove_pod(self, uid: str) -> None:
        """A bound or assumed pod is gone."""
        placed = self._placed.pop(uid, None)
        if placed is not None:
            self._take_off(placed)

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on the node it was chosen for, before it is bound."""
        if pod.uid in self._placed:
            raise ValueError(f"pod {pod.key} cannot be assumed on {node_name}: it is already on a node")
        pod.prepare()
        self._put_on(pod, node_name, assumed=True)

    def forget(self, uid: str) -> bool:
        """Take an assumption back; False, and nothing is done, for a pod that was seen bound or forgotten meanwhile."""
        placed = self._placed.get(uid)
        if placed is None or not placed.assumed:
            return False
        del self._placed[uid]
        self._take_off(placed)
        return True

    def lift(self, uid: str) -> Lifted:
        """Take a pod off its node for a moment, to see what would be without it; it must be there."""
        lifted = self._placed.pop(uid)
        self._take_off(lifted)
        return lifted

    def put_back(self, lifted: Lifted) -> None:
        """Put a pod back that was lifted off its node."""
        self._put_on(lifted.pod, self.nodes.names[lifted.row], assumed=lifted.assumed)

    def is_assumed(self, uid: str) -> bool:
        placed = self._placed.get(uid)
        return placed is not None and placed.assumed

    def pod(self, uid: str) -> PodInfo | None:
        """A pod on a node, assumed or bound."""
        placed = self._placed.get(uid)
        return None if placed is None else placed.pod

    def node_name_of(self, uid: str) -> str | None:
        """The node that a pod is on."""
        placed = self._placed.get(uid)
        return None if placed is None else self.nodes.names[placed.row]

    def placed_pods(self) -> Iterator[tuple[int, PodInfo]]:
        """Every pod on a live node, with its row."""
        live = self.nodes.live
        for placed in self._placed.values():
            if live[placed.row]:
                yield placed.row, placed.pod

    def rows_with_less_important(self, priority: int) -> IntArray:
        """The rows on which there is a pod of a lower priority."""
        rows = np.flatnonzero(self.nodes.live[: self.nodes.size])
        rows = rows[~self.ranking.known_above(rows, priority)]
        self.ranking.refresh(rows)
        return rows[self.ranking.lowest[rows] < priority]

    @property
    def pod_count(self) -> int:
        return len(self._placed)

    def _put_on(self, pod: PodInfo, node_name: str, *, assumed: bool) -> None:
        row = self.nodes.row_for(node_name)
        self._placed[pod.uid] = Lifted(pod, row, assumed)
        self.assumed_count += assumed
        self.nodes.add_pod(row, pod)
        for name in pod.claim_names:
            self.claim_users.setdefault(f"{pod.namespace}/{name}", set()).add(pod.uid)
        if self.groups is not None and (key := group_key(pod.pod)):
            self.groups.add_scheduled(key, pod.uid, node_name)
        if self.nodes.live[row]:
            self._index(row, pod, 1)

    def _take_off(self, placed: Lifted) -> None:
        row, pod = placed.row, placed.pod
        self.assumed_count -= placed.assumed
        if self.nodes.live[row]:
            self._index(row, pod, -1)
        for name in pod.claim_names:
            key = f"{pod.namespace}/{name}"
            users = self.claim_users[key]
            users.discard(pod.uid)
            if not users:
                del self.claim_users[key]
        if self.groups is not None and (key := group_key(pod.pod)):
            self.groups.remove_scheduled(key, pod.uid)
        self.nodes.remove_pod(row, pod)

    def _index(self, row: int, pod: PodInfo, sign: int) -> None:
        self.matches.add(row, pod, sign)
        self.carried.add(row, pod, sign)

    def _index_pods_of(self, row: int, sign: int) -> None:
        for pod in self.nodes.pods[row].values():
            self._index(row, pod, sign)

    # Everything else

    def set_object(self, obj: Any) -> None:
        """An object of another kind was added or has changed."""
        kind = type(obj)
        self.listers.store_of(kind).set(obj)
        self.listed_version += kind in _SIGNED_BY

    def set_unreadable(self, kind: type, problem: str) -> None:
        """Objects of a kind cannot be seen, for a reason; with an empty one, they can."""
        self.listers.store_of(kind).unreadable = problem
        self.listed_version += 1

    def remove_object(self, obj: Any) -> None:
        """An object of another kind is gone."""
        kind = type(obj)
        self.listers.store_of(kind).remove(obj)
        self.listed_version += kind in _SIGNED_BY
