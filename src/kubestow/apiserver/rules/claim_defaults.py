"""Defaults of resource claims and their templates."""

from typing import Any


def default_claim(obj: dict[str, Any]) -> None:
    """Set the defaults of requests: one device each."""
    _default_requests(obj.setdefault("spec", {}))


def default_template(obj: dict[str, Any]) -> None:
    """Set the defaults of the claims of a template."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _default_requests(spec.setdefault("spec", {}))


def _default_requests(spec: dict[str, Any]) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        exactly = request.get("exactly")
        for one in (*([exactly] if exactly is not None else ()), *request.get("firstAvailable", ())):
            if not one.get("allocationMode"):
                one["allocationMode"] = "ExactCount"
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1
            for toleration in one.get("tolerations") or ():
                if not toleration.get("operator"):
                    toleration["operator"] = "Equal"
