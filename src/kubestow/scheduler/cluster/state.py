"""The cluster: nodes, the pods on them, and all other objects, updated by each event.

A pod counts on its node from the moment it is assumed there (chosen, not yet bound), so that the next cycle counts it.
The bound pod, when it arrives, confirms the assumption; after a failed binding, `forget` removes the pod again.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from kubestow.api.devices import DeviceClass
from kubestow.api.node import Namespace, Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.requests import resource_amounts
from kubestow.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubestow.config.features import Features
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.changes import node_events
from kubestow.scheduler.cluster.counts import CarriedTerms, MatchCounts
from kubestow.scheduler.cluster.devices import Devices
from kubestow.scheduler.cluster.history import NODE, POD, History
from kubestow.scheduler.cluster.images import ImageIndex
from kubestow.scheduler.cluster.listers import Listers
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.order import Place, ZoneOrder
from kubestow.scheduler.cluster.pod_groups import PodGroups
from kubestow.scheduler.cluster.pod_index import PodIndexes
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import PodRanking

_SIGNED_BY = frozenset({Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, DeviceClass})
"""The kinds that a plugin may read when it signs a pod. Claims and volumes change with every pod that uses them."""


class PlacedPod(Struct, frozen=True, eq=False, gc=False):
    """A pod on a row, or one that was removed from it temporarily."""

    pod: PodInfo
    node: str
    row: int
    number: int
    """Pods on a row are in ascending order of their numbers."""


class KnownNode(NamedTuple):
    """A node with its row, and the place of the row in the order."""

    node: Node
    row: int
    place: Place


class Cluster:
    """All cluster state. Every method that applies an event is O(1) in nodes and pods."""

    def __init__(self, features: Features | None = None, history: History | None = None) -> None:
        self.history = history
        """Log of the changes; None: changes are not logged."""
        self.nodes = NodeTable()
        self.ranking = PodRanking(self.nodes)
        self.listers = Listers(history)
        features = features or Features()
        self.devices = Devices(self.nodes, self.listers, features, history)
        self.groups = PodGroups(self.listers, features, history) if features.generic_workload else None
        """None if pods are scheduled one by one, even if they name a group."""
        self.images = ImageIndex(history)
        self.order = ZoneOrder()
        self.matches = MatchCounts(self.nodes.labels.column)
        self.carried = CarriedTerms(self.nodes.labels.column)
        self.claim_users: dict[str, set[str]] = {}
        """UIDs of the placed pods that use each persistent volume claim."""
        self.listed_version = 0
        """Incremented with every change of a listed object that plugins sign by, and of the labels of a node."""
        self._assumed: set[str] = set()
        """UIDs of pods that are assumed and not yet seen bound. Not in the history: no other pod depends on it."""
        self._placed: dict[str, PlacedPod] = {}
        self.pod_indexes = PodIndexes(
            lambda: [placed.pod for placed in self._placed.values()], lambda uid: uid in self._placed
        )
        self._last_number = 0
        """The number of the pod that was put on a row last."""

    def copy(self) -> "Cluster":
        """Return an independent copy without history, which shares only immutable values."""
        other = Cluster()
        other.nodes = self.nodes.copy()
        other.ranking = PodRanking(other.nodes)
        other.listers = self.listers.copy()
        other.devices = self.devices.copy(other.nodes, other.listers)
        other.groups = None if self.groups is None else self.groups.copy(other.listers)
        other.images = self.images.copy()
        other.order = self.order.copy()
        other.matches = self.matches.copy(other.nodes.labels.column)
        other.carried = self.carried.copy(other.nodes.labels.column)
        other.claim_users = {claim: users.copy() for claim, users in self.claim_users.items()}
        other.listed_version = self.listed_version
        other._assumed = self._assumed.copy()
        other._placed, other._last_number = self._placed.copy(), self._last_number
        return other

    @property
    def revision(self) -> int:
        """The revision of the history; 0 without one."""
        return 0 if self.history is None else self.history.revision

    @property
    def signing_version(self) -> int:
        """Incremented with every change, other than of waiting pods, that may change the signature of a pod."""
        return self.listed_version + self.images.version + self.carried.version

    # Nodes

    def set_node(self, node: Node) -> None:
        """Add or update a node. Raises ValueError, and changes nothing, if it is invalid."""
        allocatable = resource_amounts(node.status.allocatable)
        row = self.nodes.row_for(node.metadata.name)
        old = self.nodes.nodes[row]
        before = None if self.history is None else self._known_node(row)
        pods_must_move = old is None or old.metadata.labels != node.metadata.labels
        if old is not None and pods_must_move:
            self._index_pods_of(row, -1)
        if old is None or old.status.images != node.status.images:
            if old is not None:
                self.images.remove(row, old)
            self.images.add(row, node)
        self.nodes.set_node(row, node, allocatable)
        if pods_must_move or (old is not None and old.status.declaredFeatures != node.status.declaredFeatures):
            self.devices.node_changed(node.metadata.name, row)
        if pods_must_move:
            self._index_pods_of(row, 1)
            self.listed_version += 1
        self.order.set(row, node)
        if self.history is not None and (old is None or _is_other(old, node)):
            self.history.note(NODE, node.metadata.name, before, self._known_node(row))

    def remove_node(self, name: str) -> None:
        """Remove a node. Its pods are kept until they are removed themselves."""
        row = self.nodes.row_of.get(name)
        node = self.nodes.nodes[row] if row is not None else None
        if row is None or node is None:
            return
        if self.history is not None:
            self.history.note(NODE, name, self._known_node(row), None)
        self._index_pods_of(row, -1)
        self.images.remove(row, node)
        self.order.remove(row)
        self.nodes.clear_node(row)
        self.devices.node_changed(name, row)
        self.listed_version += 1

    def _known_node(self, row: int) -> KnownNode | None:
        node, place = self.nodes.nodes[row], self.order.place_of(row)
        return None if node is None or place is None else KnownNode(node, row, place)

    def node(self, name: str) -> Node | None:
        row = self.nodes.row_of.get(name)
        return None if row is None else self.nodes.nodes[row]

    # Pods

    def set_pod(self, pod: Pod) -> None:
        """Add or update a bound pod; confirms an assumed one. Raises ValueError, without changes, if invalid."""
        uid = pod.metadata.uid
        placed, was_assumed = self._placed.get(uid), uid in self._assumed
        info, is_same_spec = (PodInfo(pod), False) if placed is None else placed.pod.in_version(pod)
        info.prepare()
        self._assumed.discard(uid)
        if placed is not None:
            if is_same_spec and info.has_same_requests(placed.pod):
                if not (same_labels := info.has_same_labels(placed.pod)) and self.nodes.live[placed.row]:
                    # An API server labels a pod with its node's topology when it is bound.
                    self.matches.add(placed.row, placed.pod, -1)
                    self.matches.add(placed.row, info, 1)
                # A pod as it was assumed changes nothing on its row, nor does one that only gets a DisruptionTarget.
                same = same_labels and (
                    info.has_same_details(placed.pod) if was_assumed else info.adds_only_disruption_target(placed.pod)
                )
                self._placed[uid] = updated = PlacedPod(info, placed.node, placed.row, placed.number)
                self.nodes.replace_pod(placed.row, info)
                if not same:
                    self.nodes.changes.touch(placed.row)
                self.pod_indexes.placed(info)
                if self.history is not None and not (same_labels and info.is_same_as(placed.pod)):
                    self.history.note(POD, uid, placed, updated)
                return
            self._take_off(placed)
        self._put_on(info, pod.spec.nodeName, before=placed)

    def remove_pod(self, uid: str) -> None:
        """Remove a bound or assumed pod."""
        if uid in self._placed:
            self._assumed.discard(uid)
            self.detach(uid)

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on the node it was chosen for, before it is bound."""
        if pod.uid in self._placed:
            raise ValueError(f"pod {pod.key} cannot be assumed on {node_name}: it is already on a node")
        pod.prepare()
        self._assumed.add(pod.uid)
        self._put_on(pod, node_name)

    def forget(self, uid: str) -> bool:
        """Remove an assumed pod. Return False, and do nothing, if it was seen bound or was forgotten before."""
        if uid not in self._assumed:
            return False
        self.remove_pod(uid)
        return True

    def detach(self, uid: str) -> PlacedPod:
        """Remove a placed pod from its node temporarily, to evaluate the node without it."""
        placed = self._placed.pop(uid)
        self._take_off(placed)
        if self.history is not None:
            self.history.note(POD, uid, placed, None)
        return placed

    def reattach(self, placed: PlacedPod) -> None:
        """Add a pod that was removed by `detach` to its node again."""
        self._put_on(placed.pod, placed.node)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    @property
    def assumed_count(self) -> int:
        """Number of pods that are assumed and not yet seen bound."""
        return len(self._assumed)

    def pod(self, uid: str) -> PodInfo | None:
        """Return a pod that is on a node, assumed or bound."""
        placed = self._placed.get(uid)
        return None if placed is None else placed.pod

    def node_name_of(self, uid: str) -> str | None:
        """Return the node that a pod is on."""
        placed = self._placed.get(uid)
        return None if placed is None else placed.node

    def placed_pods(self) -> Iterator[tuple[int, PodInfo]]:
        """Yield every pod on a live node, with its row."""
        live = self.nodes.live
        for placed in self._placed.values():
            if live[placed.row]:
                yield placed.row, placed.pod

    def rows_with_lower_priority(self, priority: int) -> IntArray:
        """Return the rows that have a pod of a lower priority."""
        rows = np.flatnonzero(self.nodes.live[: self.nodes.size])
        rows = rows[~self.ranking.known_above(rows, priority)]
        self.ranking.refresh(rows)
        return rows[self.ranking.lowest[rows] < priority]

    @property
    def pod_count(self) -> int:
        return len(self._placed)

    def _put_on(self, pod: PodInfo, node_name: str, before: PlacedPod | None = None) -> None:
        self._last_number += 1
        placed = PlacedPod(pod, node_name, self.nodes.row_for(node_name), self._last_number)
        self._put(placed)
        if self.history is not None:
            self.history.note(POD, pod.uid, before, placed)

    def _put(self, placed: PlacedPod) -> None:
        pod, row = placed.pod, placed.row
        self._placed[pod.uid] = placed
        self.nodes.add_pod(row, pod)
        for name in pod.claim_names:
            self.claim_users.setdefault(f"{pod.namespace}/{name}", set()).add(pod.uid)
        if self.groups is not None and (key := group_key(pod.pod)):
            self.groups.add_scheduled(key, pod.uid, placed.node)
        self.pod_indexes.placed(pod)
        if self.nodes.live[row]:
            self._index(row, pod, 1)

    def _take_off(self, placed: PlacedPod) -> None:
        row, pod = placed.row, placed.pod
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
        self.pod_indexes.taken_off(pod.uid)

    def _index(self, row: int, pod: PodInfo, sign: int) -> None:
        self.matches.add(row, pod, sign)
        self.carried.add(row, pod, sign)

    def _index_pods_of(self, row: int, sign: int) -> None:
        for pod in self.nodes.pods[row].values():
            self._index(row, pod, sign)

    # Other objects

    def set_object(self, obj: Any) -> None:
        """Add or update an object of another kind."""
        kind = type(obj)
        self.listers.store_of(kind).set(obj)
        self.listed_version += kind in _SIGNED_BY

    def set_unreadable(self, kind: type, problem: str) -> None:
        """Set why objects of a kind cannot be read; an empty string if they can."""
        self.listers.store_of(kind).set_unreadable(problem)
        self.listed_version += 1

    def remove_object(self, obj: Any) -> None:
        """Remove an object of another kind."""
        kind = type(obj)
        self.listers.store_of(kind).remove(obj)
        self.listed_version += kind in _SIGNED_BY

    # Moving to another revision

    def replace_placed(self, nodes: Mapping[str, KnownNode | None], pods: Mapping[str, PlacedPod | None]) -> None:
        """Replace some nodes, by name, and placed pods, by UID, by their values at another revision.

        None stands for one that does not exist. All are removed first, so that their rows at that revision are free.
        """
        for uid in pods:
            self.remove_pod(uid)
        for name in nodes:
            self.remove_node(name)
        for name, known in nodes.items():
            if known is not None:
                self.nodes.row_for(name, known.row)
                self.set_node(known.node)
                self.order.restore(known.row, known.place)
        rows: set[int] = set()
        for placed in pods.values():
            if placed is not None:
                self.nodes.row_for(placed.node, placed.row)
                self._put(placed)
                rows.add(placed.row)
        for row in rows:
            self.nodes.sort_pods(row, lambda pod: self._placed[pod.uid].number)

    def replace_object(self, kind: type, key: str, versions: tuple[Any, Any] | None) -> None:
        """Replace an object by the versions received and assumed at another revision; None if it does not exist."""
        self.listers.store_of(kind).put(key, *(versions or (None, None)))
        self.listed_version += kind in _SIGNED_BY


def _is_other(old: Node, new: Node) -> bool:
    """Return False if a new version of a node changes nothing that scheduling reads."""
    return old.spec != new.spec or old.status.images != new.status.images or bool(node_events(old, new))
