"""The differences between two configurations, field by field, in readable form: `podMaxBackoffSeconds: 10 -> 20`.

The output of `dump` is compared. Profiles, plugins and extenders are matched by name, not by position.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubestow.config.configuration import SchedulerConfiguration
from kubestow.config.writing import tree_of

_NAMES = ("schedulerName", "name", "urlPrefix")
_KEYS = "tlsConfig"
"""Field whose values are not shown, as it contains private keys."""
_MAX_LENGTH = 60


class Difference(msgspec.Struct, frozen=True):
    """A field that differs."""

    path: str
    change: str
    """The old and the new value if they are short."""

    @property
    def section(self) -> str:
        """The top-level field that contains the field."""
        return self.path.partition(".")[0].partition("[")[0]

    def __str__(self) -> str:
        return f"{self.path}: {self.change}"


def differences(old: SchedulerConfiguration, new: SchedulerConfiguration) -> list[Difference]:
    """Return all differences, in the order of the fields."""
    before, after = tree_of(old), tree_of(new)
    names = SchedulerConfiguration.__struct_fields__
    return [found for name in names for found in _differ(name, before.get(name), after.get(name))]


def _differ(path: str, old: Any, new: Any) -> Iterator[Difference]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and not path.endswith(_KEYS):
        for name in dict.fromkeys((*old, *new)):
            yield from _differ(f"{path}.{name}", old.get(name), new.get(name))
        return
    named_old, named_new = _by_name(old), _by_name(new)
    if named_old is None or named_new is None:
        yield Difference(path, "changed" if path.endswith(_KEYS) else _change(old, new))
        return
    for name in dict.fromkeys((*named_old, *named_new)):
        if name not in named_old or name not in named_new:
            yield Difference(f"{path}[{name}]", "added" if name in named_new else "removed")
        else:
            yield from _differ(f"{path}[{name}]", named_old[name], named_new[name])
    if [name for name in named_old if name in named_new] != [name for name in named_new if name in named_old]:
        yield Difference(path, "in another order")


def _by_name(items: Any) -> dict[str, Any] | None:
    """Return the items of a list by name; None if it is not a list or its items have no unique names."""
    if items is not None and not (isinstance(items, list) and all(isinstance(item, dict) for item in items)):
        return None
    named = {next((str(item[key]) for key in _NAMES if key in item), ""): item for item in items or ()}
    return None if "" in named or len(named) < len(items or ()) else named


def _change(old: Any, new: Any) -> str:
    before, after = ("none" if value is None else msgspec.json.encode(value).decode() for value in (old, new))
    return "changed" if len(before) > _MAX_LENGTH or len(after) > _MAX_LENGTH else f"{before} -> {after}"
