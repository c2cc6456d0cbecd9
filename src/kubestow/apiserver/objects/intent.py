"""The user and the options of a write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MASTERS, AUTHENTICATED, UNAUTHENTICATED = "system:masters", "system:authenticated", "system:unauthenticated"


@dataclass(slots=True, frozen=True)
class User:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def info(self) -> dict[str, Any]:
        """Return the user as in reviews and in the audit log."""
        info: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            info["uid"] = self.uid
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


SYSTEM = User("system:control-plane", (MASTERS,))
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
"""The user of requests without credentials."""


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
