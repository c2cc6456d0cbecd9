"""Builders for devices, slices, classes and claims in one line each, and accessors for allocated devices."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubestow.api.codec import convert
from kubestow.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubestow.api.pod import Pod
from kubestow.testing import make_pod

DRIVER = "gpu.example.com"


def device(name: str, /, *, taints: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    """Return a device: strings, ints and bools are attributes, `memory` a capacity, dicts and lists other fields."""
    manifest: dict[str, Any] = {"name": name, "attributes": {}}
    for field, value in fields.items():
        if field == "memory":
            manifest.setdefault("capacity", {})["memory"] = {"value": value}
        elif isinstance(value, dict | list) or field in ("allowMultipleAllocations", "bindsToNode", "nodeName"):
            manifest[field] = value
        else:
            kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
            manifest["attributes"][field] = {kind: value}
    manifest["taints"] = [dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints]
    return manifest


def gpus(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [device(f"gpu-{number}", **fields) for number in range(count)]


def device_slice(
    node: str = "",
    devices: Sequence[Mapping[str, Any]] = (),
    *,
    name: str = "",
    pool: str = "",
    generation: int = 1,
    slices: int = 1,
    driver: str = DRIVER,
    **spec: Any,
) -> ResourceSlice:
    """Return a slice with the devices of a node; without one, `spec` selects the nodes."""
    place = {"nodeName": node} if node else {}
    of = {"name": pool or node, "generation": generation, "resourceSliceCount": slices}
    full = {"driver": driver, "pool": of, "devices": list(devices), **place, **spec}
    return convert(ResourceSlice, {"metadata": {"name": name or f"slice-{pool or node}"}, "spec": full})


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}})


def exactly(count: int = 1, *expressions: str, name: str = "r", of: str = "gpu", **fields: Any) -> dict[str, Any]:
    """Return a request; `count` 0 requests all devices."""
    return {"name": name, "exactly": _request(count, expressions, of, fields)}


def either(*options: Mapping[str, Any], name: str = "r") -> dict[str, Any]:
    """Return a request with alternatives, built with `option`."""
    return {"name": name, "firstAvailable": list(options)}


def option(name: str, count: int = 1, *expressions: str, of: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {"name": name, **_request(count, expressions, of, fields)}


def _request(count: int, expressions: Iterable[str], of: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    mode = {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"deviceClassName": of, "selectors": selectors, **mode, **fields}


def claim(
    name: str, *requests: Mapping[str, Any], status: Mapping[str, Any] | None = None, **devices: Any
) -> ResourceClaim:
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests or (exactly(),)), **devices}},
        "status": dict(status or {}),
    }
    return convert(ResourceClaim, manifest)


def allocated(name: str, node: str, *devices: str, **status: Any) -> ResourceClaim:
    """Return a claim that is allocated devices of a node's own pool."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": device} for device in devices]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    return claim(name, exactly(len(devices)), status={"allocation": allocation, **status})


def taint_rule(name: str, taint: str, **selector: str) -> DeviceTaintRule:
    """Return a rule for the devices that have these fields; without any, a rule that has no selector."""
    key, effect = taint.split(":")
    spec = {**({"deviceSelector": selector} if selector else {}), "taint": {"key": key, "effect": effect}}
    return convert(DeviceTaintRule, {"metadata": {"name": name}, "spec": spec})


def claiming(name: str, *claims: str, **options: Any) -> Pod:
    """Return a pod that names claims."""
    named = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    return make_pod(name, spec={"resourceClaims": named, **options.pop("spec", {})}, **options)


def devices_of(claim: ResourceClaim) -> list[str]:
    """Return pool/device of all allocated devices of a claim."""
    allocation = claim.status.allocation
    return [] if allocation is None else [f"{of.pool}/{of.device}" for of in allocation.devices.results]


def given_twice(claims: Iterable[ResourceClaim]) -> list[str]:
    """Return unshared devices that are allocated to several claims."""
    held = Counter(
        f"{result.driver}/{result.pool}/{result.device}"
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
        if not result.adminAccess and result.shareID is None
    )
    return [device for device, count in held.items() if count > 1]
