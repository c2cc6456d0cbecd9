"""Writes claims to the API server before a pod is bound, and reverts what was written.

    create the claim for extended resources -> finalizer -> allocation and reservation -> pod status

After a conflict the claim is read again and the write is retried, up to a limit.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from kubestow.api.devices import AllocationResult, ResourceClaim, ResourceClaimConsumer
from kubestow.api.failures import CallError, ConflictError
from kubestow.api.pod import Pod, PodExtendedResourceClaimStatus
from kubestow.api.timestamps import format_time
from kubestow.scheduler.cluster.listers import key_of, version_of
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.plugins.dynamic_resources.extended import NodeClaim

FINALIZER = "resource.kubernetes.io/delete-protection"

_MAX_ATTEMPTS = 5
_RETRY_DELAY = 0.01
_RELEASE_CHECK_INTERVAL = 0.1
_WATCH_TIMEOUT = 120.0
"""Seconds to wait until the watch delivers a claim that was just created."""


class ClaimWriter:
    """Writes claims for pods."""

    def __init__(self, handle: Handle, *, timestamps: bool) -> None:
        self._handle = handle
        self._api = handle.api
        self._claims = handle.cluster.listers.resource_claims
        self._timestamps = timestamps
        self._releasing: Counter[str] = Counter()
        """Number of claims that are being released, by UID of the pod or group."""

    def reserve(
        self, claim: ResourceClaim, consumer: ResourceClaimConsumer, allocation: AllocationResult | None
    ) -> Coroutine[Any, Any, ResourceClaim]:
        """Reserve a claim for a pod or group, and write the pending allocation if the claim has none yet."""
        return self._with_retries(claim, partial(self._reserve, consumer, allocation))

    def release(self, claim: ResourceClaim, pod: Pod, uid: str) -> None:
        """Remove the reservation of a claim for a pod or its group, given by UID, in the background."""
        self._releasing[uid] += 1

        async def write() -> None:
            await self._assume(await self._api.unreserve_resource_claim(claim, uid))

        self._handle.write_aside(pod, write, partial(self._released, uid))

    def _released(self, uid: str) -> None:
        self._releasing[uid] -= 1
        if not self._releasing[uid]:
            del self._releasing[uid]

    async def until_released(self, uid: str) -> None:
        """Wait for the releases of an earlier attempt, which would remove the reservations of this one."""
        while uid in self._releasing:
            await self._handle.wait_until(lambda: uid not in self._releasing, _RELEASE_CHECK_INTERVAL)

    async def create(self, node_claim: NodeClaim, pod: Pod) -> ResourceClaim:
        meta, spec = node_claim.claim.metadata, node_claim.claim.spec
        manifest = {
            "kind": "ResourceClaim",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {
                "generateName": f"{pod.metadata.name}-extended-resources-",
                "namespace": meta.namespace,
                "annotations": meta.annotations,
                "ownerReferences": _tree(meta.ownerReferences),
            },
            "spec": _tree(spec),
            "status": {},
        }
        try:
            # The claim has no name yet; the message of kube-scheduler ends with the slash, too.
            with _error_context(f"create claim for extended resources {meta.namespace}/"):
                created = await self._api.create_resource_claim(meta.namespace, manifest)
        except CallError:
            self._count_creation("failure")
            raise
        self._count_creation("success")
        return created

    def _count_creation(self, status: str) -> None:
        self._handle.metrics.resource_claim_creates.inc("false", "", "Pod", status)

    async def set_pod_status(self, pod: Pod, claim: ResourceClaim, node_claim: NodeClaim) -> None:
        """Record the claim for the extended resources in the status of the pod."""
        status = PodExtendedResourceClaimStatus(node_claim.mappings, claim.metadata.name)
        with _error_context(f"update pod {pod.key} ExtendedResourceClaimStatus"):
            await self._api.set_extended_resource_claim(pod, status)

    async def deallocate(self, claim: ResourceClaim) -> None:
        changes = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
        await self._api.update_resource_claim_status(claim, changes)

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim that was created for a pod's extended resources."""
        await self._with_retries(claim, self._without_finalizer)
        await self._api.delete_resource_claim(claim)

    async def _without_finalizer(self, claim: ResourceClaim) -> ResourceClaim:
        left = [name for name in claim.metadata.finalizers if name != FINALIZER]
        return await self._api.update_resource_claim(claim, {"metadata": {"finalizers": left or None}})

    async def _with_retries(
        self, claim: ResourceClaim, write: Callable[[ResourceClaim], Awaitable[ResourceClaim]]
    ) -> ResourceClaim:
        for _ in range(_MAX_ATTEMPTS - 1):
            try:
                return await write(claim)
            except ConflictError:
                await self._handle.wait_until(lambda: False, _RETRY_DELAY)
            with _error_context(f"get updated claim {key_of(claim)} after conflict"):
                claim = await self._api.get_resource_claim(claim)
        return await write(claim)

    async def _reserve(
        self, consumer: ResourceClaimConsumer, pending: AllocationResult | None, claim: ResourceClaim
    ) -> ResourceClaim:
        key, allocation = key_of(claim), claim.status.allocation
        if claim.metadata.deletionTimestamp is not None:
            raise RuntimeError(f"claim {key} got deleted in the meantime")
        if pending is not None and allocation is not None and allocation.devices == pending.devices:
            # Another pod of the group that shares the claim has written it.
            pending = None
            if any(one.uid == consumer.uid for one in claim.status.reservedFor):
                await self._assume(claim)
                return claim
        if pending is not None:
            if allocation is not None:
                raise RuntimeError(f"claim {key} got allocated elsewhere in the meantime")
            if FINALIZER not in claim.metadata.finalizers:
                names = [*claim.metadata.finalizers, FINALIZER]
                with _error_context(f"add finalizer to claim {key}"):
                    claim = await self._api.update_resource_claim(claim, {"metadata": {"finalizers": names}})
        elif allocation is None and self._timestamps:
            raise RuntimeError(f"claim {key} got deallocated elsewhere in the meantime")
        status: dict[str, Any] = {"reservedFor": [*claim.status.reservedFor, consumer]}
        now = format_time(self._handle.clock.now()) if self._timestamps else None
        if pending is not None:
            status["allocation"] = msgspec.structs.replace(pending, allocationTimestamp=now)
        elif now is not None and allocation is not None and allocation.allocationTimestamp is None:
            status["allocation"] = {"allocationTimestamp": now}
        what = "reservation" if pending is None else "allocation and reservation"
        with _error_context(f"add {what} to claim {key}"):
            written = await self._api.update_resource_claim_status(claim, {"status": status})
        await self._assume(written)
        return written

    async def _assume(self, claim: ResourceClaim) -> None:
        """Use the written claim until the watch delivers it; wait for a claim that was just created."""
        key = key_of(claim)
        received = self._claims.received(key)
        if received is None:
            await self._handle.wait_until(lambda: self._claims.received(key) is not None, _WATCH_TIMEOUT)
            received = self._claims.received(key)
        if received is not None and version_of(received) < version_of(claim):
            self._claims.assume(claim)


@contextmanager
def _error_context(what: str) -> Iterator[None]:
    """Prefix the message of a CallError with the operation; the type of the error stays the same."""
    try:
        yield
    except CallError as error:
        error.args = (f"{what}: {error}",)
        raise


def _tree(value: Any) -> Any:
    """Return plain JSON values; opaque parameters are kept unchanged."""
    return msgspec.json.decode(msgspec.json.encode(value))
