"""What pods request, may use, and are expected to use, of CPU (thousandths) and memory (bytes)."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kubestow.plugin import parse_quantities

RESOURCES = ("cpu", "memory")


class Usage(NamedTuple):
    """Amounts of a pod by resource, in the order of RESOURCES."""

    requests: tuple[int, int]
    limits: tuple[int, int]
    """Not less than the requests."""


@lru_cache(maxsize=4096)
def usage_of(signature: Any) -> Usage:
    """Return the amounts of all pods with a signature of `signature_of`. Raises ValueError for an invalid quantity."""
    containers, inits, overhead, _ = signature
    added = _amounts(overhead)
    found = []
    for field in (0, 1):
        parts = [_amounts(container[field]) for container in containers]
        first = [_amounts(init[field]) for init in inits]
        found.append([_largest(name, parts, first) + added.get(name, 0) for name in RESOURCES])
    requests, limits = found
    return Usage((requests[0], requests[1]), (max(requests[0], limits[0]), max(requests[1], limits[1])))


def _largest(name: str, containers: Iterable[Mapping[str, int]], inits: Iterable[Mapping[str, int]]) -> int:
    total = sum(amounts.get(name, 0) for amounts in containers)
    return max([total, *[amounts.get(name, 0) for amounts in inits]])


@lru_cache(maxsize=4096)
def expected_cpu(signature: Any, multiplier: float, default: int) -> int:
    """Return the CPU that pods with a signature are expected to use.

    A container uses its limit, else its request times `multiplier`, else `default`.
    """
    containers, _, overhead, _ = signature
    total = _amounts(overhead).get("cpu", 0)
    for requests, limits in ((_amounts(requests), _amounts(limits)) for requests, limits in containers):
        if "cpu" in limits:
            total += limits["cpu"]
        else:
            total += int(rounded(requests["cpu"] * multiplier)) if "cpu" in requests else default
    return total


def rounded(value: Any) -> Any:
    """Return positive numbers rounded to whole ones, halves up."""
    return np.floor(value + 0.5)


def _amounts(items: Iterable[tuple[str, Any]]) -> dict[str, int]:
    return parse_quantities(dict(items))
