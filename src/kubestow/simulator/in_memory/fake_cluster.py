"""A cluster in memory to run a scheduler against: versioned objects, and the scheduler's API port.

It shares these rules with a real API server: names are unique, every write creates a new resourceVersion, a binding is
rejected for a pod that has a node or is being deleted, and a bound pod that is deleted gets a deletionTimestamp and is
removed after its grace period. Changes reach the scheduler through a `ChangeFeed`; `faults` makes calls fail.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.conditions import POD_SCHEDULED, with_condition, with_result
from kubestow.api.custom_kinds import resource_of, with_metadata
from kubestow.api.devices import ResourceClaim
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.priority import pod_is_terminal
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.timestamps import format_time
from kubestow.apiserver.patches import merge_patch
from kubestow.clock import Clock
from kubestow.scheduler.cluster.listers import key_of
from kubestow.simulator.in_memory.change_feed import Access, ChangeFeed
from kubestow.simulator.in_memory.faults import TIMEOUT_SECONDS, Faults, failure

T = TypeVar("T")
R = TypeVar("R")

DEFAULT_GRACE = 30.0


class Binding(NamedTuple):
    """A pod bound to a node."""

    pod: str
    node: str
    time: float
    """Time on the loop's clock."""
    uid: str


class ApiCall(NamedTuple):
    """A call of the scheduler, successful or not."""

    call: str
    object: str
    time: float
    """Time on the loop's clock."""


