"""Admission by a kubelet of pods that were bound without a scheduler: it rejects those that do not fit."""

from collections.abc import Iterator

from kubestow.api import quantity
from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.quota import pod_amounts, requested
from kubestow.apiserver.store.records import Record

_ANY = ("", "0.0.0.0")  # noqa: S104
_NO_PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"


def is_unscheduled(pod: Record) -> bool:
    """Return whether a pod was created with a node name, instead of being bound. Does not decode the pod."""
    return b'"PodScheduled"' not in pod.body and b'"startTime"' not in pod.body


def rejection(pod: Object, others: list[Object], node: Object) -> tuple[str, str] | None:
    """Return reason and message if a pod does not fit on a node beside others; None if it fits."""
    wanted = pod_amounts(pod["spec"], "requests")
    ports = set(_ports(pod))
    used = requested(others)
    conflict = any(_conflict(one, another) for other in others for one in ports for another in _ports(other))
    allocatable = node.get("status", {}).get("allocatable", {})
    for name, amount in wanted.items():
        capacity = quantity.nano(allocatable.get(name, "0"))
        if amount and used.get(name, 0) + amount > capacity:
            unit = 10**6 if name == "cpu" else 10**9
            asked, had, limit = (-(-one // unit) for one in (amount, used.get(name, 0), capacity))
            message = f"Node didn't have enough resource: {name}, requested: {asked}, used: {had}, capacity: {limit}"
            return f"OutOf{name}", message
    return ("NodePorts", _NO_PORTS) if conflict else None


def _ports(pod: Object) -> Iterator[tuple[str, str, int]]:
    """Yield protocol, address and number of each host port of a pod."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", ()):
            if port.get("hostPort"):
                yield port.get("protocol", "TCP"), port.get("hostIP", ""), port["hostPort"]


def _conflict(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same_address = one[1] == other[1] or one[1] in _ANY or other[1] in _ANY
    return same_address and one[0] == other[0] and one[2] == other[2]
