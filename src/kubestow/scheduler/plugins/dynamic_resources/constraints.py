"""Constraints between the devices of a claim: all share a value of an attribute, or no two share one.

An attribute is a set of values: those of a list if lists are enabled, otherwise its single value. An attribute that the
request derives replaces that of the device.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubestow.api.devices import DeviceAttribute, DeviceConstraint
from kubestow.scheduler.cluster.devices import DeviceEntry

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.dynamic_resources.derived import DerivedAttribute

Values = frozenset[tuple[str, str | int]]
"""The values of an attribute, each with its type; empty if the type is unknown."""


class Constraint:
    """A constraint on an attribute of devices: a common value, or distinct values."""

    def __init__(self, constraint: DeviceConstraint, *, lists: bool) -> None:
        """`lists`: whether attributes can be lists."""
        self.requests = frozenset(constraint.requests)
        self.distinct = constraint.matchAttribute is None
        self.lists = lists
        self._attribute = constraint.distinctAttribute or constraint.matchAttribute or ""
        self._known: dict[int, Values | None] = {}

    def covers(self, request: str, option: str) -> bool:
        return not self.requests or request in self.requests or option in self.requests

    def values_of(self, entry: DeviceEntry, derived: Mapping[str, "DerivedAttribute"]) -> Values | None:
        """Return the device's values of the attribute, None if it does not have the attribute.

        `derived` are the attributes that the request derives. Raises AllocationError if one cannot be derived.
        """
        if self._attribute in derived:
            return _values(derived[self._attribute].of(entry), lists=self.lists)
        if entry.content not in self._known:
            attribute = _attribute(entry, self._attribute)
            self._known[entry.content] = None if attribute is None else _values(attribute, lists=self.lists)
        return self._known[entry.content]


class Constrained:
    """The state of a constraint during a search: the values of the devices taken so far."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._taken: list[Values] = []
        """After each device that was taken: for distinct values those of the device, otherwise those common to all."""

    def admits(self, entry: DeviceEntry, derived: Mapping[str, "DerivedAttribute"]) -> bool:
        """Return whether a device satisfies the constraint together with those taken. Raises AllocationError."""
        values = self._constraint.values_of(entry, derived)
        if values is None:
            return False
        if not self._taken:
            return bool(values) or not self._constraint.lists
        if self._constraint.distinct:
            return bool(values) and all(map(values.isdisjoint, self._taken))
        return not values.isdisjoint(self._taken[-1])

    def add(self, entry: DeviceEntry, derived: Mapping[str, "DerivedAttribute"]) -> None:
        values = self._constraint.values_of(entry, derived)
        assert values is not None
        is_narrowed = self._taken and not self._constraint.distinct
        self._taken.append(values & self._taken[-1] if is_narrowed else values)

    def remove(self) -> None:
        """Remove the device that was taken last."""
        self._taken.pop()


def _attribute(entry: DeviceEntry, name: str) -> DeviceAttribute | None:
    found = entry.device.attributes.get(name)
    domain, slash, local = name.partition("/")
    return entry.device.attributes.get(local) if found is None and slash and domain == entry.driver else found


def _values(attribute: DeviceAttribute, *, lists: bool) -> Values:
    many: dict[str, tuple[str | int, ...] | None] = {
        "int": attribute.ints,
        "bool": attribute.bools,
        "string": attribute.strings,
        "version": attribute.versions,
    }
    one: dict[str, str | int | None] = {
        "int": attribute.integer,
        "bool": attribute.boolean,
        "string": attribute.string,
        "version": attribute.version,
    }
    for kind, values in many.items() if lists else ():
        if values:
            return frozenset([(kind, value) for value in values])
    return frozenset([(kind, value) for kind, value in one.items() if value is not None])
