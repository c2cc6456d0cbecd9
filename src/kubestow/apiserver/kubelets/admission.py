"""Whether a node takes a pod that no scheduler has bound to it: a kubelet rejects what does not fit."""

from collections.abc import Iterator

from kubestow.api import quantity
from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.quota import pod_amounts, requested
from kubestow.apiserver.store.records import Record

_ANY = ("", "0.0.0.0")  # noqa: S104
_TAKEN = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"


def is_unscheduled(pod: Record) -> bool:
    """Whether nobody bound it: its author named the node. Told without decoding it."""
    return b'"PodScheduled"' not in pod.body and b'"startTime"' not in pod.body


def rejection(pod: Object, others: list[Object], node: Object) -> tuple[str, str] | None:
    """Reason and message, if there is no room for a pod beside others; the most of what is asked for comes first."""
    wanted = pod_amounts(pod["spec"], "requests")
    ports = set(_ports(pod))
    used = requested(others)
    taken = any(_conflict(one, another) for other in others for one in ports for another in _ports(other))
    room = node.get("status", {}).get("allocatable", {})
    for name, amount in wanted.items():
        capacity = quantity.nano(room.get(name, "0"))
        if amount and used.get(name, 0) + amount > capacity:
            unit = 10**6 if name == "cpu" else 10**9
            asked, had, most = (-(-one // unit) for one in (amount, used.get(name, 0), capacity))
            told = f"Node didn't have enough resource: {name}, requested: {asked}, used: {had}, capacity: {most}"
            return f"OutOf{name}", told
    return ("NodePorts", _TAKEN) if taken else None


def _ports(pod: Object) -> Iterator[tuple[str, str, int]]:
    """Protocol, address and number of each port of the node that a pod uses."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", ()):
            if port.get("hostPort"):
                yield port.get("protocol", "TCP"), port.get("hostIP", ""), port["hostPort"]


def _conflict(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same_address = one[1] == other[1] or one[1] in _ANY or other[1] in _ANY
    return same_address and one[0] == other[0] and one[2] == other[2]
