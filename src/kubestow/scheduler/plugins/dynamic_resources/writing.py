"""What is written about claims: on the way to a node, and to undo it.

    create the claim for extended resources -> finalizer -> allocation and reservation -> pod status

A claim that somebody else has changed meanwhile is read again and tried again, some times.
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
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.plugins.dynamic_resources.extended import NodeClaim

FINALIZER = "resource.kubernetes.io/delete-protection"

_TRIES = 5
_PAUSE = 0.01
_LOOK_AGAIN = 0.1
_SEEN_WITHIN = 120.0
"""How long a claim that was just made may take to be seen, in seconds."""


class ClaimWriter:
    """Writes claims for pods."""

    def __init__(self, handle: Handle, *, timestamps: bool) -> None:
        self._handle = handle
        self._api = handle.api
        self._claims = handle.cluster.listers.resource_claims
        self._timestamps = timestamps
        self._releasing: Counter[str] = Counter()
        """How many claims are being released for a pod, by its uid."""

    def reserve(
        self, claim: ResourceClaim, pod: Pod, allocation: AllocationResult | None
    ) -> Coroutine[Any, Any, ResourceClaim]:
        """Reserve a claim for a pod, with the allocation that it was promised if it has none yet."""
        return self._try(claim, partial(self._reserve, pod, allocation))

    def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Have a claim no longer reserved for a pod, some time soon."""
        self._releasing[pod.metadata.uid] += 1

        async def write() -> None:
            await self._assume(await self._api.unreserve_resource_claim(claim, pod.metadata.uid))

        self._handle.write_aside(pod, write, partial(self._released, pod.metadata.uid))

    def _released(self, uid: str) -> None:
        self._releasing[uid] -= 1
        if not self._releasing[uid]:
            del self._releasing[uid]

    async def until_released(self, pod: Pod) -> None:
        """Wait until what was released for an earlier attempt is: else it would be lost for this one."""
        while pod.metadata.uid in self._releasing:
            await self._handle.wait_until(lambda: pod.metadata.uid not in self._releasing, _LOOK_AGAIN)

    async def create(self, node_claim: NodeClaim, pod: Pod) -> ResourceClaim:
        """Make the claim for a pod's extended resources."""
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
            # It has no name yet; kube-scheduler writes the slash all the same.
            with _about(f"create claim for extended resources {meta.namespace}/"):
                created = await self._api.create_resource_claim(meta.namespace, manifest)
        except CallError:
            self._handle.metrics.resource_claim_creates.inc("failure")
            raise
        self._handle.metrics.resource_claim_creates.inc("success")
        return created

    async def tell(self, pod: Pod, claim: ResourceClaim, node_claim: NodeClaim) -> None:
        """Note in a pod's status which claim its extended resources come from."""
        status = PodExtendedResourceClaimStatus(node_claim.mappings, claim.metadata.name)
        with _about(f"update pod {pod.key} ExtendedResourceClaimStatus"):
            await self._api.set_extended_resource_claim(pod, status)

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Take an allocation back, so that another one can be made."""
        changes = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
        await self._api.update_resource_claim_status(claim, changes)

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim that was made for a pod's extended resources."""
        await self._try(claim, self._without_finalizer)
        await self._api.delete_resource_claim(claim)

    async def _without_finalizer(self, claim: ResourceClaim) -> ResourceClaim:
        left = [name for name in claim.metadata.finalizers if name != FINALIZER]
        return await self._api.update_resource_claim(claim, {"metadata": {"finalizers": left or None}})

    async def _try(
        self, claim: ResourceClaim, write: Callable[[ResourceClaim], Awaitable[ResourceClaim]]
    ) -> ResourceClaim:
        for _ in range(_TRIES - 1):
            try:
                return await write(claim)
            except ConflictError:
                await self._handle.wait_until(lambda: False, _PAUSE)
            with _about(f"get updated claim {key_of(claim)} after conflict"):
                claim = await self._api.get_resource_claim(claim)
        return await write(claim)

    async def _reserve(self, pod: Pod, promised: AllocationResult | None, claim: ResourceClaim) -> ResourceClaim:
        key, allocation = key_of(claim), claim.status.allocation
        if claim.metadata.deletionTimestamp is not None:
            raise RuntimeError(f"claim {key} got deleted in the meantime")
        if promised is not None and allocation is not None and allocation.devices == promised.devices:
            # For another pod of the group that shares it.
            promised = None
        if promised is not None:
            if allocation is not None:
                raise RuntimeError(f"claim {key} got allocated elsewhere in the meantime")
            if FINALIZER not in claim.metadata.finalizers:
                names = [*claim.metadata.finalizers, FINALIZER]
                with _about(f"add finalizer to claim {key}"):
                    claim = await self._api.update_resource_claim(claim, {"metadata": {"finalizers": names}})
        elif allocation is None and self._timestamps:
            raise RuntimeError(f"claim {key} got deallocated elsewhere in the meantime")
        status: dict[str, Any] = {"reservedFor": [*claim.status.reservedFor, _consumer(pod)]}
        now = format_time(self._handle.clock.now()) if self._timestamps else None
        if promised is not None:
            status["allocation"] = msgspec.structs.replace(promised, allocationTimestamp=now)
        elif now is not None and allocation is not None and allocation.allocationTimestamp is None:
            status["allocation"] = {"allocationTimestamp": now}
        what = "reservation" if promised is None else "allocation and reservation"
        with _about(f"add {what} to claim {key}"):
            written = await self._api.update_resource_claim_status(claim, {"status": status})
        await self._assume(written)
        return written

    async def _assume(self, claim: ResourceClaim) -> None:
        """Go by what was written until it is seen; a claim that was just made has to be seen first."""
        key = key_of(claim)
        received = self._claims.received(key)
        if received is None:
            await self._handle.wait_until(lambda: self._claims.received(key) is not None, _SEEN_WITHIN)
            received = self._claims.received(key)
        if received is not None and _version(received) < _version(claim):
            self._claims.assume(claim)


@contextmanager
def _about(what: str) -> Iterator[None]:
    """Have the error of a call say what it is about; it must stay of its kind."""
    try:
        yield
    except CallError as error:
        error.args = (f"{what}: {error}",)
        raise


def _version(claim: ResourceClaim) -> int:
    version = claim.metadata.resourceVersion
    return int(version) if version.isdecimal() else 0


def _consumer(pod: Pod) -> ResourceClaimConsumer:
    return ResourceClaimConsumer(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def _tree(value: Any) -> Any:
    """Plain JSON; opaque parameters are kept as they came."""
    return msgspec.json.decode(msgspec.json.encode(value))
