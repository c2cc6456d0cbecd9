"""Manifests of device classes, slices, claims, and pods that use them."""

from typing import Any

from support.integration.cluster import pod

DRIVER = "gpu.example.com"
GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
SLICES = f"{GROUP}/resourceslices"
CLASSES = f"{GROUP}/deviceclasses"


def _object(kind: str, name: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def device_class(**spec: Any) -> dict[str, Any]:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    return _object("DeviceClass", "gpu", {"selectors": selectors, **spec})


def device_slice(node: str, count: int) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}", "attributes": {"model": {"string": "a100"}}} for number in range(count)]
    return _object("ResourceSlice", node, {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices})


def claim(name: str, count: int = 1) -> dict[str, Any]:
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'a100'"}}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, "selectors": [selector]}
    requests = [{"name": "r", "exactly": exactly}]
    return _object("ResourceClaim", name, {"devices": {"requests": requests}}, namespace="default")


def claiming(name: str, claimed: str) -> dict[str, Any]:
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claimed}])


def devices_of(obj: dict[str, Any]) -> list[str]:
    results = obj.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return [f"{result['pool']}/{result['device']}" for result in results]


def reserved_for(obj: dict[str, Any]) -> list[str]:
    return [consumer["name"] for consumer in obj.get("status", {}).get("reservedFor", ())]
