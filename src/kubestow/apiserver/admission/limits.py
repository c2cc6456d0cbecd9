"""LimitRanges: defaults for containers, and bounds on containers, pods and claims."""

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
    """Containers get the requests and limits they do not state."""
    told = []
    for item in _items(store, pod, "Container"):
        for kind, word in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(kind, ()):
                resources = container.setdefault("resources", {})
                for side, source in (("requests", "defaultRequest"), ("limits", "default")):
                    wanted = item.get(source, {})
                    missing = sorted(name for name in wanted if name not in resources.get(side, {}))
                    if missing:
                        resources.setdefault(side, {}).update({name: wanted[name] for name in missing})
                        told.append(f"{', '.join(missing)} {side[:-1]} for {word} {container.get('name', '')}")
    if told:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = "LimitRanger plugin set: " + "; ".join(told)


def check_pod(pod: Object, store: Store) -> str | None:
    """Each container, and all of them together, within bounds."""
    wrong: list[str] = []
    for item in _items(store, pod, "Container", "Pod"):
        if item["type"] == "Pod":
            asked = [{side: _together(pod["spec"], side) for side in ("requests", "limits")}]
        else:
            spec = pod["spec"]
            asked = [one.get("resources", {}) for one in (*spec.get("containers", ()), *spec.get("initContainers", ()))]
        for resources in asked:
            wrong += _outside(item, resources)
    return _joined(wrong)


def _together(spec: Object, side: str) -> Object:
    return {name: format_amount(name, amount) for name, amount in pod_amounts(spec, side).items()}


def check_claim(claim: Object, store: Store) -> str | None:
    """The size of a claim within bounds."""
    requests = claim["spec"].get("resources", {}).get("requests", {})
    wrong: list[str] = []
    for item in _items(store, claim, "PersistentVolumeClaim"):
        for name, least in item.get("min", {}).items():
            wrong += _below(item["type"], name, least, requests, {})
        for name, most in item.get("max", {}).items():
            what = f"maximum {name} usage per {item['type']} is {most}"
            if name not in requests:
                wrong.append(f"{what}.  No request is specified")
            elif quantity.nano(requests[name]) > quantity.nano(most):
                wrong.append(f"{what}, but request is {requests[name]}")
    return _joined(wrong)


def _joined(wrong: list[str]) -> str | None:
    if not wrong:
        return None
    unique = list(dict.fromkeys(wrong))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"


def _outside(item: Object, resources: Object) -> Iterator[str]:
    kind, requests, limits = item["type"], resources.get("requests", {}), resources.get("limits", {})
    for name, least in item.get("min", {}).items():
        yield from _below(kind, name, least, requests, limits)
    for name, most in item.get("max", {}).items():
        what = f"maximum {name} usage per {kind} is {most}"
        if name not in limits:
            yield f"{what}.  No limit is specified"
        elif quantity.nano(limits[name]) > quantity.nano(most):
            yield f"{what}, but limit is {limits[name]}"
        elif name in requests and quantity.nano(requests[name]) > quantity.nano(most):
            yield f"{what}, but request is {requests[name]}"
    for name, most in item.get("maxLimitRequestRatio", {}).items():
        what = f"{name} max limit to request ratio per {kind} is {most}"
        request, limit = (quantity.nano(side.get(name, 0)) for side in (requests, limits))
        if not request:
            yield f"{what}, but no request is specified or request is 0"
        elif not limit:
            yield f"{what}, but no limit is specified or limit is 0"
        elif limit * 10**9 > quantity.nano(most) * request:
            yield f"{what}, but provided ratio is {limit / request:f}"


def _below(kind: str, name: str, least: str, requests: Object, limits: Object) -> Iterator[str]:
    what = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        yield f"{what}.  No request is specified"
    elif quantity.nano(requests[name]) < quantity.nano(least):
        yield f"{what}, but request is {requests[name]}"
    elif name in limits and quantity.nano(limits[name]) < quantity.nano(least):
        yield f"{what}, but limit is {limits[name]}"
