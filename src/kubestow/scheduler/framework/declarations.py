"""The kinds that a plugin declares to watch, in its class attribute `watches`.

    class QuotaGuard:
        name = "QuotaGuard"
        watches = (watch(ElasticQuota, when_unavailable="block", writes=("status",)),)

They are declared in the class, not requested by the constructor, so that watches can start, permissions can be listed
and clusters can be recorded without creating the plugin.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec

from kubestow.api.custom_kinds import resource_of
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import event_resource

Part = Literal["status", "annotations", "spec"]
_PARTS: tuple[Part, ...] = ("status", "annotations", "spec")


class WatchError(TypeError):
    """A declaration in `watches` that cannot be used."""


class Watched(msgspec.Struct, frozen=True):
    """One declaration; see `watch`."""

    kind: type
    writes: tuple[Part, ...] = ()
    blocks: bool = False
    """Whether pods are rejected while the objects cannot be read."""


def watch(
    kind: type, *, writes: Iterable[Part] = (), when_unavailable: Literal["ignore", "block"] = "ignore"
) -> Watched:
    """Declare that a plugin watches a kind, and which parts of its objects it writes.

    `when_unavailable` is the behavior while the API server does not serve the kind or forbids to list it: with
    "ignore" the plugin runs as if there were no objects; with "block" it rejects pods, for rules that must not be
    bypassed. Raises WatchError.
    """
    if not isinstance(kind, type):
        raise WatchError(f"watches: {kind!r} is not a kind")
    if issubclass(kind, Pod | Node):
        raise WatchError(f"watches: {kind.__name__}s are always watched: see handle.pods and handle.node_columns")
    if resource_of(kind) is None and event_resource(kind) is None:
        raise WatchError(f"watches: {kind.__name__} is not watched; declare the kind with @custom_resource")
    parts = tuple(writes)
    for part in parts:
        if part not in _PARTS:
            raise WatchError(f"watches: {kind.__name__}: writes must be of {', '.join(_PARTS)}, not {part!r}")
    if when_unavailable not in ("ignore", "block"):
        raise WatchError(
            f"watches: {kind.__name__}: when_unavailable must be ignore or block, not {when_unavailable!r}"
        )
    return Watched(kind, parts, when_unavailable == "block")


class Permission(NamedTuple):
    """A permission that a role must give."""

    group: str
    resource: str
    """The plural name, with a slash and the subresource, if any."""
    verb: str


def permissions_for(watched: Iterable[Watched]) -> list[Permission]:
    """Return what plugins need to list, watch and write their kinds, besides the permissions of a scheduler."""
    needed: set[Permission] = set()
    for one in watched:
        declared = resource_of(one.kind)
        if declared is None:
            continue
        needed |= {Permission(declared.group, declared.plural, verb) for verb in ("list", "watch")}
        for part in one.writes:
            written = f"{declared.plural}/status" if part == "status" else declared.plural
            needed.add(Permission(declared.group, written, "patch"))
    return sorted(needed)


def watches_of(plugin: Any) -> tuple[Watched, ...]:
    """Return the declarations of a plugin, or of its class. Raises WatchError."""
    declared = getattr(plugin, "watches", ())
    if not isinstance(declared, tuple | list):
        raise WatchError(f"watches: must be a tuple of kinds, not {type(declared).__name__}")
    return tuple(one if isinstance(one, Watched) else watch(one) for one in declared)
