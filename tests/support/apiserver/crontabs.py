"""The definition of a custom resource, CronTab."""

import copy
from typing import Any

from support.apiserver.running import Client, Running

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


NAME = "crontabs.stable.example.com"


GROUP = "/apis/stable.example.com"


CRONTABS = f"{GROUP}/v1/namespaces/default/crontabs"


PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
}


SPEC = {
    "type": "object",
    "required": ["schedule"],
    "properties": {
        "schedule": {"type": "string", "pattern": r"^\S+( \S+){4}$", "description": "When."},
        "image": {"type": "string", "default": "busybox"},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
        "ports": PORTS,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
        "mode": {"type": "string", "enum": ["fast", "slow"], "nullable": True},
    },
}


STATUS = {
    "type": "object",
    "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}, "free": {"type": "string"}},
}


V1 = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
    "selectableFields": [{"jsonPath": ".spec.image"}],
    "additionalPrinterColumns": [
        {"name": "Schedule", "type": "string", "jsonPath": ".spec.schedule"},
        {"name": "Port", "type": "integer", "jsonPath": '.spec.ports[?(@.name=="web")].port', "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
}


def definition(*versions: Any, **spec: Any) -> dict[str, Any]:
    """Return a definition of CronTabs."""
    names = {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"]}
    body = {"group": "stable.example.com", "scope": "Namespaced", "names": names, "versions": versions or (V1,)}
    return copy.deepcopy({"metadata": {"name": NAME}, "spec": {**body, **spec}})


def define(plane: Running, *versions: Any, **spec: Any) -> Client:
    """Create a definition, and wait until it is established."""
    client = plane.client()
    watch = plane.watch(f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name={NAME}")
    client.create(DEFINITIONS, definition(*versions, **spec))
    watch.until(lambda event: condition(event["object"], "Established") == "True")
    return client


def condition(obj: Any, type_: str) -> str | None:
    """Return the status of a condition of a definition."""
    found = obj.get("status", {}).get("conditions", ())
    return next((one["status"] for one in found if one["type"] == type_), None)
