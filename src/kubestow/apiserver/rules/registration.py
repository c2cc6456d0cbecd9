"""Rules for APIServices: they say that this server serves a group; it passes requests on to no other."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import FORBIDDEN, INVALID, REQUIRED


def validate(obj: dict[str, Any]) -> Iterator[Cause]:
    """A name that follows from version and group, and no other server."""
    spec, name = obj.get("spec", {}), obj["metadata"].get("name", "")
    if not spec.get("version"):
        yield "spec.version", REQUIRED, "Required value"
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted:
        message = f'Invalid value: "{name}": must be `spec.version+"."+spec.group`: "{wanted}"'
        yield "metadata.name", INVALID, message
    if spec.get("service") is not None:
        yield "spec.service", FORBIDDEN, "Forbidden: this server passes requests on to no other"


def server(obj: dict[str, Any]) -> str:
    """Who serves a group, as tables show it."""
    service = obj.get("spec", {}).get("service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def availability(obj: dict[str, Any]) -> str:
    """Whether a group is served, as tables show it."""
    conditions = obj.get("status", {}).get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == "Available"), "Unknown")
