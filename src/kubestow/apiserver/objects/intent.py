"""Who wants something, and how it is meant."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, frozen=True)
class User:
    """Somebody the server knows."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


SYSTEM = User("system:control-plane", ("system:masters",))


@dataclass(slots=True)
class Intent:
    """How a write is meant; warnings for its author gather here."""

    user: User = SYSTEM
    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Warn"
    trusted: bool = False
    """Whether the object is known to fit its schema."""
    applies: bool = False
    """Whether the write is an apply, which says itself who owns what."""
    named: bool = False
    """Whether the author gave a name for managedFields, and so wants them kept."""
    strict: list[str] = field(default_factory=list)
    """What a strict reader has to say of the body: fields nobody knows, and fields given twice."""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, Any] = field(default_factory=dict)
    """What policies have to say to the auditor."""


def internal() -> Intent:
    """A write of the control plane itself, whose objects need no schema check."""
    return Intent(manager="control-plane", trusted=True)
