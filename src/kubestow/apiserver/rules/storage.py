"""Storage classes, volumes and claims."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import FORBIDDEN, INVALID, REQUIRED
from kubestow.apiserver.rules.podvalidation import wrong_node_selector


def default_storage_class(obj: dict[str, Any]) -> None:
    """Volumes go with their claims, and are bound at once."""
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def keep_storage_class(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Volumes of a class were made by its word: it cannot change."""
    for name in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if new.get(name) != old.get(name):
            yield name, INVALID, "Invalid value: field is immutable"


def keep_attributes(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Volumes are set up by what a class says: it cannot change."""
    for name in ("driverName", "parameters"):
        if new.get(name) != old.get(name):
            yield name, INVALID, "Invalid value: field is immutable"


def default_driver(obj: dict[str, Any]) -> None:
    """Volumes of a driver are attached, and outlive pods."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    for name in ("podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"):
        spec.setdefault(name, False)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def default_volume(obj: dict[str, Any]) -> None:
    """A volume is kept when its claim goes."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def prepare_volume(obj: dict[str, Any]) -> None:
    """A new volume waits to be looked at."""
    obj["status"] = {"phase": "Pending"}


def validate_volume(obj: dict[str, Any]) -> Iterator[Cause]:
    """A size, a way to mount it, and sound node conditions."""
    spec = obj["spec"]
    if not spec.get("capacity", {}).get("storage"):
        yield "spec.capacity", REQUIRED, "Required value"
    if not spec.get("accessModes"):
        yield "spec.accessModes", REQUIRED, "Required value"
    required = spec.get("nodeAffinity", {}).get("required")
    if required:
        yield from wrong_node_selector(required, "spec.nodeAffinity.required")


def default_claim(obj: dict[str, Any]) -> None:
    """A claim wants a file system."""
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def validate_claim(obj: dict[str, Any]) -> Iterator[Cause]:
    """A size and a way to mount it."""
    spec = obj["spec"]
    if not spec.get("accessModes"):
        yield "spec.accessModes", REQUIRED, "Required value: at least 1 access mode is required"
    if not spec.get("resources", {}).get("requests", {}).get("storage"):
        yield "spec.resources[storage]", REQUIRED, "Required value"


def keep_claim(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """A claim may grow and find its volume; the rest of what it asks for stays."""
    late = {name for name in ("volumeName", "storageClassName") if not old["spec"].get(name)}
    free = late | {"resources", "volumeAttributesClassName"}
    changed = sorted(
        name for name in {*new["spec"], *old["spec"]} - free if new["spec"].get(name) != old["spec"].get(name)
    )
    if changed:
        message = f"of a claim's spec only the size and what was left open may change; changed: {', '.join(changed)}"
        yield "spec", FORBIDDEN, f"Forbidden: {message}"
