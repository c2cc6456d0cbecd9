"""Constraints between the devices of a claim: a value of an attribute that all of them have, or none that two have.

An attribute is taken for the set of its values: those of a list if lists are known, or else the only one.

kube-scheduler v1.36 does not compare different ones with each other all: a device is compared with the last device of
each request, and a device that is given back takes what was known of its request with it. Whoever asks one request for
three devices can get the values a, b, a. v1.37 mends that; here it is as in v1.36, so that the same devices are chosen.

Lists are compared as the API says. The allocator of v1.36 could, but its scheduler never tells it that the gate is on.
"""

from kubestow.api.devices import DeviceAttribute, DeviceConstraint
from kubestow.scheduler.cluster.devices import DeviceEntry

Values = frozenset[tuple[str, str | int]]
"""What an attribute says, each value with its type; empty if its type is not known."""


class Constraint:
    """Devices must have a value of an attribute in common, or none."""

    def __init__(self, constraint: DeviceConstraint, *, lists: bool) -> None:
        """`lists` says whether attributes can be lists."""
        self.requests = frozenset(constraint.requests)
        self.distinct = constraint.matchAttribute is None
        self.lists = lists
        self._attribute = constraint.distinctAttribute or constraint.matchAttribute or ""
        self._known: dict[int, Values | None] = {}

    def covers(self, request: str, option: str) -> bool:
        return not self.requests or request in self.requests or option in self.requests

    def values_of(self, entry: DeviceEntry) -> Values | None:
        """None if the device does not have the attribute."""
        if entry.content not in self._known:
            attribute = _attribute(entry, self._attribute)
            self._known[entry.content] = None if attribute is None else _values(attribute, lists=self.lists)
        return self._known[entry.content]


class Constrained:
    """The devices that have been taken under a constraint."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._last: dict[str, Values] = {}
        """By request."""
        self._common: list[Values] = []
        """What all of the devices have in common, after each that was taken."""

    def admits(self, entry: DeviceEntry) -> bool:
        """Whether a device can join them."""
        values = self._constraint.values_of(entry)
        if values is None:
            return False
        if self._constraint.distinct:
            return not self._last or (bool(values) and all(map(values.isdisjoint, self._last.values())))
        if not self._common:
            return bool(values) or not self._constraint.lists
        return not values.isdisjoint(self._common[-1])

    def add(self, request: str, entry: DeviceEntry) -> None:
        values = self._constraint.values_of(entry)
        assert values is not None
        if self._constraint.distinct:
            self._last[request] = values
        else:
            self._common.append(values & self._common[-1] if self._common else values)

    def give_back(self, request: str) -> None:
        if self._constraint.distinct:
            self._last.pop(request, None)
        else:
            self._common.pop()


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
