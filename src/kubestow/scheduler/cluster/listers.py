"""The objects that plugins look up besides nodes and pods: a store per kind, indexed where a cycle would search."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from kubestow.api.claims import volume_class
from kubestow.api.custom_kinds import resource_of
from kubestow.api.devices import EXTENDED_RESOURCE_CLAIM, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubestow.api.labels import Selector, selector_from_set
from kubestow.api.meta import controller_of
from kubestow.api.node import Namespace
from kubestow.api.pod_groups import CompositePodGroup, PodGroup
from kubestow.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubestow.api.workloads import PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StatefulSet
from kubestow.scheduler.cluster.history import UNREADABLE, History
from kubestow.scheduler.cluster.selector_index import SelectorIndex

T = TypeVar("T", bound=Any)


def key_of(obj: Any) -> str:
    """Return namespace/name, or the name if the object has no namespace."""
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)


def version_of(obj: Any) -> int:
    """Return the resource version of an object; 0 if it is not a number."""
    version = obj.metadata.resourceVersion
    return int(version) if version.isdecimal() else 0


_KEPT_CHANGES = 4_096


def _is_newer(received: Any, assumed: Any) -> bool:
    """Return whether a received object replaces the assumed one: older versions may still arrive by the watch."""
    new, old = received.metadata.resourceVersion, assumed.metadata.resourceVersion
    return int(new) > int(old) if new.isdecimal() and old.isdecimal() else bool(new != old)


class Store(Generic[T]):
    """Objects of a kind by key, grouped by a property; objects with an empty value are in no group.

    An object can be assumed: its expected next version hides the received one, until a newer one arrives or the
    assumption is withdrawn.
    """

    def __init__(self, group_of: Callable[[T], str] | None = None) -> None:
        self.unreadable = ""
        """Why the API server does not let us read the objects; empty if it does."""
        self._received: dict[str, T] = {}
        self._assumed: dict[str, T] = {}
        self._group_of = group_of
        self._groups: dict[str, dict[str, None]] = {}
        self._changes: list[str] = []
        self._first_change = 0
        self._history: History | None = None
        self._kind: type = object
        self.revision = 0
        """Number of times that the result of `get` may have changed, or that access has."""
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, callback: Callable[[str], None]) -> None:
        """Call back with the key whenever the result of `get` may have changed, until `ignore`."""
        self._listeners.append(callback)

    def ignore(self, callback: Callable[[str], None]) -> None:
        """Undo `listen`."""
        self._listeners.remove(callback)

    def record_in(self, history: History, kind: type) -> None:
        """Record every change from now on as one of an object of this kind."""
        self._history, self._kind = history, kind

    def fill_from(self, other: "Store[T]") -> None:
        """Make this new store an independent copy of another store of the same kind."""
        self.unreadable = other.unreadable
        self._received = other._received.copy()  # noqa: SLF001 its own class
        self._assumed = other._assumed.copy()  # noqa: SLF001
        self._groups = {name: members.copy() for name, members in other._groups.items()}  # noqa: SLF001
        self._first_change = other.version

    @property
    def version(self) -> int:
        """Number of times that an object was received or removed."""
        return self._first_change + len(self._changes)

    def changed_since(self, version: int) -> list[str] | None:
        """Return the keys of the objects received or removed since a version; None if those are no longer recorded."""
        start = version - self._first_change
        return self._changes[start:] if start >= 0 else None

    def _note_change(self, key: str) -> None:
        self._changes.append(key)
        if len(self._changes) > 2 * _KEPT_CHANGES:
            del self._changes[:_KEPT_CHANGES]
            self._first_change += _KEPT_CHANGES

    def get(self, key: str) -> T | None:
        return self._assumed.get(key) or self._received.get(key)

    def received(self, key: str) -> T | None:
        """Return the object as last received, without assumptions."""
        return self._received.get(key)

    def __iter__(self) -> Iterator[T]:
        if not self._assumed:
            return iter(self._received.values())
        return (self._assumed.get(key, obj) for key, obj in self._received.items())

    def __len__(self) -> int:
        return len(self._received)

    def group(self, name: str) -> Iterator[T]:
        """Yield the objects of a group, as of the versions received."""
        for key in self._groups.get(name, ()):
            yield self._assumed.get(key) or self._received[key]

    def set_unreadable(self, problem: str) -> None:
        """Set why the objects cannot be read; an empty string if they can."""
        if self._history is not None:
            self._history.note(UNREADABLE, self._kind, self.unreadable, problem)
        self.unreadable = problem
        self.revision += 1

    def set(self, obj: T) -> None:
        key = key_of(obj)
        assumed = self._assumed.get(key)
        self.put(key, obj, None if assumed is not None and _is_newer(obj, assumed) else assumed)

    def remove(self, obj: T) -> None:
        key = key_of(obj)
        if key in self._received:
            self.put(key, None, None)

    def assume(self, obj: T) -> None:
        """Replace an object by its expected next version; raises LookupError if it does not exist."""
        key = key_of(obj)
        if key not in self._received:
            raise LookupError(f"cannot assume {type(obj).__name__} {key}: it does not exist")
        self.put(key, self._received[key], obj)

    def restore(self, key: str) -> None:
        """Withdraw an assumption."""
        if key in self._assumed:
            self.put(key, self._received.get(key), None)

    def put(self, key: str, received: T | None, assumed: T | None) -> None:
        """Replace both versions of an object; None stands for one that does not exist.

        There is no assumed version without a received one.
        """
        old = self._received.get(key)
        if self._history is not None:
            before = None if old is None else (old, self._assumed.get(key))
            self._history.note(self._kind, key, before, None if received is None else (received, assumed))
        if assumed is None:
            self._assumed.pop(key, None)
        else:
            self._assumed[key] = assumed
        if received is not old:
            if self._group_of is not None:
                self._regroup(key, old, received)
            if received is None:
                del self._received[key]
            else:
                self._received[key] = received
            self._note_change(key)
        self.revision += 1
        for callback in self._listeners:
            callback(key)

    def _regroup(self, key: str, old: T | None, new: T | None) -> None:
        assert self._group_of is not None
        if old is not None and self._groups and (name := self._group_of(old)):
            members = self._groups[name]
            members.pop(key, None)
            if not members:
                del self._groups[name]
        if new is not None and (name := self._group_of(new)):
            self._groups.setdefault(name, {})[key] = None


class VolumeStore(Store[PersistentVolume]):
    """Persistent volumes, indexed by the claims they may be bound to."""

    def __init__(self) -> None:
        super().__init__(_volume_group)

    def candidates(self, storage_class: str, claim: str) -> Iterator[PersistentVolume]:
        """Yield the volumes of a class that are reserved for no claim or for this one, as of the versions received."""
        yield from self.group(f"free/{storage_class}")
        for volume in self.group(f"kept/{claim}"):
            if volume_class(volume) == storage_class:
                yield volume


def _volume_group(volume: PersistentVolume) -> str:
    reference = volume.spec.claimRef
    return f"free/{volume_class(volume)}" if reference is None else f"kept/{reference.namespace}/{reference.name}"


def _pod_of_extended_resources(claim: ResourceClaim) -> str:
    """Return the UID of the pod whose extended resources a claim is for; empty for other claims."""
    owner = controller_of(claim.metadata) if EXTENDED_RESOURCE_CLAIM in claim.metadata.annotations else None
    return "" if owner is None else owner.uid


class ServiceStore(Store[Service]):
    """Services, indexed by the pods they select."""

    def __init__(self) -> None:
        super().__init__()
        self._by_namespace: dict[str, SelectorIndex[str]] = {}

    def fill_from(self, other: Store[Service]) -> None:
        super().fill_from(other)
        assert isinstance(other, ServiceStore)
        filed = other._by_namespace  # noqa: SLF001 its own class
        self._by_namespace = {namespace: index.copy() for namespace, index in filed.items()}

    def put(self, key: str, received: Service | None, assumed: Service | None) -> None:
        old = self.get(key)
        if old is not None and old.spec.selector:
            self._by_namespace[old.metadata.namespace].remove(selector_from_set(old.spec.selector), key)
        super().put(key, received, assumed)
        new = assumed or received
        if new is not None and new.spec.selector:
            index = self._by_namespace.setdefault(new.metadata.namespace, SelectorIndex())
            index.add(selector_from_set(new.spec.selector), key)

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> list[Selector]:
        """Return the selectors of the namespace's services that match the labels."""
        index = self._by_namespace.get(namespace)
        if index is None:
            return []
        return [
            selector_from_set(service.spec.selector) for key in index.matching(labels) if (service := self.get(key))
        ]


