"""Conversions of the kinds that are served in two versions and stored in one.

Events are stored in their older version, other kinds in their newer one; fields that v1 of an autoscaler lacks are
kept in annotations.
"""

from typing import Any

import msgspec

from kubestow.api.codec import NOT_JSON
from kubestow.apiserver.kinds.resource import Conversion

Object = dict[str, Any]

_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES = {new: old for old, new in _NEW_NAMES.items()}
_OTHER_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"


def renamed(obj: Object, names: dict[str, str], api_version: str) -> Object:
    """Return an object with some of its fields renamed, and another apiVersion."""
    obj = {names.get(key, key): value for key, value in obj.items()}
    obj["apiVersion"] = api_version
    return obj


def _to_autoscaler_v2(obj: Object) -> Object:
    spec = obj.get("spec", {})
    metrics: list[Object] = []
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        metrics.append(_cpu({"target": {"type": "Utilization", "averageUtilization": percent}}))
    annotations = obj.get("metadata", {}).get("annotations", {})
    metrics += _carried(annotations, _OTHER_METRICS, [])
    if metrics:
        spec["metrics"] = metrics
    behavior = _carried(annotations, _BEHAVIOR, None)
    if behavior is not None:
        spec["behavior"] = behavior
    status = obj.get("status", {})
    percent = status.pop("currentCPUUtilizationPercentage", None)
    if percent is not None:
        status["currentMetrics"] = [_cpu({"current": {"averageUtilization": percent}})]
    return renamed(obj, {}, "autoscaling/v2")


def _cpu(more: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", **more}}


def _carried(annotations: Object, key: str, none: Any) -> Any:
    try:
        value = msgspec.json.decode(annotations.pop(key, "null"))
    except (*NOT_JSON, TypeError):
        return none
    return value if isinstance(value, list if none == [] else dict) else none


def _to_autoscaler_v1(obj: Object) -> Object:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    others = []
    for metric in spec.pop("metrics", ()):
        target = metric.get("resource", {}).get("target", {})
        if metric.get("resource", {}).get("name") == "cpu" and "averageUtilization" in target:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
        else:
            others.append(metric)
    carried = {_OTHER_METRICS: others, _BEHAVIOR: spec.pop("behavior", None)}
    for key, value in carried.items():
        if value:
            obj["metadata"].setdefault("annotations", {})[key] = msgspec.json.encode(value).decode()
    for metric in status.pop("currentMetrics", None) or ():
        current = metric.get("resource", {}).get("current", {})
        if metric.get("resource", {}).get("name") == "cpu" and "averageUtilization" in current:
            status["currentCPUUtilizationPercentage"] = current["averageUtilization"]
    status.pop("conditions", None)
    return renamed(obj, {}, "autoscaling/v1")


def between(served: str, stored: str) -> Conversion:
    """Return the conversion between two versions with the same fields."""
    return Conversion(lambda obj: renamed(obj, {}, stored), lambda obj: renamed(obj, {}, served))


NEW_EVENTS = Conversion(
    lambda obj: renamed(obj, _OLD_NAMES, "v1"), lambda obj: renamed(obj, _NEW_NAMES, "events.k8s.io/v1")
)
OLD_AUTOSCALERS = Conversion(_to_autoscaler_v2, _to_autoscaler_v1)
