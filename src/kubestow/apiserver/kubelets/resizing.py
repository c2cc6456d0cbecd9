"""Resizing pods in place: containers get the resources their spec asks for now, if the node has room."""

from collections.abc import Iterable
from typing import Any

from kubestow.api import quantity
from kubestow.api.timestamps import format_time
from kubestow.apiserver.kubelets.lives import Life
from kubestow.apiserver.quota import pod_amounts, requested
from kubestow.apiserver.rules.pods import set_condition

Object = dict[str, Any]
_PENDING = "PodResizePending"


def resources(pod: Object) -> dict[str, Object]:
    """What the containers of a pod ask for, by name."""
    spec = pod["spec"]
    return {
        one["name"]: one.get("resources", {}) for kind in ("c", "initC") for one in spec.get(f"{kind}ontainers", ())
    }


def wants(pod: Object, life: Life) -> bool:
    """Whether containers hold something else than they ask for."""
    asked = resources(pod)
    return any(asked.get(name, held) != held for name, held in life.allocated.items())


def decide(pod: Object, life: Life, node: Object, others: Iterable[Object], now: float) -> str:
    """Resizes a pod; returns why not, if it cannot be done (Infeasible) or not yet (Deferred)."""
    room = {name: quantity.nano(text) for name, text in node.get("status", {}).get("allocatable", {}).items()}
    wanted = pod_amounts(pod["spec"], "requests")
    used = requested(others)
    for name, amount in wanted.items():
        if amount > room.get(name, 0):
            asked, capacity = quantity.format_nano(amount), quantity.format_nano(room.get(name, 0))
            message = f"Node didn't have enough capacity: {name}, requested: {asked}, capacity: {capacity}"
            life.refused = "Infeasible", message
            return "Infeasible"
    for name, amount in wanted.items():
        if amount + used.get(name, 0) > room.get(name, 0):
            figures = ", ".join(
                f"{word}: {quantity.format_nano(number)}"
                for word, number in {
                    "requested": amount,
                    "used": used.get(name, 0),
                    "capacity": room.get(name, 0),
                }.items()
            )
            life.refused = "Deferred", f"Node didn't have enough resource: {name}, {figures}"
            return "Deferred"
    life.refused = ("", "")
    asked_now = resources(pod)
    for container in pod["spec"]["containers"]:
        name = container["name"]
        if _must_restart(container, life.allocated.get(name, {}), asked_now[name]):
            life.restart(name, now)
    life.allocated = asked_now
    return ""


def _must_restart(container: Object, old: Object, new: Object) -> bool:
    changed = {
        name
        for side in ("requests", "limits")
        for name in {*old.get(side, {}), *new.get(side, {})}
        if old.get(side, {}).get(name) != new.get(side, {}).get(name)
    }
    restarting = {
        one["resourceName"] for one in container.get("resizePolicy", ()) if one["restartPolicy"] == "RestartContainer"
    }
    return bool(changed & restarting)


def report(pod: Object, life: Life, now: float) -> None:
    """Tells of a resize that waits; nothing of one that is done."""
    reason, message = life.refused
    if reason:
        set_condition(pod, _PENDING, "True", format_time(now), reason=reason, message=message)
    else:
        conditions = pod["status"].get("conditions", ())
        pod["status"]["conditions"] = [one for one in conditions if one["type"] != _PENDING]
