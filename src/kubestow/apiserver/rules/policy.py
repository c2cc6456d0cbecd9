"""Disruption budgets and priority classes."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import FORBIDDEN, INVALID
from kubestow.apiserver.rules.workloads import wrong_share

_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def default_budget(obj: dict[str, Any]) -> None:
    """Nothing."""
    obj.setdefault("spec", {})


def validate_budget(obj: dict[str, Any]) -> Iterator[Cause]:
    """One bound, not two."""
    spec = obj["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield "spec", INVALID, "Invalid value: minAvailable and maxUnavailable cannot be both set"
    for name in ("minAvailable", "maxUnavailable"):
        yield from wrong_share(spec.get(name), f"spec.{name}")


def default_priority_class(obj: dict[str, Any]) -> None:
    """Pods of a class may preempt unless it says otherwise."""
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def validate_priority_class(obj: dict[str, Any]) -> Iterator[Cause]:
    """Names that begin with system- and values above a billion are for the system."""
    name = obj["metadata"].get("name", "")
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != obj["value"]:
            yield "metadata.name", FORBIDDEN, "Forbidden: names that begin with system- are reserved for the system"
    elif obj["value"] > _HIGHEST_USER_PRIORITY:
        yield "value", FORBIDDEN, f"Forbidden: a user defined priority may be at most {_HIGHEST_USER_PRIORITY}"


def keep_priority(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Value and preemption policy of a class cannot change."""
    for name in ("value", "preemptionPolicy"):
        if new.get(name) != old.get(name):
            yield name, FORBIDDEN, "Forbidden: may not be changed in an update."
