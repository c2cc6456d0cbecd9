"""The scheduler's writes, sent to an API server.

Objects that are sent back whole are sent as received, with the changes merged in, so that fields unknown here are
preserved. Before each write it is checked that this instance may act: after its lease has expired, it may not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from kubestow.api.conditions import SCHEDULER_ERROR, group_status_patch, status_patch
from kubestow.api.custom_kinds import resource_of
from kubestow.api.devices import ResourceClaim
from kubestow.api.failures import BadAnswerError, ConflictError, InvalidError, LeaseLostError
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.client.protobuf import PROTOBUF, with_additions
from kubestow.client.requests import Requests

T = TypeVar("T")
Tree = dict[str, Any]

_encoder = msgspec.json.Encoder()
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])


def merged(source: bytes | msgspec.Raw, kind: str, api_version: str, changes: Tree) -> bytes:
    """Return the object with the changes as JSON; kind and version are added, because lists omit them.

    managedFields are removed, as other clients do: the server has them, and they are half of the object.
    """
    unmanaged = {"managedFields": None, **changes.get("metadata", {})}
    return _encoder.encode(
        {"kind": kind, "apiVersion": api_version, **_merge(source, {**changes, "metadata": unmanaged})}
    )


def _merge(source: bytes | msgspec.Raw, changes: Tree) -> Tree:
    """Merge changes into an object; unchanged parts keep their JSON."""
    try:
        parts: Tree = _parts.decode(source)
    except msgspec.ValidationError:
        parts = {}
    for name, value in changes.items():
        if value is None:
            parts.pop(name, None)
        elif isinstance(value, dict):
            parts[name] = _merge(parts.get(name, b"{}"), value)
        else:
            parts[name] = value
    return parts


class LiveApi:
    """Executes the scheduler's writes; `may_act` returns whether no other instance can be the leader now."""

    def __init__(self, requests: Requests, may_act: Callable[[], bool]) -> None:
        self._requests = requests
        self._may_act = may_act

    async def bind(self, pod: Pod, node: str) -> None:
        self._check()
        meta = pod.metadata
        await self._requests.bind_pod(meta.namespace, meta.name, meta.uid, node)

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
    ) -> None:
        patch = status_patch(pod, condition, nominated_node)
        if condition is None or condition.reason != SCHEDULER_ERROR:
            await self._patch_status(pod, patch)
            return
        # The failed write may have succeeded without a response: do not patch a pod that was bound.
        try:
            await self._patch_status(pod, patch, only_unchanged=True)
        except ConflictError:
            meta = pod.metadata
            latest = await self._requests.get_pod(meta.namespace, meta.name)
            if latest.metadata.uid == meta.uid and not latest.spec.nodeName:
                await self._patch_status(latest, status_patch(latest, condition, nominated_node), only_unchanged=True)

    async def _patch_status(self, pod: Pod, patch: Tree, *, only_unchanged: bool = False) -> None:
        if patch:
            self._check()
            meta = pod.metadata
            if only_unchanged:
                patch["metadata"] = {"resourceVersion": meta.resourceVersion}
            await self._requests.patch_pod_status(meta.namespace, meta.name, patch)

    async def annotate_pod(self, pod: Pod, annotations: Mapping[str, str | None]) -> None:
        """Set annotations, or remove those that are None. Patches the status, which a scheduler may patch."""
        self._check()
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid, "annotations": dict(annotations)}}
        await self._requests.patch_pod_status(meta.namespace, meta.name, patch)

    async def delete_pod(self, pod: Pod) -> None:
        self._check()
        await self._requests.delete_pod(pod.metadata.namespace, pod.metadata.name)

    async def patch_pod_group_status(self, group: PodGroup, condition: Condition) -> None:
        self._check()
        meta = group.metadata
        await self._requests.patch_pod_group_status(meta.namespace, meta.name, group_status_patch(condition))

    async def patch_object(self, obj: T, changes: Tree, subresource: str) -> T:
        self._check()
        resource, meta = resource_of(type(obj)), obj.metadata  # type: ignore[attr-defined]
        assert resource is not None
        # A patch is not for another object of the same name. Only the status of custom resources is not protected.
        patch = {**changes, "metadata": {**changes.get("metadata", {}), "uid": meta.uid}}
        return await self._requests.patch_object(resource, type(obj), meta.namespace, meta.name, patch, subresource)

    async def update_volume(self, volume: PersistentVolume, changes: Tree) -> PersistentVolume:
        self._check()
        body = merged(volume.source, "PersistentVolume", "v1", changes)
        return await self._requests.put_volume(volume.metadata.name, body)

    async def update_claim(self, claim: PersistentVolumeClaim, changes: Tree) -> PersistentVolumeClaim:
        self._check()
        meta = claim.metadata
        body = merged(claim.source, "PersistentVolumeClaim", "v1", changes)
        return await self._requests.put_volume_claim(meta.namespace, meta.name, body)

    async def get_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return await self._requests.get_resource_claim(claim.metadata.namespace, claim.metadata.name)

    async def create_resource_claim(self, namespace: str, manifest: Tree) -> ResourceClaim:
        self._check()
        return await self._requests.create_resource_claim(namespace, manifest)

    async def update_resource_claim(self, claim: ResourceClaim, changes: Tree) -> ResourceClaim:
        self._check()
        meta = claim.metadata
        body = _resource_claim(claim, changes)
        try:
            updated = await self._requests.put_resource_claim(meta.namespace, meta.name, body)
        except InvalidError as refused:
            finalizers = changes.get("metadata", {}).get("finalizers") or ()
            message = await self._message(claim, refused, finalizers=finalizers[len(meta.finalizers) :])
            updated = await self._requests.put_resource_claim(meta.namespace, meta.name, message, PROTOBUF)
        return replace(claim, metadata=updated.metadata, source=msgspec.Raw(body))

    async def update_resource_claim_status(self, claim: ResourceClaim, changes: Tree) -> ResourceClaim:
        self._check()
        meta = claim.metadata
        body = _resource_claim(claim, changes)
        try:
            return await self._requests.put_resource_claim_status(meta.namespace, meta.name, body)
        except InvalidError as refused:
            status = changes.get("status", {})
            consumers = status.get("reservedFor") or () if "allocation" not in status else ()
            message = await self._message(claim, refused, consumers=consumers[len(claim.status.reservedFor) :])
            return await self._requests.put_resource_claim_status(meta.namespace, meta.name, message, PROTOBUF)

    async def _message(self, claim: ResourceClaim, refused: InvalidError, **more: Sequence[Any]) -> bytes:
        """Return a claim in protobuf with more finalizers or consumers; raise `refused` again if that cannot help."""
        meta = claim.metadata
        if not any(more.values()) or b'"opaque"' not in bytes(claim.source):
            raise refused
        try:
            found = await self._requests.get_resource_claim_message(meta.namespace, meta.name)
            return with_additions(found, meta.resourceVersion, **more)
        except BadAnswerError:
            raise refused from None

    async def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        self._check()
        meta = claim.metadata
        # A patch does not need the latest version of the claim, and changes only the entry of the pod.
        patch = {"metadata": {"uid": meta.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]}}
        return await self._requests.patch_resource_claim_status(meta.namespace, meta.name, patch)

    async def delete_resource_claim(self, claim: ResourceClaim) -> None:
        self._check()
        await self._requests.delete_resource_claim(claim.metadata.namespace, claim.metadata.name)

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        self._check()
        meta, patch = pod.metadata, {"status": {"extendedResourceClaimStatus": msgspec.to_builtins(status)}}
        await self._requests.patch_pod_status(meta.namespace, meta.name, patch)

    def _check(self) -> None:
        if not self._may_act():
            raise LeaseLostError("writes are rejected: this instance is not the leader")


def _resource_claim(claim: ResourceClaim, changes: Tree) -> bytes:
    # The source may be the body sent last, whose resourceVersion is outdated; that of the metadata is current.
    meta = {"resourceVersion": claim.metadata.resourceVersion or None, **changes.get("metadata", {})}
    return merged(claim.source, "ResourceClaim", "resource.k8s.io/v1", {**changes, "metadata": meta})
