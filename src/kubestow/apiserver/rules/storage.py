"""Storage classes, volumes and claims."""

from collections.abc import Iterator
from typing import Any

from kubestow.api import quantity
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import forbidden, invalid, required, several
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.names import dns_subdomain, wrong_name
from kubestow.apiserver.rules.placement import wrong_label_selector, wrong_node_selector

_NO_SOURCES = (
    "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
    "volumeMode", "nodeAffinity", "volumeAttributesClassName",
)  # fmt: skip
"""What the spec of a volume says besides where it is."""


def default_driver(obj: dict[str, Any]) -> None:
    """Volumes of a driver are attached, and outlive pods."""
    spec = obj.setdefault("spec", {})
    set_missing(spec, {"attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType"})
    set_missing(spec, dict.fromkeys(("podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"), False))
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def default_volume(obj: dict[str, Any]) -> None:
    """A volume is kept when its claim goes."""
    spec = obj.setdefault("spec", {})
    set_missing(spec, {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")


def validate_volume(obj: dict[str, Any]) -> Iterator[Cause]:
    """A size, a way to mount it, and sound node conditions."""
    spec = obj["spec"]
    if not spec.get("capacity", {}).get("storage"):
        yield required("spec.capacity")
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    sources = [name for name in spec if name not in _NO_SOURCES]
    if not sources:
        yield required("spec", "must specify a volume type")
    yield from several(spec, "spec", sources, "volume")
    if "local" in spec and "nodeAffinity" not in spec:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    nodes = spec.get("nodeAffinity", {}).get("required")
    if nodes:
        yield from wrong_node_selector(nodes, "spec.nodeAffinity.required")


def keep_source(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Where a volume is cannot change."""
    before, after = ({k: v for k, v in obj["spec"].items() if k not in _NO_SOURCES} for obj in (old, new))
    if after != before:
        why = "spec.persistentvolumesource is immutable after creation"
        yield forbidden("spec.persistentvolumesource", why)


def default_claim(obj: dict[str, Any]) -> None:
    """A claim wants a file system."""
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def validate_claim(obj: dict[str, Any]) -> Iterator[Cause]:
    """A size and a way to mount it."""
    yield from wrong_claim(obj["spec"], "spec")


def wrong_claim(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with what a claim asks for."""
    modes = spec.get("accessModes", [])
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        yield forbidden(f"{path}.accessModes", why)
    size = spec.get("resources", {}).get("requests", {}).get("storage")
    if not size:
        yield required(f"{path}.resources[storage]")
    elif quantity.nano(size) <= 0:
        yield invalid(f"{path}.resources[storage]", size, "must be greater than zero")
    yield from wrong_label_selector(spec.get("selector"), f"{path}.selector")
    if spec.get("storageClassName"):
        yield from wrong_name(f"{path}.storageClassName", spec["storageClassName"], dns_subdomain)


def keep_claim(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """A claim may grow and find its volume; the rest of what it asks for stays."""
    late = {name for name in ("volumeName", "storageClassName") if not old["spec"].get(name)}
    bound = old.get("status", {}).get("phase") == "Bound"
    free = late | ({"resources"} if bound else set()) | {"volumeAttributesClassName"}
    touched = sorted(
        name for name in {*new["spec"], *old["spec"]} - free if new["spec"].get(name) != old["spec"].get(name)
    )
    if touched:
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", f"{why}\nchanged: {', '.join(touched)}")
