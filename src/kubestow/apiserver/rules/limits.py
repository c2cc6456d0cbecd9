"""Rules for limit ranges and resource quotas."""

from collections.abc import Iterator
from typing import Any

from kubestow.api import quantity
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.quota import COUNTED, MEASURED
from kubestow.apiserver.rules.causes import forbidden, invalid, required
from kubestow.apiserver.rules.lists import check_new
from kubestow.apiserver.rules.names import REQUIRED, check_name, qualified_name

_ORDER = (("min", "max"), ("min", "defaultRequest"), ("defaultRequest", "max"), ("defaultRequest", "default"),
          ("min", "default"), ("default", "max"))  # fmt: skip
"""Pairs of bounds; the first must not exceed the second."""
_LABELS = {"min": "min", "defaultRequest": "default request", "default": "default", "max": "max"}
_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_COUNTED = (*COUNTED, "services.nodeports", "services.loadbalancers")
_BOUNDED = {f"{side}.{name}" for side in ("requests", "limits") for name in MEASURED}
_STANDARD = {*_COUNTED, *MEASURED, *_BOUNDED, "requests.storage"}
_SCOPES = {
    "Terminating": "NotTerminating",
    "NotTerminating": "Terminating",
    "BestEffort": "NotBestEffort",
    "NotBestEffort": "BestEffort",
    "PriorityClass": "",
    "CrossNamespacePodAffinity": "",
    "VolumeAttributesClass": "",
}
"""Scopes of quotas, and the scope that each one conflicts with."""


def default_limits(obj: dict[str, Any]) -> None:
    """Set the default limits of containers to the maximum, and the default requests to the limits or the minimum."""
    for item in obj.get("spec", {}).get("limits", ()):
        if item.get("type") == "Container":
            limits = {**item.get("max", {}), **item.get("default", {})}
            requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
            item.update({key: value for key, value in (("default", limits), ("defaultRequest", requests)) if value})


def validate_limits(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that types are unique, and bounds and defaults are in order."""
    seen: set[str] = set()
    for index, item in enumerate(obj.get("spec", {}).get("limits", ())):
        path, kind = f"spec.limits[{index}]", item.get("type", "")
        if kind not in _TYPES and ("/" not in kind or qualified_name(kind)):
            yield invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")
        yield from check_new(kind, seen, f"{path}.type")
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if item.get(name):
                    yield forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'")
        if kind == "PersistentVolumeClaim" and not any("storage" in item.get(name, {}) for name in ("min", "max")):
            why = "either minimum or maximum storage value is required, but neither was provided"
            yield required(f"{path}.limits", why)
        for low, high in _ORDER:
            yield from _check_order(item, path, low, high)
        for name, ratio in item.get("maxLimitRequestRatio", {}).items():
            if quantity.nano(ratio) < 10**9:
                yield invalid(f"{path}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is less than 1")


def _check_order(item: dict[str, Any], path: str, low: str, high: str) -> Iterator[Cause]:
    for name, value in item.get(low, {}).items():
        limit = item.get(high, {}).get(name)
        if limit is not None and quantity.nano(value) > quantity.nano(limit):
            why = f"{_LABELS[low]} value {value} is greater than {_LABELS[high]} value {limit}"
            yield invalid(f"{path}.{low}[{name}]", value, why)


def validate_quota(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the resource names, the amounts and the scopes of a quota."""
    spec = obj.get("spec", {})
    for name, amount in spec.get("hard", {}).items():
        path = f"spec.hard[{name}]"
        if name not in _STANDARD and "/" not in name and not name.startswith(("hugepages-", "requests.hugepages-")):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
            yield invalid(path, name, "must be a standard resource for quota")
        elif "/" in name:
            yield from check_name(path, name, qualified_name)
        if quantity.nano(amount) < 0:
            yield invalid(path, amount, "must be greater than or equal to 0")
        elif (name in _COUNTED or name.startswith("count/")) and quantity.nano(amount) % 10**9:
            yield invalid(path, amount, "must be an integer")
    scopes = spec.get("scopes", [])
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
    if scopes == ["BestEffort"] and set(spec.get("hard", ())) - {"pods", "count/pods"}:
        yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    if any(_SCOPES.get(scope) in scopes for scope in scopes):
        yield invalid("spec.scopes", scopes, "conflicting scopes")
    for term in spec.get("scopeSelector", {}).get("matchExpressions", ()):
        if term.get("operator") in ("In", "NotIn") and not term.get("values"):
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield "spec.scopeSelector.matchExpressions.values", REQUIRED, f"Required value: {why}"
