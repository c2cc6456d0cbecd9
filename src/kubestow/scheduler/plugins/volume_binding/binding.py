"""Binds the claims of a pod in three steps: assume in memory, write to the API server, wait for the controllers.

A free volume gets a reference to its claim; a claim that needs a new volume gets the name of the selected node. Then
controllers bind and drivers provision; the scheduler waits until every claim is bound or binding has failed.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.api.claims import BOUND_BY_CONTROLLER, SELECTED_NODE, is_bound_to, is_fully_bound
from kubestow.api.meta import ObjectReference
from kubestow.api.node import Node
from kubestow.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from kubestow.scheduler.cluster.listers import Listers, Store, key_of, version_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.plugins.volume_binding.affinity import is_usable_at
from kubestow.scheduler.plugins.volume_binding.finding import Match, Provision


class BindingError(Exception):
    """The claims of a pod cannot be bound now; the message is the reason."""


class _Change(msgspec.Struct):
    """An assumed object and the fields to write."""

    obj: Any
    fields: dict[str, Any]
    claim_key: str = ""
    """For a volume: the key of the claim that is bound to it."""
    written: bool = False


class Reservation(msgspec.Struct):
    """The changes that bind the claims of a pod on its node."""

    node: str
    volumes: list[_Change] = msgspec.field(default_factory=list)
    """Volumes to bind to a claim."""
    claims: list[_Change] = msgspec.field(default_factory=list)
    """Claims whose volume is to be provisioned for the node."""

    @property
    def all_bound(self) -> bool:
        return not self.volumes and not self.claims


def assume(node: str, matches: Iterable[Match], provisions: Iterable[Provision], listers: Listers) -> Reservation:
    """Assume the changes in memory, so that no other pod gets the same volumes. Raises BindingError."""
    reservation = Reservation(node)
    try:
        for match in matches:
            change = _bound_volume(match.volume, match.claim)
            if change.fields:
                _assume(listers.volumes, change.obj, "persistentvolumes")
            reservation.volumes.append(change)
        for provision in provisions:
            change = _claim_for_node(provision.claim, node)
            _assume(listers.claims, change.obj, "persistentvolumeclaims")
            reservation.claims.append(change)
    except BindingError:
        undo(reservation, listers)
        raise
    return reservation


def undo(reservation: Reservation, listers: Listers) -> None:
    """Restore the assumed objects, except those already written to the API server."""
    _forget(listers.volumes, reservation.volumes)
    _forget(listers.claims, reservation.claims)


def _assume(store: Store[Any], obj: Any, resource: str) -> None:
    key, version = key_of(obj), obj.metadata.resourceVersion
    received = store.received(key)
    if received is None:
        raise BindingError(f'{resource} "{key}" not found')
    if received.metadata.resourceVersion != version:
        stored = received.metadata.resourceVersion
        raise BindingError(f'"{key}" is out of sync (stored: {stored}, assume: {version})')
    store.assume(obj)


def _forget(store: Store[Any], changes: list[_Change]) -> None:
    for change in changes:
        key = key_of(change.obj)
        current = store.get(key)
        if not change.written and current is not None and version_of(current) == version_of(change.obj):
            store.restore(key)


def _bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> _Change:
    fields: dict[str, Any] = {}
    meta, spec, wanted = volume.metadata, volume.spec, claim.metadata
    reference = spec.claimRef
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in meta.annotations:
        fields["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        meta = replace(meta, annotations=meta.annotations | {BOUND_BY_CONTROLLER: "yes"})
    if reference is None or (reference.namespace, reference.name, reference.uid) != (
        wanted.namespace,
        wanted.name,
        wanted.uid,
    ):
        written = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": wanted.namespace,
            "name": wanted.name,
            "uid": wanted.uid,
            "resourceVersion": wanted.resourceVersion,
        }
        fields["spec"] = {"claimRef": written}
        spec = replace(spec, claimRef=ObjectReference(**written))
    return _Change(replace(volume, metadata=meta, spec=spec), fields, key_of(claim))


def _claim_for_node(claim: PersistentVolumeClaim, node: str) -> _Change:
    meta = replace(claim.metadata, annotations=claim.metadata.annotations | {SELECTED_NODE: node})
    return _Change(replace(claim, metadata=meta), {"metadata": {"annotations": {SELECTED_NODE: node}}})


async def write(reservation: Reservation, handle: Handle) -> None:
    """Write the changes to the API server. If a write fails, restore that object and the following ones."""
    listers = handle.cluster.listers
    try:
        for change in reservation.volumes:
            change.obj = await handle.api.update_volume(change.obj, change.fields)
            change.written = True
        for change in reservation.claims:
            change.obj = await handle.api.update_claim(change.obj, change.fields)
            change.written = True
    except BaseException:
        undo(reservation, listers)
        raise


async def wait_until_bound(reservation: Reservation, pod: PodInfo, handle: Handle, seconds: float) -> None:
    """Wait until all claims are bound. Raises BindingError on failure or after `seconds`."""
    problem: BindingError | None = None

    def is_finished() -> bool:
        nonlocal problem
        try:
            return are_all_bound(reservation, pod, handle)
        except (BindingError, ValueError) as error:
            problem = BindingError(f"binding volumes: {error}")
            return True

    finished = await handle.wait_until(is_finished, seconds)
    if problem is not None:
        raise problem
    if not finished:
        raise BindingError("binding volumes: context deadline exceeded")


def are_all_bound(reservation: Reservation, pod: PodInfo, handle: Handle) -> bool:
    """Return whether all claims are bound according to the API server. Raises BindingError if binding has failed."""
    listers = handle.cluster.listers
    node = handle.cluster.node(reservation.node)
    if node is None:
        raise BindingError(f'failed to get node "{reservation.node}": node "{reservation.node}" not found')
    if handle.cluster.pod(pod.uid) is None:
        raise BindingError(f'pod does not exist any more: pod "{pod.name}" not found')
    csi_node = listers.csi_nodes.get(reservation.node)
    for change in reservation.volumes:
        if not _is_matched(change.obj, change.claim_key, node, csi_node, listers):
            return False
    return all(_is_provisioned(change.obj, node, csi_node, listers) for change in reservation.claims)


def _is_matched(
    written: PersistentVolume, claim_key: str, node: Node, csi_node: CSINode | None, listers: Listers
) -> bool:
    volume = listers.volumes.received(written.metadata.name)
    if volume is None:
        raise BindingError(f'failed to check binding: persistentvolumes "{written.metadata.name}" not found')
    claim = listers.claims.received(claim_key)
    if claim is None:
        raise BindingError(f'failed to check binding: persistentvolumeclaims "{claim_key}" not found')
    if version_of(written) > version_of(volume):
        return False
    _check_affinity(volume, node, csi_node, "failed to translate pv to csi: ")
    if volume.spec.claimRef is None or not volume.spec.claimRef.uid:
        raise BindingError(f'ClaimRef got reset for pv "{volume.metadata.name}"')
    return is_fully_bound(claim)


def _is_provisioned(written: PersistentVolumeClaim, node: Node, csi_node: CSINode | None, listers: Listers) -> bool:
    key = key_of(written)
    claim = listers.claims.received(key)
    if claim is None:
        raise BindingError(f'failed to check provisioning pvc: persistentvolumeclaims "{key}" not found')
    if version_of(written) > version_of(claim):
        return False
    if not claim.metadata.annotations:
        raise BindingError(f'selectedNode annotation reset for PVC "{claim.metadata.name}"')
    if claim.metadata.annotations.get(SELECTED_NODE) != node.metadata.name:
        # Provisioners change the annotation to report a failure, so that another node is tried.
        raise BindingError(f'provisioning failed for PVC "{claim.metadata.name}"')
    if claim.spec.volumeName:
        volume = listers.volumes.received(claim.spec.volumeName)
        if volume is None:
            return False
        _check_affinity(volume, node, csi_node)
    return is_fully_bound(claim)


def _check_affinity(volume: PersistentVolume, node: Node, csi_node: CSINode | None, error_prefix: str = "") -> None:
    try:
        usable = is_usable_at(volume, node.metadata.labels, csi_node)
    except ValueError as error:
        raise BindingError(f"{error_prefix}{error}") from None
    if not usable:
        raise BindingError(
            f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}": '
            "no matching NodeSelectorTerms"
        )