class FakeCluster:
    """A fake API server: tests add, change and delete objects; the scheduler calls the async methods."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, *, delay: float = 0.0, latency: float = 0.0
    ) -> None:
        """`delay`: seconds from a change to its delivery; `latency`: seconds from a call to its execution."""
        self._objects: dict[tuple[type, str], Any] = {}
        self.feed = ChangeFeed(loop, self._objects, delay)
        self.faults = Faults()
        self.latency = latency
        self.slow: dict[str, float] = {}
        """Latency in seconds of calls that differ from `latency`, by call."""
        self.bindings: list[Binding] = []
        """All bindings, in order."""
        self.calls: list[ApiCall] = []
        self._loop = loop
        self._clock = clock
        self._removed: set[type] = set()
        """The declared kinds that are not served."""
        self._version = 0
        self._uids = 0
        self._terminating = 0
        self._return: asyncio.TimerHandle | None = None

    # Queries

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by namespace/name (cluster-scoped objects: name), None if it does not exist."""
        return self._objects.get((kind, key))

    def all(self, kind: type[T]) -> list[T]:
        """Return the objects of a kind, oldest first."""
        return [obj for (type_, _), obj in self._objects.items() if type_ is kind]

    def pod(self, name: str, namespace: str = "default") -> Pod:
        """Return a pod; raises LookupError if it does not exist."""
        return self._existing(Pod, f"{namespace}/{name}")

    def node(self, name: str) -> Node:
        """Return a node; raises LookupError if it does not exist."""
        return self._existing(Node, name)

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Return the node of a pod, "" if unbound."""
        return self.pod(name, namespace).spec.nodeName

    def conditions(self, name: str, namespace: str = "default") -> dict[str, PodCondition]:
        """Return the conditions of a pod by type."""
        return {condition.type: condition for condition in self.pod(name, namespace).status.conditions}

    @property
    def is_busy(self) -> bool:
        """Whether changes are yet to be delivered or pods are terminating."""
        return self.feed.is_busy or bool(self._terminating)

    # Changes by other clients

    def add(self, obj: T) -> T:
        """Create an object; returns it as stored. Raises ValueError if it exists."""
        if type(obj) in self._removed:
            raise LookupError(f"{self._resource_name(type(obj))} are not served: call install_crd")
        if self._id(obj) in self._objects:
            raise ValueError(f"{type(obj).__name__} {key_of(obj)} exists already; use update")
        self._uids += 1
        return self._put(obj, uid=f"uid-{self._uids}", creationTimestamp=format_time(self._clock.now()))

    def restore(self, obj: T) -> T:
        """Store an object of another cluster with its UID."""
        return self._put(obj)

    def update(self, obj: T) -> T:
        """Replace an object; returns it as stored."""
        old: Any = self._existing(type(obj), key_of(obj))
        meta = old.metadata
        return self._put(obj, uid=meta.uid, creationTimestamp=meta.creationTimestamp)

    def delete(self, obj: Any, grace_seconds: float | None = None) -> None:
        """Delete an object. A bound pod terminates first: for `grace_seconds`, else as in its spec, else 30 s."""
        current: Any = self._existing(type(obj), key_of(obj))
        if not isinstance(current, Pod) or not current.spec.nodeName or pod_is_terminal(current):
            self._remove(current)
            return
        if current.metadata.deletionTimestamp is not None:
            return
        if grace_seconds is None:
            spec_grace = current.spec.terminationGracePeriodSeconds
            grace_seconds = DEFAULT_GRACE if spec_grace is None else float(spec_grace)
        if grace_seconds <= 0.0:
            self._remove(current)
            return
        self._put(current, deletionTimestamp=format_time(self._clock.now() + grace_seconds))
        self._terminating += 1
        self._loop.call_later(grace_seconds, self._terminated, key_of(current), current.metadata.uid)

    def _terminated(self, key: str, uid: str) -> None:
        self._terminating -= 1
        pod = self.get(Pod, key)
        if pod is not None and pod.metadata.uid == uid:
            self._remove(pod)

    def remove_crd(self, kind: type[Any]) -> None:
        """Stop serving a declared kind, and delete its objects."""
        for obj in self.all(kind):
            self._remove(obj)
        self._removed.add(kind)
        self.feed.changed((kind, ""), Access(f"{self._resource_name(kind)}: the API server does not have them"))

    def install_crd(self, kind: type) -> None:
        """Serve a declared kind again."""
        self._removed.discard(kind)
        self.feed.changed((kind, ""), Access(""))

    @staticmethod
    def _resource_name(kind: type) -> str:
        declared = resource_of(kind)
        if declared is None:
            raise ValueError(f"{kind.__name__} is not declared with @custom_resource")
        return declared.name

    def go_away_for(self, seconds: float) -> None:
        """Make the server unreachable: calls fail, and changes are delivered only once it is back."""
        self.feed.disconnect()
        if self._return is not None:
            self._return.cancel()
        self._return = self._loop.call_later(seconds, self._return_to_service)

    def _return_to_service(self) -> None:
        self._return = None
        self.feed.reconnect()

    # The scheduler's calls

    async def bind(self, pod: Pod, node: str) -> None:
        def bind(current: Pod) -> None:
            if current.metadata.deletionTimestamp is not None:
                raise failure("bind", "Conflict", f"pod {pod.metadata.name} is being deleted, cannot be assigned")
            if current.spec.nodeName:
                message = f"pod {pod.metadata.name} is already assigned to node {current.spec.nodeName!r}"
                raise failure("bind", "Conflict", message)
            now = format_time(self._clock.now())
            scheduled = PodCondition(type=POD_SCHEDULED, status="True", lastTransitionTime=now)
            conditions = with_condition(current.status.conditions, scheduled)
            status = replace(current.status, nominatedNodeName="", conditions=conditions)
            self._put(replace(current, spec=replace(current.spec, nodeName=node), status=status))
            self.bindings.append(Binding(pod.key, node, self._loop.time(), pod.metadata.uid))

        await self._act_on("bind", pod, bind)

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
    ) -> None:
        def patch(current: Pod) -> None:
            status = with_result(current.status, condition, nominated_node)
            if status != current.status:
                self._put(replace(current, status=status))

        await self._act_on("patch_pod_status", pod, patch)

    async def patch_pod_group_status(self, group: PodGroup, condition: Condition) -> None:
        def patch(current: PodGroup) -> None:
            conditions = with_condition(current.status.conditions, condition)
            if conditions != current.status.conditions:
                self._put(replace(current, status=replace(current.status, conditions=conditions)))

        await self._act_on("patch_pod_group_status", group, patch)

    async def delete_pod(self, pod: Pod) -> None:
        await self._act_on("delete_pod", pod, self.delete)

    async def patch_object(self, obj: T, changes: dict[str, Any], subresource: str) -> T:
        def patch(current: T) -> T:
            # Like a server, ignores what a path does not write.
            written = {name: part for name, part in changes.items() if (name == "status") == (subresource == "status")}
            return self._put_merged(current, written)

        if type(obj) in self._removed:
            raise failure("patch_object", "NotFound", "the server could not find the requested resource")
        return await self._act_on("patch_object", obj, patch)

    async def update_volume(self, volume: PersistentVolume, changes: dict[str, Any]) -> PersistentVolume:
        return await self._merge("update_volume", volume, changes)

    async def update_claim(self, claim: PersistentVolumeClaim, changes: dict[str, Any]) -> PersistentVolumeClaim:
        return await self._merge("update_claim", claim, changes)

    async def get_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return await self._act_on("get_resource_claim", claim, lambda current: current)

    async def create_resource_claim(self, namespace: str, manifest: dict[str, Any]) -> ResourceClaim:
        meta = manifest["metadata"]
        name = f"{meta['generateName']}{self._uids + 1}"
        claim = convert(ResourceClaim, {**manifest, "metadata": {**meta, "namespace": namespace, "name": name}})
        return await self._call("create_resource_claim", claim, lambda: self.add(claim))

    async def update_resource_claim(self, claim: ResourceClaim, changes: dict[str, Any]) -> ResourceClaim:
        return await self._merge("update_resource_claim", claim, changes)

    async def update_resource_claim_status(self, claim: ResourceClaim, changes: dict[str, Any]) -> ResourceClaim:
        return await self._merge("update_resource_claim_status", claim, changes)

    async def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        def unreserve(current: ResourceClaim) -> ResourceClaim:
            remaining = [of for of in msgspec.to_builtins(current.status.reservedFor) if of["uid"] != uid]
            return self._put_merged(current, {"status": {"reservedFor": remaining or None}})

        return await self._act_on("unreserve_resource_claim", claim, unreserve)

    async def delete_resource_claim(self, claim: ResourceClaim) -> None:
        await self._act_on("delete_resource_claim", claim, self.delete)

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        def patch(current: Pod) -> None:
            self._put(replace(current, status=replace(current.status, extendedResourceClaimStatus=status)))

        await self._act_on("set_extended_resource_claim", pod, patch)

    async def _act_on(self, call: str, obj: T, act: Callable[[T], R]) -> R:
        """Call `act` with the server's version of an object."""
        return await self._call(call, obj, lambda: act(self._found(call, obj)))

    async def _call(self, call: str, obj: Any, operation: Callable[[], T]) -> T:
        self.calls.append(ApiCall(call, key_of(obj), self._loop.time()))
        if latency := self.slow.get(call, self.latency):
            await asyncio.sleep(latency)
        if self._return is not None:
            raise failure(call, "ConnectionRefused")
        fault = self.faults.striking(call)
        if fault is None:
            return operation()
        if fault.takes_effect:
            operation()
        if fault.problem == "Timeout":
            await asyncio.sleep(TIMEOUT_SECONDS)
        raise failure(call, fault.problem)

    async def _merge(self, call: str, obj: T, changes: dict[str, Any]) -> T:
        """Merge changes into an object; rejected unless `obj` is its latest version."""

        def merge(current: T) -> T:
            if current.metadata.resourceVersion != obj.metadata.resourceVersion:  # type: ignore[attr-defined]
                raise failure(call, "Conflict", "the object has been modified; please apply your changes to the latest")
            return self._put_merged(current, changes)

        return await self._act_on(call, obj, merge)

    def _put_merged(self, current: T, changes: dict[str, Any]) -> T:
        source: msgspec.Raw = getattr(current, "source", msgspec.Raw())
        manifest = msgspec.json.decode(source) if len(source) else msgspec.to_builtins(current)
        manifest.pop("source", None)
        return self._put(convert(type(current), merge_patch.apply(manifest, changes)))

    def _found(self, call: str, obj: T) -> T:
        """Return the server's version of an object."""
        kind, meta = type(obj), obj.metadata  # type: ignore[attr-defined]
        current: Any = self.get(kind, key_of(obj))
        if current is None:
            raise failure(call, "NotFound", f"{kind.__name__} {key_of(obj)} not found")
        if meta.uid != current.metadata.uid:
            raise failure(call, "Conflict", f"uid {meta.uid} is not that of the object, {current.metadata.uid}")
        return current  # type: ignore[no-any-return]

    # The store

    @staticmethod
    def _id(obj: Any) -> tuple[type, str]:
        return type(obj), key_of(obj)

    def _existing(self, kind: type[T], key: str) -> T:
        found = self.get(kind, key)
        if found is None:
            raise LookupError(f"there is no {kind.__name__} {key}")
        return found

    def _put(self, obj: T, **meta: str) -> T:
        """Store an object with a new version and the given metadata."""
        self._version += 1
        obj = _with_meta(obj, resourceVersion=str(self._version), **meta)
        object_id = self._id(obj)
        self._objects[object_id] = obj
        self.feed.changed(object_id, obj)
        return obj

    def _remove(self, obj: Any) -> None:
        object_id = self._id(obj)
        del self._objects[object_id]
        self.feed.changed(object_id, None)


def _with_meta(obj: T, **fields: Any) -> T:
    changed: Any = with_metadata(obj, **fields)
    source = getattr(obj, "source", None)
    if source is not None and len(source):
        manifest = msgspec.json.decode(source)
        changed = convert(type(obj), merge_patch.apply(manifest, {"metadata": msgspec.to_builtins(changed.metadata)}))
    return changed  # type: ignore[no-any-return]
