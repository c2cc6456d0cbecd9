"""In-place resize of pods: containers get the resources of the changed spec, if the node has enough free capacity."""

from collections.abc import Iterable
from typing import Any

from kubestow.api import quantity
from kubestow.api.timestamps import format_time
from kubestow.apiserver.kubelets.lifecycles import PodLifecycle
from kubestow.apiserver.quota import pod_amounts, requested
from kubestow.apiserver.rules.pods import set_condition

Object = dict[str, Any]
_PENDING = "PodResizePending"


def resources(pod: Object) -> dict[str, Object]:
    """Return the resources in the spec of a pod, by container name."""
    spec = pod["spec"]
    return {
        one["name"]: one.get("resources", {}) for kind in ("c", "initC") for one in spec.get(f"{kind}ontainers", ())
    }


def is_needed(pod: Object, life: PodLifecycle) -> bool:
    """Return whether the allocated resources of a container differ from those in the spec."""
    wanted = resources(pod)
    return any(wanted.get(name, current) != current for name, current in life.allocated.items())


def decide(pod: Object, life: PodLifecycle, node: Object, others: Iterable[Object], now: float) -> str:
    """Resize a pod; return `Infeasible` if it can never be done, `Deferred` if it cannot be done yet, else empty."""
    allocatable = {name: quantity.nano(text) for name, text in node.get("status", {}).get("allocatable", {}).items()}
    wanted = pod_amounts(pod["spec"], "requests")
    used = requested(others)
    for name, amount in wanted.items():
        if amount > allocatable.get(name, 0):
            asked, capacity = quantity.format_nano(amount), quantity.format_nano(allocatable.get(name, 0))
            message = f"Node didn't have enough capacity: {name}, requested: {asked}, capacity: {capacity}"
            life.refused = "Infeasible", message
            return "Infeasible"
    for name, amount in wanted.items():
        if amount + used.get(name, 0) > allocatable.get(name, 0):
            figures = ", ".join(
                f"{word}: {quantity.format_nano(number)}"
                for word, number in {
                    "requested": amount,
                    "used": used.get(name, 0),
                    "capacity": allocatable.get(name, 0),
                }.items()
            )
            life.refused = "Deferred", f"Node didn't have enough resource: {name}, {figures}"
            return "Deferred"
    life.refused = ("", "")
    new = resources(pod)
    for container in pod["spec"]["containers"]:
        name = container["name"]
        if _must_restart(container, life.allocated.get(name, {}), new[name]):
            life.restart(name, now)
    life.allocated = new
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


def report(pod: Object, life: PodLifecycle, now: float) -> None:
    """Set the condition of a pending resize, or remove it if there is none."""
    reason, message = life.refused
    if reason:
        set_condition(pod, _PENDING, "True", format_time(now), reason=reason, message=message)
    else:
        conditions = pod["status"].get("conditions", ())
        pod["status"]["conditions"] = [one for one in conditions if one["type"] != _PENDING]
