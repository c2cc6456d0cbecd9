"""Claims, storage classes, volumes and drivers in one line each."""

from typing import Any

from kubestow.api.codec import convert
from kubestow.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

DRIVER = "csi.example.com"


def claim(name: str, storage_class: str | None = None, *, size: str = "10Gi", **fields: Any) -> PersistentVolumeClaim:
    """Return a pending claim in the namespace default; `fields` are those of its spec, metadata or status."""
    metadata = {"name": name, "namespace": "default", **fields.pop("metadata", {})}
    status = {"phase": "Pending", **fields.pop("status", {})}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **fields}
    spec |= {} if storage_class is None else {"storageClassName": storage_class}
    return convert(PersistentVolumeClaim, {"metadata": metadata, "spec": spec, "status": status})


def bound(name: str, volume: str, **fields: Any) -> PersistentVolumeClaim:
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    return claim(name, volumeName=volume, metadata=done, status={"phase": "Bound"}, **fields)


def storage_class(
    name: str, mode: str = "WaitForFirstConsumer", provisioner: str = DRIVER, **fields: Any
) -> StorageClass:
    manifest = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **fields}
    return convert(StorageClass, manifest)


def manual_class(name: str, mode: str = "WaitForFirstConsumer") -> StorageClass:
    return storage_class(name, mode, "kubernetes.io/no-provisioner")


def volume(name: str, storage_class: str = "", size: str = "10Gi", **spec: Any) -> PersistentVolume:
    """Return a free volume."""
    labels = spec.pop("labels", {})
    modes = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
    full = {**modes, "storageClassName": storage_class, **spec}
    phase = "Bound" if "claimRef" in spec else "Available"
    manifest = {"metadata": {"name": name, "labels": labels}, "spec": full, "status": {"phase": phase}}
    return convert(PersistentVolume, manifest)


def at(key: str, *values: str) -> dict[str, Any]:
    """Return the node affinity of a volume."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    return {"required": {"nodeSelectorTerms": terms}}


def driver(name: str = DRIVER, **spec: Any) -> CSIDriver:
    return convert(CSIDriver, {"metadata": {"name": name}, "spec": spec})


def csi_node(name: str, *drivers: str, limit: int | None = None) -> CSINode:
    allocatable = {} if limit is None else {"allocatable": {"count": limit}}
    installed = [{"name": driver, "nodeID": name, **allocatable} for driver in drivers]
    return convert(CSINode, {"metadata": {"name": name}, "spec": {"drivers": installed}})


def pool(storage_class: str, capacity: str, **labels: str) -> CSIStorageCapacity:
    """Return the capacity that a driver reports where nodes have the labels."""
    metadata = {"name": f"pool-{'-'.join(labels.values())}", "namespace": "kube-system"}
    topology = {"matchLabels": labels}
    manifest = {"storageClassName": storage_class, "capacity": capacity, "nodeTopology": topology}
    return convert(CSIStorageCapacity, {"metadata": metadata, **manifest})
