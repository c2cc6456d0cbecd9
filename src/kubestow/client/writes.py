"""The scheduler's writes, sent to an API server.

Objects that are sent back whole go out as they came, with the changes merged in, so that fields unknown here survive.
Every write is preceded by the question whether this instance may act at all: after the lease has run out, it may not.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.api.conditions import SCHEDULER_ERROR, group_status_patch, status_patch
from kubestow.api.devices import ResourceClaim
from kubestow.api.failures import BadAnswerError, ConflictError, InvalidError, LeaseLostError
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.client.protobuf import PROTOBUF, with_more
from kubestow.client.requests import Requests

Tree = dict[str, Any]

_encoder = msgspec.json.Encoder()
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])


def merged(source: bytes | msgspec.Raw, kind: str, api_version: str, changes: Tree) -> bytes:
    """The object with the changes in place, as JSON; kind and version are added, since lists leave them out.

    Who manages which field is left out, as by every client: the server knows, and it is half of what it sends.
    """
    unmanaged = {"managedFields": None, **changes.get("metadata", {})}
    return _encoder.encode(
        {"kind": kind, "apiVersion": api_version, **_merge(source, {**changes, "metadata": unmanaged})}
    )


def _merge(source: bytes | msgspec.Raw, changes: Tree) -> Tree:
    """What is not changed stays the JSON that it was."""
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
    """Carries out the scheduler's writes; `may_act` tells whether nobody else can be the leader now."""

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
        if patch:
            self._check()
            meta, is_error = pod.metadata, condition is not None and condition.reason == SCHEDULER_ERROR
            if is_error:
                # What failed may have been the answer alone: of a pod that has changed since, nothing is said.
                patch["metadata"] = {"resourceVersion": meta.resourceVersion}
            with suppress(*((ConflictError,) if is_error else ())):
                await self._requests.patch_pod_status(meta.namespace, meta.name, patch)

    async def annotate_pod(self, pod: Pod, annotations: Mapping[str, str | None]) -> None:
        """Set annotations, or remove those that are None. By way of the status, which is what a scheduler may patch."""
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
        """A claim in protobuf, with more finalizers or consumers; raises the refusal again where that cannot help."""
        meta = claim.metadata
        if not any(more.values()) or b'"opaque"' not in bytes(claim.source):
            raise refused
        try:
            found = await self._requests.get_resource_claim_message(meta.namespace, meta.name)
            return with_more(found, meta.resourceVersion, **more)
        except BadAnswerError:
            raise refused from None

    async def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        self._check()
        meta = claim.metadata
        # A patch needs no newer version of the claim, and concerns no one but the pod.
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
            raise LeaseLostError("nothing is written any more: this instance is not the leader")


def _resource_claim(claim: ResourceClaim, changes: Tree) -> bytes:
    # The source may be what was sent last; which version that has become, the metadata knows.
    meta = {"resourceVersion": claim.metadata.resourceVersion or None, **changes.get("metadata", {})}
    return merged(claim.source, "ResourceClaim", "resource.k8s.io/v1", {**changes, "metadata": meta})
