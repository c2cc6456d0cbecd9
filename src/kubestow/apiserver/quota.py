"""The usage of ResourceQuotas by objects, and the scopes of quotas, as pure functions.

Amounts are in billionths (nano units), as in `kubestow.api.quantity`.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from kubestow.api import quantity
from kubestow.api.codec import convert
from kubestow.api.pod import Pod, PodSpec
from kubestow.api.requests import declared_limits, declared_requests
from kubestow.apiserver.rules.podspec import quality_of_service

Object = dict[str, Any]
Usage = dict[str, int]
_ONE = 10**9
COUNTED = (
    "pods", "services", "configmaps", "secrets", "replicationcontrollers", "resourcequotas", "persistentvolumeclaims",
)  # fmt: skip
MEASURED = ("cpu", "memory", "ephemeral-storage")
_CLASS = ".storageclass.storage.k8s.io/"


def usage_of(storage: str, obj: Object) -> Usage:
    """Return the usage of one object, by the resource names of quotas."""
    used: Usage = {f"count/{storage}": _ONE}
    if storage == "pods":
        if obj.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return used
        used |= _pod_usage(obj["spec"])
    if storage in COUNTED:
        used[storage] = _ONE
    if storage == "services":
        kind, ports = obj["spec"].get("type", "ClusterIP"), len(obj["spec"].get("ports", ()))
        if kind in ("NodePort", "LoadBalancer"):
            allocates = kind == "NodePort" or obj["spec"].get("allocateLoadBalancerNodePorts", True)
            used["services.nodeports"] = ports * _ONE if allocates else 0
        if kind == "LoadBalancer":
            used["services.loadbalancers"] = _ONE
    elif storage == "persistentvolumeclaims":
        wanted = quantity.nano(obj["spec"].get("resources", {}).get("requests", {}).get("storage", 0))
        used["requests.storage"] = wanted
        name = obj["spec"].get("storageClassName")
        if name:
            used[f"{name}{_CLASS}requests.storage"] = wanted
            used[f"{name}{_CLASS}persistentvolumeclaims"] = _ONE
    return used


def _pod_usage(spec: Object) -> Usage:
    used: Usage = {}
    for side in ("requests", "limits"):
        for name, amount in pod_amounts(spec, side).items():
            if side == "requests" or name in MEASURED:
                used[f"{side}.{name}"] = amount
            if side == "requests" and (name in MEASURED or name.startswith("hugepages-")):
                used[name] = amount
    return used


def pod_amounts(spec: Object, side: str) -> Usage:
    """Return the requests or limits of a pod."""
    declared = declared_requests if side == "requests" else declared_limits
    return declared(Pod(spec=convert(PodSpec, spec)))


def requested(pods: Iterable[Object]) -> Usage:
    """Return the sum of the requests of pods."""
    total: Usage = {}
    for pod in pods:
        for name, amount in pod_amounts(pod["spec"], "requests").items():
            total[name] = total.get(name, 0) + amount
    return total


def is_counted(quota: Object, storage: str, obj: Object) -> bool:
    """Return whether an object is in all scopes of a quota; only pods match a scope."""
    wanted = [{"scopeName": name, "operator": "Exists"} for name in quota["spec"].get("scopes", ())]
    wanted += quota["spec"].get("scopeSelector", {}).get("matchExpressions", ())
    return not wanted or (storage == "pods" and all(_in_scope(one, obj["spec"]) for one in wanted))


def _in_scope(wanted: Object, spec: Object) -> bool:
    name, operator, values = wanted["scopeName"], wanted["operator"], wanted.get("values", ())
    if name in ("Terminating", "NotTerminating"):
        return bool((spec.get("activeDeadlineSeconds") is not None) == (name == "Terminating"))
    if name in ("BestEffort", "NotBestEffort"):
        return bool((quality_of_service(spec) == "BestEffort") == (name == "BestEffort"))
    if name == "CrossNamespacePodAffinity":
        text = msgspec.json.encode(spec.get("affinity", {}))
        return b'"namespaces":[' in text or b'"namespaceSelector":' in text
    value = spec.get("priorityClassName", "")
    if operator in ("In", "NotIn"):
        return bool((value in values) == (operator == "In"))
    return bool(bool(value) == (operator == "Exists"))


def format_amount(name: str, amount: int) -> str:
    """Format an amount as in the status of a quota."""
    return quantity.format_nano(amount, binary="memory" in name or "storage" in name or "hugepages" in name)