class Listers:
    """One store per kind. Those of kinds that plugins declare are created when they are used first."""

    def __init__(self, history: History | None = None) -> None:
        self._history = history
        self._by_kind: dict[type, Store[Any]] = {}
        self.namespaces = self._store(Namespace)
        self.services = self._by_kind[Service] = ServiceStore()
        self.replication_controllers = self._store(ReplicationController)
        self.replica_sets = self._store(ReplicaSet)
        self.stateful_sets = self._store(StatefulSet)
        self.disruption_budgets = self._store(PodDisruptionBudget, lambda budget: budget.metadata.namespace)
        self.volumes = self._by_kind[PersistentVolume] = VolumeStore()
        self.claims = self._store(PersistentVolumeClaim)
        self.storage_classes = self._store(StorageClass)
        self.csi_nodes = self._store(CSINode)
        self.csi_drivers = self._store(CSIDriver)
        self.csi_capacities = self._store(CSIStorageCapacity, lambda capacity: capacity.storageClassName)
        self.volume_attachments = self._store(VolumeAttachment, lambda attachment: attachment.spec.nodeName)
        self.resource_claims = self._store(ResourceClaim, _pod_of_extended_resources)
        self.resource_slices = self._store(ResourceSlice)
        self.device_classes = self._store(DeviceClass)
        self.device_taint_rules = self._store(DeviceTaintRule)
        self.pod_groups = self._store(PodGroup, lambda group: group.parent_key)
        self.composite_pod_groups = self._store(CompositePodGroup, lambda group: group.parent_key)
        if history is not None:
            for kind, store in self._by_kind.items():
                store.record_in(history, kind)

    def _store(self, kind: type[T], group_of: Callable[[T], str] | None = None) -> Store[T]:
        store = self._by_kind[kind] = Store(group_of)
        return store

    def copy(self) -> "Listers":
        """Return an independent copy without history."""
        other = Listers()
        for kind, store in self._by_kind.items():
            other.store_of(kind).fill_from(store)
        return other

    def store_of(self, kind: type[T]) -> Store[T]:
        """Return the store of a kind. Raises LookupError for a kind that is neither watched nor declared."""
        found = self._by_kind.get(kind)
        if found is None:
            if resource_of(kind) is None:
                raise LookupError(f"{kind.__name__} is not watched; declare a kind with @custom_resource")
            found = self._store(kind)
            if self._history is not None:
                found.record_in(self._history, kind)
        return found

    def forget(self, kind: type) -> None:
        """Drop the store of a declared kind, and its objects."""
        if resource_of(kind) is not None:
            self._by_kind.pop(kind, None)

    def stores(self) -> Iterable[Store[Any]]:
        """Return the stores of all kinds."""
        return self._by_kind.values()

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self.namespaces.get(name)
        return namespace.metadata.labels if namespace is not None else {}
