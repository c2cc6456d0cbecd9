"""Rules for disruption budgets, autoscalers and priority classes."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_enums, check_required, check_unchanged, forbidden, invalid, required
from kubestow.apiserver.rules.lists import check_items
from kubestow.apiserver.rules.names import INVALID
from kubestow.apiserver.rules.placement import check_label_selector
from kubestow.apiserver.rules.workloads import check_int_or_percent_up_to_100

_HIGHEST_USER_PRIORITY = 1_000_000_000
_METRICS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""Types of metrics, and the field of each."""
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def validate_budget(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that a budget has at most one bound, and the format of bounds and selector."""
    spec = obj["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield "spec", INVALID, "Invalid value: minAvailable and maxUnavailable cannot be both set"
    for name in ("minAvailable", "maxUnavailable"):
        yield from check_int_or_percent_up_to_100(spec.get(name), f"spec.{name}")
    yield from check_label_selector(spec.get("selector"), "spec.selector")


def default_autoscaler(obj: dict[str, Any]) -> None:
    """Set a minimum of one replica, and without metrics, a target of 80% of the requested CPU."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def validate_autoscaler(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the target, the bounds and the metrics of an autoscaler."""
    spec = obj["spec"]
    minimum, maximum, target = spec["minReplicas"], spec.get("maxReplicas", 0), spec.get("scaleTargetRef", {})
    yield from check_required(target, "spec.scaleTargetRef", "kind", "name")
    if "/" not in target.get("apiVersion", "") and target.get("kind") != "ReplicationController":
        yield invalid(
            "spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), "apiVersion must specify API group"
        )
    if minimum < 1:
        yield invalid("spec.minReplicas", minimum, "must be greater than or equal to 1")
    if maximum < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if maximum < minimum:
        yield invalid("spec.maxReplicas", maximum, "must be greater than or equal to `minReplicas`")
    yield from check_items(spec["metrics"], "spec.metrics", _check_metric)


def _check_metric(metric: dict[str, Any], path: str) -> Iterator[Cause]:
    causes = list(check_enums(metric, path, {"type": tuple(_METRICS)}))
    yield from causes
    name = _METRICS.get(metric.get("type", ""), "")
    source = metric.get(name)
    if source is None:
        if not causes:
            yield required(f"{path}.{name}", "must populate information for the given metric source")
    elif name == "resource":
        target, where = source.get("target", {}), f"{path}.resource.target"
        share = target.get("averageUtilization")
        if share is None and "averageValue" not in target:
            yield required(f"{where}.averageUtilization", "must set either a target raw value or a target utilization")
        elif share is not None and share < 1:
            yield invalid(f"{where}.averageUtilization", share, "must be greater than 0")


def validate_priority_class(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that names with the prefix system- and values above a billion are those of system classes."""
    name = obj["metadata"].get("name", "")
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != obj["value"]:
            why = "priority class names with 'system-' prefix are reserved for system use only. error: "
            yield forbidden("metadata.name", f"{why}{name} is not a known system priority class")
    elif obj["value"] > _HIGHEST_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}")


def validate_priority_class_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that value and preemption policy are unchanged."""
    if new.get("value") != old.get("value"):
        yield forbidden("value", "may not be changed in an update.")
    yield from check_unchanged(new, old, "", "preemptionPolicy")
