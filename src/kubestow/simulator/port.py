"""The scheduler's API calls, executed in the store of a simulation after the latency of a request.

A call is rejected for the same reasons, and with the same exceptions, as by an API server.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import json, to_builtins

from kubestow.api.codec import decode
from kubestow.api.custom_kinds import resource_of
from kubestow.api.devices import ResourceClaim
from kubestow.api.envelopes import Status
from kubestow.api.failures import failure_of
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.binding import bind as bind_pod
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions
from kubestow.apiserver.patches import merge_patch
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.rules.pods import set_condition
from kubestow.apiserver.store.records import Record
from kubestow.client.writes import merged
from kubestow.simulator.bulk import BulkPods
from kubestow.simulator.plane import Plane

Object = dict[str, Any]
T = TypeVar("T")

_PODS = BY_STORAGE["pods"]
_VOLUMES, _CLAIMS = BY_STORAGE["persistentvolumes"], BY_STORAGE["persistentvolumeclaims"]
_POD_GROUPS = BY_STORAGE["podgroups.scheduling.k8s.io"]
_DEVICE_CLAIMS = BY_STORAGE["resourceclaims.resource.k8s.io"]


class SimulatedApi:
    """The API port of the scheduler core."""

    def __init__(self, plane: Plane, bulk: BulkPods, latency: float) -> None:
        self._plane = plane
        self._bulk = bulk
        self._latency = latency

    async def bind(self, pod: Pod, node: str) -> None:
        meta = pod.metadata

        def bind() -> None:
            if pod in self._bulk:
                self._bulk.bind(pod.key, node)
            else:
                binding = {"metadata": {"uid": meta.uid}, "target": {"name": node}}
                bind_pod(self._plane.store, meta.namespace, meta.name, binding, internal())

        await self._execute("bind", bind)

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
    ) -> None:
        def change(current: Object) -> Object:
            if condition is not None:
                fields = to_builtins(condition)
                since = fields.pop("lastTransitionTime", self._plane.store.now())
                set_condition(current, fields.pop("type"), fields.pop("status"), since, **fields)
            if nominated_node:
                current["status"]["nominatedNodeName"] = nominated_node
            elif nominated_node is not None:
                current["status"].pop("nominatedNodeName", None)
            return current

        def patch() -> None:
            if pod in self._bulk:
                self._bulk.set_status(pod.key, condition, nominated_node)
            else:
                meta = pod.metadata
                self._plane.writer.update(_PODS, meta.namespace, meta.name, change, internal(), sub="status")

        await self._execute("patch_pod_status", patch)

    async def patch_pod_group_status(self, group: PodGroup, condition: Condition) -> None:
        def change(current: Object) -> Object:
            fields = to_builtins(condition)
            conditions = current.setdefault("status", {}).setdefault("conditions", [])
            conditions[:] = [one for one in conditions if one["type"] != condition.type] + [fields]
            return current

        await self._update("patch_pod_group_status", _POD_GROUPS, group, change, sub="status")

    async def delete_pod(self, pod: Pod) -> None:
        if pod in self._bulk:
            self._bulk.put_in_store([pod.key])
        await self._delete("delete_pod", _PODS, pod)

    async def patch_object(self, obj: T, changes: Object, subresource: str) -> T:
        declared, meta = resource_of(type(obj)), obj.metadata  # type: ignore[attr-defined]
        assert declared is not None
        served = self._plane.store.registry.by_path.get((declared.group, declared.version, declared.plural))
        if served is None:
            missing = Status(reason="NotFound", message="the server could not find the requested resource", code=404)
            raise failure_of("patch_object", 404, missing)
        patch = {**changes, "metadata": {**changes.get("metadata", {}), "uid": meta.uid}}
        return await self._update(
            "patch_object", served, obj, lambda current: merge_patch.apply(current, patch), sub=subresource
        )

    async def update_volume(self, volume: PersistentVolume, changes: Object) -> PersistentVolume:
        new = merged(volume.source, "PersistentVolume", "v1", changes)
        return await self._put("update_volume", _VOLUMES, volume, new)

    async def update_claim(self, claim: PersistentVolumeClaim, changes: Object) -> PersistentVolumeClaim:
        new = merged(claim.source, "PersistentVolumeClaim", "v1", changes)
        return await self._put("update_claim", _CLAIMS, claim, new)

    async def get_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return await self._update("get_resource_claim", _DEVICE_CLAIMS, claim, lambda current: current)

    async def create_resource_claim(self, namespace: str, manifest: Object) -> ResourceClaim:
        def create() -> Record:
            return self._plane.writer.create(_DEVICE_CLAIMS, namespace, manifest, internal())

        return decode(ResourceClaim, (await self._execute("create_resource_claim", create)).body)

    async def update_resource_claim(self, claim: ResourceClaim, changes: Object) -> ResourceClaim:
        return await self._put("update_resource_claim", _DEVICE_CLAIMS, claim, _device_claim(claim, changes))

    async def update_resource_claim_status(self, claim: ResourceClaim, changes: Object) -> ResourceClaim:
        new = _device_claim(claim, changes)
        return await self._put("update_resource_claim_status", _DEVICE_CLAIMS, claim, new, sub="status")

    async def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        def change(current: Object) -> Object:
            status = current.setdefault("status", {})
            status["reservedFor"] = [one for one in status.get("reservedFor", ()) if one["uid"] != uid]
            return current

        return await self._update("unreserve_resource_claim", _DEVICE_CLAIMS, claim, change, sub="status")

    async def delete_resource_claim(self, claim: ResourceClaim) -> None:
        await self._delete("delete_resource_claim", _DEVICE_CLAIMS, claim)

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        def change(current: Object) -> Object:
            current["status"]["extendedResourceClaimStatus"] = to_builtins(status)
            return current

        await self._update("set_extended_resource_claim", _PODS, pod, change, sub="status")

    # Implementation

    async def _put(self, call: str, resource: Any, obj: T, new: bytes, *, sub: str = "") -> T:
        return await self._update(call, resource, obj, lambda _: json.decode(new), sub=sub)

    async def _update(
        self, call: str, resource: Any, obj: T, change: Callable[[Object], Object], *, sub: str = ""
    ) -> T:
        meta: Any = obj.metadata  # type: ignore[attr-defined]

        def update() -> Record:
            return self._plane.writer.update(resource, meta.namespace, meta.name, change, internal(), sub=sub)

        return decode(type(obj), (await self._execute(call, update)).body)

    async def _delete(self, call: str, resource: Any, obj: Any) -> None:
        meta, options = obj.metadata, DeleteOptions(uid=obj.metadata.uid)
        await self._execute(
            call, lambda: self._plane.remover.delete(resource, meta.namespace, meta.name, options, internal())
        )

    async def _execute(self, call: str, act: Callable[[], T]) -> T:
        await asyncio.sleep(self._latency)
        try:
            return act()
        except ApiError as error:
            status = Status(status="Failure", message=error.message, reason=error.reason, code=error.code)
            raise failure_of(call, error.code, status) from None


def _device_claim(claim: ResourceClaim, changes: Object) -> bytes:
    return merged(claim.source, "ResourceClaim", "resource.k8s.io/v1", changes)
