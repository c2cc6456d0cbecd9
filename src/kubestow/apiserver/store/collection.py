"""Objects of one resource, with the log of their latest changes.

The log reaches back a fixed number of changes. It serves watches that resume, and lists at an earlier version: the
state then is the state now with the changes since undone. The earlier state that was asked for last is kept, since
lists are read page by page.

Most followers want to know of every change. One that is about a namespace, a name or the value of a field alone is told
only of changes of such objects, so that thousands of them cost no more than what they are told.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable

from kubestow.apiserver.errors import expired
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.schema.types import Report
from kubestow.apiserver.store.records import Change, Record, encode

Key = tuple[str, str]
"""Namespace and name."""
Tell = Callable[[Change], None]
Topic = tuple[int, str]
"""The place of a selectable field, or one of those below, and a value."""
NAMESPACE, NAME = -1, -2


class Collection:
    """The current objects of a resource and what lately became of them."""

    def __init__(self, resource: Resource, retain: int) -> None:
        self.resource = resource
        self.objects: dict[Key, Record] = {}
        self.by_namespace: dict[str, dict[str, Record]] = {}
        self.log: list[Change] = []
        self.floor = 0
        self.subscribers: list[Tell] = []
        self.enders: list[Callable[[], None]] = []
        """Called when the resource is served no longer."""
        self._retain = retain
        self._order: list[Key] | None = None
        self._past: tuple[int, dict[Key, Record], list[Key]] | None = None
        """The earlier state that was asked for last."""
        self.pending: deque[Change] = deque()
        """Changes that are made and not yet public."""
        self._narrow: dict[Topic, dict[Tell, None]] = {}

    def follow(self, tell: Tell, topic: Topic | None) -> None:
        """Tells of changes of objects that a topic is true of before or after, or of all."""
        if topic is None:
            self.subscribers.append(tell)
        else:
            self._narrow.setdefault(topic, {})[tell] = None

    def unfollow(self, tell: Tell, topic: Topic | None) -> None:
        """Tells no more; once is enough."""
        if topic is None:
            if tell in self.subscribers:
                self.subscribers.remove(tell)
        elif tell in self._narrow.get(topic, ()):
            del self._narrow[topic][tell]
            if not self._narrow[topic]:
                del self._narrow[topic]

    def publish(self, change: Change) -> None:
        """Tells of a change whoever is concerned."""
        for tell in self.subscribers:
            tell(change)
        if self._narrow:
            record = change.record
            topics = {(NAMESPACE, record.namespace), (NAME, record.name), *enumerate(record.fields)}
            if change.previous is not None:
                topics.update(enumerate(change.previous.fields))
            for topic in topics & self._narrow.keys():
                for tell in tuple(self._narrow[topic]):
                    tell(change)

    def reshape(self, resource: Resource) -> None:
        """Objects of a custom resource are of another shape from now on: they lose and get fields as if written now."""
        self.resource = resource
        self._past = None
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
        self._past = None
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
        objects, keys = self.span(namespace, rv)
        return [objects[key] for key in keys]

    def span(
        self, namespace: str | None, rv: int | None = None, after: Key | None = None
    ) -> tuple[dict[Key, Record], list[Key]]:
        """The objects now or at an earlier version; and, in order, the keys of those meant that come after one."""
        if rv is None and namespace is not None and self._order is None:
            objects, keys = self.objects, [(namespace, name) for name in sorted(self.by_namespace.get(namespace, ()))]
        else:
            objects, keys = self._now() if rv is None else self._at(rv)
        first, last = 0, len(keys)
        if namespace is not None:
            first, last = bisect_left(keys, (namespace, "")), bisect_left(keys, (f"{namespace}\0", ""))
        if after is not None:
            first = max(first, bisect_right(keys, after))
        return objects, keys if (first, last) == (0, len(keys)) else keys[first:last]

    def _now(self) -> tuple[dict[Key, Record], list[Key]]:
        if self._order is None:
            self._order = sorted(self.objects)
        return self.objects, self._order

    def _at(self, rv: int) -> tuple[dict[Key, Record], list[Key]]:
        if self._past is not None and self._past[0] == rv:
            return self._past[1:]
        changes = [*self.since(rv), *(change for change in self.pending if change.rv > rv)]
        if not changes:
            return self._now()
        objects = dict(self.objects)
        for change in reversed(changes):
            key = (change.record.namespace, change.record.name)
            if change.previous is None:
                objects.pop(key, None)
            else:
                objects[key] = change.previous
        self._past = rv, objects, sorted(objects)
        return self._past[1:]


def _rv(change: Change) -> int:
    return change.rv
