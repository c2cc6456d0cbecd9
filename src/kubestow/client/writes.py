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
from kubestow.api.envelopes import Updated
from kubestow.api.failures import BadAnswerError, ConflictError, InvalidError, LeaseLostError
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.client.api import JSON, MERGE, STRATEGIC_MERGE
from kubestow.client.protobuf import PROTOBUF, with_additions
from kubestow.client.requests import Body, Requests, path_of

T = TypeVar("T")
Tree = dict[str, Any]

_COLLECTIONS: dict[type, tuple[str, str]] = {
    Pod: ("v1", "pods"),
    PodGroup: ("scheduling.k8s.io/v1beta1", "podgroups"),
    PersistentVolume: ("v1", "persistentvolumes"),
    PersistentVolumeClaim: ("v1", "persistentvolumeclaims"),
    ResourceClaim: ("resource.k8s.io/v1", "resourceclaims"),
}
"""Version and plural name of the kinds."""
_DELETE_OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}
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
        meta = pod.metadata
        body = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"kind": "Node", "name": node},
        }
        await self._send("POST", _path(pod, "binding"), body)

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
    ) -> None:
        is_error = condition is not None and condition.reason == SCHEDULER_ERROR
        try:
            await self._patch_status(pod, status_patch(pod, condition, nominated_node), only_unchanged=is_error)
        except ConflictError:
            # The failed write may have succeeded without a response: do not patch a pod that was bound.
            if not is_error:
                raise
            latest = await self._requests.fetch(Pod, "GET", _path(pod))
            if latest.metadata.uid == pod.metadata.uid and not latest.spec.nodeName:
                await self._patch_status(latest, status_patch(latest, condition, nominated_node), only_unchanged=True)

    async def annotate_pod(self, pod: Pod, annotations: Mapping[str, str | None]) -> None:
        """Set annotations, or remove those that are None. Patches the status, which a scheduler may patch."""
        await self._patch_status(pod, {"metadata": {"uid": pod.metadata.uid, "annotations": dict(annotations)}})

    async def delete_pod(self, pod: Pod) -> None:
        await self._send("DELETE", _path(pod), _DELETE_OPTIONS)

    async def patch_pod_group_status(self, group: PodGroup, condition: Condition) -> None:
        await self._patch_status(group, group_status_patch(condition))

    async def patch_object(self, obj: T, changes: Tree, subresource: str) -> T:
        declared, meta = resource_of(type(obj)), obj.metadata  # type: ignore[attr-defined]
        assert declared is not None
        # A patch is not for another object of the same name. Only the status of custom resources is not protected.
        patch = {**changes, "metadata": {**changes.get("metadata", {}), "uid": meta.uid}}
        namespace = meta.namespace if declared.is_namespaced else ""
        path = path_of(declared.api_version, declared.plural, namespace, meta.name, *filter(None, (subresource,)))
        return await self._fetch(type(obj), "PATCH", path, patch, MERGE)

    async def update_volume(self, volume: PersistentVolume, changes: Tree) -> PersistentVolume:
        body = merged(volume.source, "PersistentVolume", "v1", changes)
        return await self._fetch(PersistentVolume, "PUT", _path(volume), body)

    async def update_claim(self, claim: PersistentVolumeClaim, changes: Tree) -> PersistentVolumeClaim:
        body = merged(claim.source, "PersistentVolumeClaim", "v1", changes)
        return await self._fetch(PersistentVolumeClaim, "PUT", _path(claim), body)

    async def get_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return await self._requests.fetch(ResourceClaim, "GET", _path(claim))

    async def create_resource_claim(self, namespace: str, manifest: Tree) -> ResourceClaim:
        return await self._fetch(ResourceClaim, "POST", path_of(*_COLLECTIONS[ResourceClaim], namespace), manifest)

    async def update_resource_claim(self, claim: ResourceClaim, changes: Tree) -> ResourceClaim:
        """Update the metadata: the spec is immutable, and the status is a subresource."""
        meta, body = claim.metadata, _resource_claim(claim, changes)
        try:
            updated = await self._fetch(Updated, "PUT", _path(claim), body)
        except InvalidError as refused:
            finalizers = changes.get("metadata", {}).get("finalizers") or ()
            message = await self._message(claim, refused, finalizers=finalizers[len(meta.finalizers) :])
            updated = await self._fetch(Updated, "PUT", _path(claim), message, PROTOBUF)
        return replace(claim, metadata=updated.metadata, source=msgspec.Raw(body))

    async def update_resource_claim_status(self, claim: ResourceClaim, changes: Tree) -> ResourceClaim:
        path, body = _path(claim, "status"), _resource_claim(claim, changes)
        try:
            return await self._fetch(ResourceClaim, "PUT", path, body)
        except InvalidError as refused:
            status = changes.get("status", {})
            consumers = status.get("reservedFor") or () if "allocation" not in status else ()
            message = await self._message(claim, refused, consumers=consumers[len(claim.status.reservedFor) :])
            return await self._fetch(ResourceClaim, "PUT", path, message, PROTOBUF)

    async def _message(self, claim: ResourceClaim, refused: InvalidError, **more: Sequence[Any]) -> bytes:
        """Return a claim in protobuf with more finalizers or consumers; raise `refused` again if that cannot help."""
        if not any(more.values()) or b'"opaque"' not in bytes(claim.source):
            raise refused
        try:
            # A server that does not support protobuf returns JSON.
            found = await self._requests.send("GET", _path(claim), accept=f"{PROTOBUF}, {JSON}")
            return with_additions(found.body, claim.metadata.resourceVersion, **more)
        except BadAnswerError:
            raise refused from None

    async def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        # A patch does not need the latest version of the claim, and changes only the entry of the pod.
        removed = {"reservedFor": [{"$patch": "delete", "uid": uid}]}
        patch = {"metadata": {"uid": claim.metadata.uid}, "status": removed}
        return await self._fetch(ResourceClaim, "PATCH", _path(claim, "status"), patch, STRATEGIC_MERGE)

    async def delete_resource_claim(self, claim: ResourceClaim) -> None:
        await self._send("DELETE", _path(claim), _DELETE_OPTIONS)

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        await self._patch_status(pod, {"status": {"extendedResourceClaimStatus": msgspec.to_builtins(status)}})

    async def _patch_status(self, obj: Pod | PodGroup, patch: Tree, *, only_unchanged: bool = False) -> None:
        if patch:
            version = {"metadata": {"resourceVersion": obj.metadata.resourceVersion}} if only_unchanged else {}
            await self._send("PATCH", _path(obj, "status"), {**patch, **version}, STRATEGIC_MERGE)

    async def _send(self, method: str, path: str, body: Body, content_type: str = JSON) -> None:
        self._check()
        await self._requests.send(method, path, body, content_type)

    async def _fetch(self, kind: type[T], method: str, path: str, body: Body, content_type: str = JSON) -> T:
        self._check()
        return await self._requests.fetch(kind, method, path, body, content_type)

    def _check(self) -> None:
        if not self._may_act():
            raise LeaseLostError("writes are rejected: this instance is not the leader")


def _path(obj: Pod | PodGroup | PersistentVolume | PersistentVolumeClaim | ResourceClaim, *subresource: str) -> str:
    meta = obj.metadata
    # With extenders, a pod is of a subclass that keeps its JSON.
    collection = next(_COLLECTIONS[kind] for kind in type(obj).__mro__ if kind in _COLLECTIONS)
    return path_of(*collection, meta.namespace, meta.name, *subresource)


def _resource_claim(claim: ResourceClaim, changes: Tree) -> bytes:
    # The source may be the body sent last, whose resourceVersion is outdated; that of the metadata is current.
    meta = {"resourceVersion": claim.metadata.resourceVersion or None, **changes.get("metadata", {})}
    return merged(claim.source, "ResourceClaim", "resource.k8s.io/v1", {**changes, "metadata": meta})
