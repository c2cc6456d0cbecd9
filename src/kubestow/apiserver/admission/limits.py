"""LimitRanger: defaults for containers, and bounds on containers, pods and claims."""

from collections.abc import Iterator
from typing import Any

from kubestow.api import quantity
from kubestow.apiserver.quota import format_amount, pod_amounts
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
_ANNOTATION = "kubernetes.io/limit-ranger"


def _items(store: Store, obj: Object, *types: str) -> list[Object]:
    ranges = store.collection("limitranges").by_namespace.get(obj["metadata"]["namespace"])
    if not ranges:
        return []
    listed = (item for name in sorted(ranges) for item in ranges[name].object().get("spec", {}).get("limits", ()))
    return [item for item in listed if item.get("type") in types]


def set_defaults(pod: Object, store: Store) -> None:
    """Set the default requests and limits of containers."""
    changes = []
    for item in _items(store, pod, "Container"):
        for kind, label in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(kind, ()):
                resources = container.setdefault("resources", {})
                for side, source in (("requests", "defaultRequest"), ("limits", "default")):
                    wanted = item.get(source, {})
                    missing = sorted(name for name in wanted if name not in resources.get(side, {}))
                    if missing:
                        resources.setdefault(side, {}).update({name: wanted[name] for name in missing})
                        changes.append(f"{', '.join(missing)} {side[:-1]} for {label} {container.get('name', '')}")
    if changes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = "LimitRanger plugin set: " + "; ".join(changes)


def check_pod(pod: Object, store: Store) -> str | None:
    """Return the violated bounds of the containers and of the pod as a whole, if any."""
    violations: list[str] = []
    for item in _items(store, pod, "Container", "Pod"):
        if item["type"] == "Pod":
            parts = [{side: _totals(pod["spec"], side) for side in ("requests", "limits")}]
        else:
            spec = pod["spec"]
            parts = [one.get("resources", {}) for one in (*spec.get("containers", ()), *spec.get("initContainers", ()))]
        for resources in parts:
            violations += _violations(item, resources)
    return _join(violations)


def _totals(spec: Object, side: str) -> Object:
    return {name: format_amount(name, amount) for name, amount in pod_amounts(spec, side).items()}


def check_claim(claim: Object, store: Store) -> str | None:
    """Return the violated bounds on the size of a claim, if any."""
    requests = claim["spec"].get("resources", {}).get("requests", {})
    violations: list[str] = []
    for item in _items(store, claim, "PersistentVolumeClaim"):
        for name, minimum in item.get("min", {}).items():
            violations += _below_minimum(item["type"], name, minimum, requests, {})
        for name, maximum in item.get("max", {}).items():
            what = f"maximum {name} usage per {item['type']} is {maximum}"
            if name not in requests:
                violations.append(f"{what}.  No request is specified")
            elif quantity.nano(requests[name]) > quantity.nano(maximum):
                violations.append(f"{what}, but request is {requests[name]}")
    return _join(violations)


def _join(violations: list[str]) -> str | None:
    if not violations:
        return None
    unique = list(dict.fromkeys(violations))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"


def _violations(item: Object, resources: Object) -> Iterator[str]:
    kind, requests, limits = item["type"], resources.get("requests", {}), resources.get("limits", {})
    for name, minimum in item.get("min", {}).items():
        yield from _below_minimum(kind, name, minimum, requests, limits)
    for name, maximum in item.get("max", {}).items():
        what = f"maximum {name} usage per {kind} is {maximum}"
        if name not in limits:
            yield f"{what}.  No limit is specified"
        elif quantity.nano(limits[name]) > quantity.nano(maximum):
            yield f"{what}, but limit is {limits[name]}"
        elif name in requests and quantity.nano(requests[name]) > quantity.nano(maximum):
            yield f"{what}, but request is {requests[name]}"
    for name, maximum in item.get("maxLimitRequestRatio", {}).items():
        what = f"{name} max limit to request ratio per {kind} is {maximum}"
        request, limit = (quantity.nano(side.get(name, 0)) for side in (requests, limits))
        if not request:
            yield f"{what}, but no request is specified or request is 0"
        elif not limit:
            yield f"{what}, but no limit is specified or limit is 0"
        elif limit * 10**9 > quantity.nano(maximum) * request:
            yield f"{what}, but provided ratio is {limit / request:f}"


def _below_minimum(kind: str, name: str, minimum: str, requests: Object, limits: Object) -> Iterator[str]:
    what = f"minimum {name} usage per {kind} is {minimum}"
    if name not in requests:
        yield f"{what}.  No request is specified"
    elif quantity.nano(requests[name]) < quantity.nano(minimum):
        yield f"{what}, but request is {requests[name]}"
    elif name in limits and quantity.nano(limits[name]) < quantity.nano(minimum):
        yield f"{what}, but limit is {limits[name]}"
