"""Objects of one resource, with the log of their latest changes.

The log reaches back a fixed number of changes. It serves watches that resume, and lists at an earlier version: the
state then is the state now with the changes since undone.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable

from kubestow.apiserver.errors import expired
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.schema.types import Report
from kubestow.apiserver.store.records import Change, Record, encode

Key = tuple[str, str]
"""Namespace and name."""


class Collection:
    """The current objects of a resource and what lately became of them."""

    def __init__(self, resource: Resource, retain: int) -> None:
        self.resource = resource
        self.objects: dict[Key, Record] = {}
        self.by_namespace: dict[str, dict[str, Record]] = {}
        self.log: list[Change] = []
        self.floor = 0
        self.subscribers: list[Callable[[Change], None]] = []
        self.enders: list[Callable[[], None]] = []
        """Called when the resource is served no longer."""
        self._retain = retain
        self._order: list[Key] | None = None

    def reshape(self, resource: Resource) -> None:
        """Objects of a custom resource are of another shape from now on: they lose and get fields as if written now."""
        self.resource = resource
        for key, record in self.objects.items():
            obj = record.object()
            resource.schema.check(obj, "", Report())
            resource.rules.default(obj)
            self.objects[key] = renewed = Record(resource, obj, record.rv, encode(obj))
            self.by_namespace[record.namespace][record.name] = renewed

    def set(self, record: Record) -> None:
        """Puts an object in, or in place of its previous version."""
        key = (record.namespace, record.name)
        if key not in self.objects:
            self._order = None
        self.objects[key] = record
        self.by_namespace.setdefault(record.namespace, {})[record.name] = record

    def remove(self, record: Record) -> None:
        """Takes an object out."""
        del self.objects[(record.namespace, record.name)]
        named = self.by_namespace[record.namespace]
        del named[record.name]
        if not named:
            del self.by_namespace[record.namespace]
        self._order = None

    def remember(self, change: Change) -> list[Change]:
        """Adds to the log; returns the changes that fell out of it."""
        log = self.log
        log.append(change)
        if len(log) < 2 * self._retain:
            return []
        forgotten = log[: self._retain]
        del log[: self._retain]
        self.floor = forgotten[-1].rv
        return forgotten

    def since(self, rv: int) -> list[Change]:
        """Changes after a version; refused when some of them are forgotten."""
        self._demand(rv)
        return self.log[bisect_right(self.log, rv, key=_rv) :]

    def _demand(self, rv: int) -> None:
        if rv < self.floor:
            raise expired(f"too old resource version: {rv} ({self.floor})")

    def ordered(self, namespace: str | None, rv: int | None = None) -> list[Record]:
        """Objects by namespace and name: now, or at an earlier version that is still remembered."""
        objects = self.objects if rv is None else self._at(rv)
        if objects is not self.objects:
            keys: Iterable[Key] = sorted(objects)
        elif namespace is not None:
            named = self.by_namespace.get(namespace, {})
            return [named[name] for name in sorted(named)]
        else:
            if self._order is None:
                self._order = sorted(objects)
            keys = self._order
        if namespace is None:
            return [objects[key] for key in keys]
        return [objects[key] for key in keys if key[0] == namespace]

    def _at(self, rv: int) -> dict[Key, Record]:
        changes = self.since(rv)
        if not changes:
            return self.objects
        objects = dict(self.objects)
        for change in reversed(changes):
            key = (change.record.namespace, change.record.name)
            if change.previous is None:
                objects.pop(key, None)
            else:
                objects[key] = change.previous
        return objects


def _rv(change: Change) -> int:
    return change.rv
