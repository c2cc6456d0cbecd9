"""Disruption budgets, autoscalers, priority classes and limit ranges."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import FORBIDDEN, INVALID, REQUIRED
from kubestow.apiserver.rules.workloads import wrong_share
from kubestow.model import quantity

_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def default_budget(obj: dict[str, Any]) -> None:
    """Nothing."""
    obj.setdefault("spec", {})


def validate_budget(obj: dict[str, Any]) -> Iterator[Cause]:
    """One bound, not two."""
    spec = obj["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield "spec", INVALID, "Invalid value: minAvailable and maxUnavailable cannot be both set"
    for name in ("minAvailable", "maxUnavailable"):
        yield from wrong_share(spec.get(name), f"spec.{name}")


def default_autoscaler(obj: dict[str, Any]) -> None:
    """One replica at least; without a metric, four fifths of the CPU that pods ask for."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def validate_autoscaler(obj: dict[str, Any]) -> Iterator[Cause]:
    """Bounds in order, and something to scale."""
    spec = obj["spec"]
    least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
    for name in ("kind", "name"):
        if not spec.get("scaleTargetRef", {}).get(name):
            yield f"spec.scaleTargetRef.{name}", REQUIRED, "Required value"
    if least < 1:
        yield "spec.minReplicas", INVALID, f"Invalid value: {least}: must be greater than or equal to 1"
    if most < 1:
        yield "spec.maxReplicas", INVALID, f"Invalid value: {most}: must be greater than 0"
    if most < least:
        yield "spec.maxReplicas", INVALID, f"Invalid value: {most}: must be greater than or equal to `minReplicas`"


def default_priority_class(obj: dict[str, Any]) -> None:
    """Pods of a class may preempt unless it says otherwise."""
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def validate_priority_class(obj: dict[str, Any]) -> Iterator[Cause]:
    """Names that begin with system- and values above a billion are for the system."""
    name = obj["metadata"].get("name", "")
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != obj["value"]:
            yield "metadata.name", FORBIDDEN, "Forbidden: names that begin with system- are reserved for the system"
    elif obj["value"] > _HIGHEST_USER_PRIORITY:
        yield "value", FORBIDDEN, f"Forbidden: a user defined priority may be at most {_HIGHEST_USER_PRIORITY}"


def keep_priority(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Value and preemption policy of a class cannot change."""
    for name in ("value", "preemptionPolicy"):
        if new.get(name) != old.get(name):
            yield name, FORBIDDEN, "Forbidden: may not be changed in an update."


def default_limits(obj: dict[str, Any]) -> None:
    """Containers may have what is allowed at most, and ask for what they may have."""
    for item in obj.get("spec", {}).get("limits", ()):
        if item.get("type") == "Container":
            limits = {**item.get("max", {}), **item.get("default", {})}
            requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
            item.update({key: value for key, value in (("default", limits), ("defaultRequest", requests)) if value})


def validate_limits(obj: dict[str, Any]) -> Iterator[Cause]:
    """Bounds in order, with the defaults between them."""
    words = {"min": "min", "defaultRequest": "default request", "default": "default", "max": "max"}
    for index, item in enumerate(obj.get("spec", {}).get("limits", ())):
        path = f"spec.limits[{index}]"
        if item.get("type") == "Pod":
            for name in ("default", "defaultRequest"):
                if item.get(name):
                    message = "Forbidden: may not be specified when `type` is 'Pod'"
                    yield f"{path}.{name}", FORBIDDEN, message
        present = [name for name in words if name in item]
        for position, low in enumerate(present):
            for high in present[position + 1 :]:
                for name, value in item[low].items():
                    limit = item[high].get(name)
                    if limit is not None and quantity.nano(value) > quantity.nano(limit):
                        why = f"{words[low]} value {value} is greater than {words[high]} value {limit}"
                        yield f"{path}.{low}[{name}]", INVALID, f'Invalid value: "{value}": {why}'
