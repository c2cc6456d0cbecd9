"""Admission by a kubelet of pods that were bound without a scheduler: it rejects those that do not fit."""

from kubestow.api import quantity
from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.ports import host_ports
from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.quota import pod_amounts, requested
from kubestow.apiserver.store.records import Record

_NO_PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"


def is_unscheduled(pod: Record) -> bool:
    """Return whether a pod was created with a node name, instead of being bound. Does not decode the pod."""
    return b'"PodScheduled"' not in pod.body and b'"startTime"' not in pod.body


def rejection(pod: Object, others: list[Object], node: Object) -> tuple[str, str] | None:
    """Return reason and message if a pod does not fit on a node beside others; None if it fits."""
    wanted = pod_amounts(pod["spec"], "requests")
    ports = host_ports(convert(Pod, pod))
    taken = [port for other in others for port in host_ports(convert(Pod, other))] if ports else []
    used = requested(others)
    conflict = any(one.conflicts_with(another) for one in ports for another in taken)
    allocatable = node.get("status", {}).get("allocatable", {})
    for name, amount in wanted.items():
        capacity = quantity.nano(allocatable.get(name, "0"))
        if amount and used.get(name, 0) + amount > capacity:
            unit = 10**6 if name == "cpu" else 10**9
            asked, had, limit = (-(-one // unit) for one in (amount, used.get(name, 0), capacity))
            message = f"Node didn't have enough resource: {name}, requested: {asked}, used: {had}, capacity: {limit}"
            return f"OutOf{name}", message
    return ("NodePorts", _NO_PORTS) if conflict else None
