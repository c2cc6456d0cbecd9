"""Constraints between the devices of a claim: the same value of an attribute, or different ones.

kube-scheduler v1.36 does not compare different ones with each other all: a device is compared with the last device of
each request, and a device that is given back takes what was known of its request with it. Whoever asks one request for
three devices can get the values a, b, a. v1.37 mends that; here it is as in v1.36, so that the same devices are chosen.
"""

from kubestow.cluster.devices import DeviceEntry
from kubestow.model.devices import DeviceAttribute, DeviceConstraint

_OF_NO_KNOWN_TYPE = DeviceAttribute()


class Constraint:
    """Devices must have the same value of an attribute, or different ones."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self.requests = frozenset(constraint.requests)
        self.distinct = constraint.matchAttribute is None
        self._attribute = constraint.distinctAttribute or constraint.matchAttribute or ""
        self._known: dict[int, DeviceAttribute | None] = {}

    def covers(self, request: str, option: str) -> bool:
        return not self.requests or request in self.requests or option in self.requests

    def value_of(self, entry: DeviceEntry) -> DeviceAttribute | None:
        if entry.content not in self._known:
            self._known[entry.content] = _attribute(entry, self._attribute)
        return self._known[entry.content]


class Constrained:
    """The devices that have been taken under a constraint."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._last: dict[str, DeviceAttribute] = {}
        """By request."""
        self._equal: list[DeviceAttribute] = []

    def admits(self, entry: DeviceEntry) -> bool:
        """Whether a device can join them."""
        value = self._constraint.value_of(entry)
        if value is None:
            return False
        others = self._last.values() if self._constraint.distinct else self._equal
        if not others:
            return True
        return value != _OF_NO_KNOWN_TYPE and (value in others) is not self._constraint.distinct

    def add(self, request: str, entry: DeviceEntry) -> None:
        value = self._constraint.value_of(entry)
        assert value is not None
        if self._constraint.distinct:
            self._last[request] = value
        else:
            self._equal.append(value)

    def give_back(self, request: str) -> None:
        if self._constraint.distinct:
            self._last.pop(request, None)
        else:
            self._equal.pop()


def _attribute(entry: DeviceEntry, name: str) -> DeviceAttribute | None:
    found = entry.device.attributes.get(name)
    domain, slash, local = name.partition("/")
    return entry.device.attributes.get(local) if found is None and slash and domain == entry.driver else found
