"""Rules for CSI drivers, persistent volumes and their claims."""

from collections.abc import Iterator
from typing import Any

from kubestow.api import quantity
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_one, check_required, forbidden, invalid, required
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.names import check_name, dns_subdomain
from kubestow.apiserver.rules.placement import check_label_selector, check_node_selector

_NO_SOURCES = (
    "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
    "volumeMode", "nodeAffinity", "volumeAttributesClassName",
)  # fmt: skip
"""Fields of a volume's spec that are not its source."""


def default_driver(obj: dict[str, Any]) -> None:
    """Set the defaults of a CSI driver: volumes are attached and persistent."""
    spec = obj.setdefault("spec", {})
    set_missing(spec, {"attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType"})
    set_missing(spec, dict.fromkeys(("podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"), False))
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def default_volume(obj: dict[str, Any]) -> None:
    """Set the defaults of a volume: it is retained when its claim is deleted."""
    spec = obj.setdefault("spec", {})
    set_missing(spec, {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")


def validate_volume(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the capacity, access modes, source and node affinity of a volume."""
    spec = obj["spec"]
    if not spec.get("capacity", {}).get("storage"):
        yield required("spec.capacity")
    yield from check_required(spec, "spec", "accessModes")
    sources = [name for name in spec if name not in _NO_SOURCES]
    if not sources:
        yield required("spec", "must specify a volume type")
    yield from check_one(spec, "spec", sources, "volume")
    if "local" in spec and "nodeAffinity" not in spec:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    nodes = spec.get("nodeAffinity", {}).get("required")
    if nodes:
        yield from check_node_selector(nodes, "spec.nodeAffinity.required")


def validate_volume_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the source is unchanged."""
    before, after = ({k: v for k, v in obj["spec"].items() if k not in _NO_SOURCES} for obj in (old, new))
    if after != before:
        why = "spec.persistentvolumesource is immutable after creation"
        yield forbidden("spec.persistentvolumesource", why)


def default_claim(obj: dict[str, Any]) -> None:
    """Set the volume mode to Filesystem."""
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def validate_claim(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check a claim."""
    yield from check_claim(obj["spec"], "spec")


def check_claim(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the spec of a claim."""
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
    yield from check_label_selector(spec.get("selector"), f"{path}.selector")
    if spec.get("storageClassName"):
        yield from check_name(f"{path}.storageClassName", spec["storageClassName"], dns_subdomain)


def validate_claim_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check an update: a claim may be bound and grow; all other fields are immutable."""
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
