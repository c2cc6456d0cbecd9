"""The user and the options of a write."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, frozen=True)
class User:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


SYSTEM = User("system:control-plane", ("system:masters",))


@dataclass(slots=True)
class Intent:
    """The user and options of a write; collects warnings for the response."""

    user: User = SYSTEM
    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Warn"
    trusted: bool = False
    """Whether to skip the schema check."""
    applies: bool = False
    """Whether the write is a server-side apply, which sets managedFields itself."""
    named: bool = False
    """Whether the request names a field manager; only then are managedFields tracked from creation."""
    strict: list[str] = field(default_factory=list)
    """Strict decoding errors of the body: unknown and duplicate fields."""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, Any] = field(default_factory=dict)
    """Audit annotations of policies."""


def internal() -> Intent:
    """Return the intent of a write by the control plane itself, without a schema check."""
    return Intent(manager="control-plane", trusted=True)
