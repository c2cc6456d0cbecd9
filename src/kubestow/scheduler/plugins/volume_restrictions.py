"""VolumeRestrictions: rejects nodes on which a pod would share an exclusive disk, or a claim for a single pod.

A disk (GCE, AWS, iSCSI, Ceph RBD) that pods name directly cannot be mounted twice on a node, unless all pods mount it
read-only (AWS: not even then). A claim with access mode ReadWriteOncePod that a pod uses rejects every node for all
other pods that name it.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kubestow.api.claims import named_claims, not_found
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim, VolumeSource
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import SKIP, Rejection, Rejections, Skip, unresolvable, unschedulable

_DISK, _CLAIM = 1, 2
_REASONS = {
    _DISK: unschedulable("node(s) had no available disk"),
    _CLAIM: unschedulable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    ),
}


class State(NamedTuple):
    disks: tuple[VolumeSource, ...]
    exclusive_claims: frozenset[str]
    """Names of the pod's claims with access mode ReadWriteOncePod."""
    users: int
    """Number of uses of these claims by pods that have a node."""


class VolumeRestrictions:
    """Rejects nodes where a pod's disk is in use, and all nodes while another pod uses its ReadWriteOncePod claim."""

    name = "VolumeRestrictions"
    skips_resizes = True
    costly_rows = True

    def __init__(self, args: Any, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._claims = handle.cluster.listers.claims

    def requeue_on(self) -> Sequence[Registration]:
        return (
            on(Resource.ASSIGNED_POD, Action.DELETE, self._frees_a_volume),
            on(Resource.NODE, Action.ADD),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, self._is_named),
        )

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if pod.pod.spec.volumes and (pod.claim_names or _disks(pod.pod)) else ""

    def pre_filter(self, pod: PodInfo) -> State | Skip | Rejection:
        if not pod.pod.spec.volumes:
            return SKIP
        exclusive = set()
        for name in named_claims(pod.pod):
            claim = self._claims.received(f"{pod.namespace}/{name}")
            if claim is None:
                return unresolvable(not_found(name))
            if "ReadWriteOncePod" in claim.spec.accessModes:
                exclusive.add(name)
        disks = _disks(pod.pod)
        users = sum(self._is_used(pod.namespace, name) for name in exclusive)
        if not disks and not users:
            return SKIP
        return State(disks, frozenset(exclusive), users)

    def _is_used(self, namespace: str, claim: str) -> bool:
        """Return whether a pod on a known node names the claim."""
        for uid in self._cluster.claim_users.get(f"{namespace}/{claim}", ()):
            user, node = self._cluster.pod(uid), self._cluster.node_name_of(uid)
            if user is not None and node is not None and self._cluster.node(node) and claim in named_claims(user.pod):
                return True
        return False

    def with_changes(self, state: State, pod: PodInfo, changes: Sequence[Change]) -> State:
        # Pods of any namespace: kube-scheduler compares names alone here.
        named = [(sum(n in state.exclusive_claims for n in named_claims(changed.pod)), a) for changed, _, a in changes]
        if not any(number for number, _ in named):
            return state
        return state._replace(users=state.users + sum(number if added else -number for number, added in named))

    def filter_rows(self, state: State | None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        if state is None:
            raise ValueError(f"{self.name} cannot filter without its PreFilter: enable both extension points")
        kinds: IntArray = np.full(row_count(rows), _CLAIM if state.users > 0 else 0, np.int64)
        if state.disks:
            for position, row in enumerate(row_numbers(rows).tolist()):
                if any(_conflict(state.disks, other.pod) for other in view.pods[row].values()):
                    kinds[position] = _DISK
        return Rejections(kinds, _REASONS.__getitem__)

    def _frees_a_volume(self, waiting: Pod, old: Pod, new: None) -> bool:
        if old.metadata.namespace != waiting.metadata.namespace:
            return False
        return _conflict(_disks(waiting), old) or not set(named_claims(waiting)).isdisjoint(named_claims(old))

    def _is_named(self, waiting: Pod, old: None, new: PersistentVolumeClaim) -> bool:
        return new.metadata.namespace == waiting.metadata.namespace and new.metadata.name in named_claims(waiting)


def _disks(pod: Pod) -> tuple[VolumeSource, ...]:
    return tuple(
        volume
        for volume in pod.spec.volumes
        if volume.gcePersistentDisk or volume.awsElasticBlockStore or volume.rbd or volume.iscsi
    )


def _conflict(disks: tuple[VolumeSource, ...], pod: Pod) -> bool:
    return any(_same_disk(disk, other) for other in pod.spec.volumes for disk in disks)


def _same_disk(one: VolumeSource, other: VolumeSource) -> bool:
    """Return whether two pods on one node cannot have these volumes."""
    if (gce := one.gcePersistentDisk) and (other_gce := other.gcePersistentDisk):
        return gce.pdName == other_gce.pdName and not (gce.readOnly and other_gce.readOnly)
    if (aws := one.awsElasticBlockStore) and (other_aws := other.awsElasticBlockStore):
        return aws.volumeID == other_aws.volumeID
    if (iscsi := one.iscsi) and (other_iscsi := other.iscsi):
        return iscsi.iqn == other_iscsi.iqn and not (iscsi.readOnly and other_iscsi.readOnly)
    if (rbd := one.rbd) and (other_rbd := other.rbd):
        return (
            not set(rbd.monitors).isdisjoint(other_rbd.monitors)
            and (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
            and not (rbd.readOnly and other_rbd.readOnly)
        )
    return False
