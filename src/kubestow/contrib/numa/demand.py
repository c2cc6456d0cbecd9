"""What a pod requests, container by container, as a kubelet aligns it."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kubestow.plugin import parse_quantities

Amounts = Mapping[str, int]


class Demand(NamedTuple):
    """The requests of a pod, in the units of `pod.requests.amounts`; every resource counts, also unknown ones."""

    guaranteed: bool
    """Whether its QoS class is Guaranteed: only then CPU and memory are taken from zones exclusively."""
    ignored: bool
    """Whether nothing of it is aligned: a pod of class BestEffort that requests no devices."""
    inits: tuple[tuple[Amounts, bool], ...]
    """The init containers, and whether each is a sidecar."""
    containers: tuple[Amounts, ...]
    whole: Amounts
    """The requests of the pod as one."""


def is_native(resource: str) -> bool:
    """Return whether Kubernetes defines a resource."""
    return "/" not in resource or "kubernetes.io/" in resource


def is_bound_to_zones(resource: str) -> bool:
    """Return whether a resource always belongs to a zone: CPU, memory and huge pages."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def may_lack_zones(resource: str) -> bool:
    """Return whether a node may have a resource that none of its zones has."""
    return resource in ("ephemeral-storage", "storage") or not is_native(resource)


@lru_cache(maxsize=4096)
def demand_of(signature: Any) -> Demand:
    """Return the demand of all pods with a signature of `signature_of`. Raises ValueError for an invalid quantity."""
    containers, inits, overhead, level = signature
    parts = [level] if level is not None else [part[:2] for part in (*containers, *inits)]
    requests = [_amounts(requests) for requests, _ in containers]
    init_requests = [(_amounts(requests), is_sidecar) for requests, _, is_sidecar in inits]
    guaranteed, best_effort = _quality([(_amounts(requests), _amounts(limits)) for requests, limits in parts])
    all_requests = [*requests, *[amounts for amounts, _ in init_requests]]
    return Demand(
        guaranteed,
        best_effort and all(is_native(name) for amounts in all_requests for name in amounts),
        tuple(init_requests),
        tuple(requests),
        _whole(requests, [amounts for amounts, _ in init_requests], _amounts(overhead)),
    )


def _amounts(items: Iterable[tuple[str, Any]]) -> dict[str, int]:
    return parse_quantities(dict(items))


def _quality(parts: Iterable[tuple[Amounts, Amounts]]) -> tuple[bool, bool]:
    """Return whether the QoS class is Guaranteed, and whether it is BestEffort."""
    guaranteed, best_effort = True, True
    for requests, limits in parts:
        for name in ("cpu", "memory"):
            request, limit = requests.get(name, 0), limits.get(name, 0)
            best_effort = best_effort and not request and not limit
            guaranteed = guaranteed and request == limit > 0
    return guaranteed and not best_effort, best_effort


def _whole(containers: Iterable[Amounts], inits: Iterable[Amounts], overhead: Amounts) -> Amounts:
    """Return the larger of the sum of the containers and the largest init container, plus the overhead."""
    total: dict[str, int] = {}
    for amounts in containers:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    for amounts in inits:
        for name, amount in amounts.items():
            total[name] = max(total.get(name, 0), amount)
    for name, amount in overhead.items():
        total[name] = total.get(name, 0) + amount
    return total


def takes_exclusively(demand: Demand, in_zones: frozenset[str]) -> bool:
    """Return whether a running pod has resources of its own on a node whose zones have the given ones."""
    parts = (*demand.containers, *[amounts for amounts, is_sidecar in demand.inits if is_sidecar])
    for name, amount in ((name, amount) for amounts in parts for name, amount in amounts.items()):
        if not is_native(name):
            if name in in_zones:
                return True
        elif demand.guaranteed and amount > 0 and is_bound_to_zones(name) and (name != "cpu" or amount % 1000 == 0):
            return True
    return False
