"""The objects of one resource, with the log of their latest changes.

The log contains a limited number of changes, and the store limits the bytes of all logs. A log serves watches that
resume, and lists at an earlier version: that state is the current one with all later changes undone. The earlier state
requested last is cached, since lists are read page by page.

A subscriber receives all changes, or only those of objects with a certain namespace, name or field value (a topic), so
that the cost of thousands of subscribers depends only on the changes they receive. An exception in a subscriber is
logged: it affects neither the writer nor other subscribers.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from operator import attrgetter

from kubestow.apiserver.errors import expired
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.schema.types import Report
from kubestow.apiserver.store.records import Change, Record, encode
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

Key = tuple[str, str]
"""Namespace and name."""
Callback = Callable[[Change], None]
Topic = tuple[int, str]
"""The index of a selectable field, NAMESPACE or NAME, and a value."""
NAMESPACE, NAME = -1, -2


class Collection:
    """The current objects of a resource and their recent changes."""

    def __init__(self, resource: Resource, retain: int) -> None:
        self.resource = resource
        self.objects: dict[Key, Record] = {}
        self.by_namespace: dict[str, dict[str, Record]] = {}
        self.log: list[Change] = []
        self.log_bytes = 0
        """Estimated size of the log."""
        self.floor = 0
        """Changes up to this version were dropped from the log: reading from an older version gets 410 Expired."""
        self.subscribers: list[Callback] = []
        self.end_callbacks: list[Callable[[], None]] = []
        """Callbacks that run when the resource is no longer served."""
        self._retain = retain
        self._order: list[Key] | None = None
        self._past: tuple[int, dict[Key, Record], list[Key]] | None = None
        """The earlier state requested last: version, objects and ordered keys."""
        self.pending: deque[Change] = deque()
        """Changes in memory that are not published yet."""
        self._by_topic: dict[Topic, dict[Callback, None]] = {}

    def subscribe(self, callback: Callback, topic: Topic | None) -> None:
        """Call a function for changes of objects that match a topic before or after it; None: for all."""
        if topic is None:
            self.subscribers.append(callback)
        else:
            self._by_topic.setdefault(topic, {})[callback] = None

    def unsubscribe(self, callback: Callback, topic: Topic | None) -> None:
        """Remove a callback; no effect if it is already removed."""
        if topic is None:
            if callback in self.subscribers:
                self.subscribers.remove(callback)
        elif callback in self._by_topic.get(topic, ()):
            del self._by_topic[topic][callback]
            if not self._by_topic[topic]:
                del self._by_topic[topic]

    def replay(self, callback: Callback) -> None:
        """Notify a function of all current objects, as if they were added now."""
        for record in list(self.objects.values()):
            _notify((callback,), Change("ADDED", record, None))

    def publish(self, change: Change) -> None:
        """Notify all subscribers of a change, and those of the topics that the object matches."""
        _notify(self.subscribers, change)
        if self._by_topic:
            record = change.record
            topics = {(NAMESPACE, record.namespace), (NAME, record.name), *enumerate(record.fields)}
            if change.previous is not None:
                topics.update(enumerate(change.previous.fields))
            for topic in topics & self._by_topic.keys():
                _notify(tuple(self._by_topic.get(topic, ())), change)

    def convert_to(self, resource: Resource) -> None:
        """Convert all objects to the schema of a changed custom resource, as if they were written now."""
        self.resource = resource
        self._past = None
        for key, record in self.objects.items():
            try:
                obj = record.object()
                resource.schema.check(obj, "", Report())
                resource.rules.default(obj)
                renewed = Record(resource, obj, record.rv, encode(obj))
            except Exception as error:
                _report(Change("MODIFIED", record, record), error)
                continue
            self.objects[key] = self.by_namespace[record.namespace][record.name] = renewed

    def set(self, record: Record) -> None:
        """Add an object, or replace its previous version."""
        key = (record.namespace, record.name)
        if key not in self.objects:
            self._order = None
        self.objects[key] = record
        self.by_namespace.setdefault(record.namespace, {})[record.name] = record

    def remove(self, record: Record) -> None:
        """Remove an object."""
        del self.objects[(record.namespace, record.name)]
        named = self.by_namespace[record.namespace]
        del named[record.name]
        if not named:
            del self.by_namespace[record.namespace]
        self._order = None

    def append(self, change: Change) -> bool:
        """Add a change to the log; return whether the log has reached its maximum number of changes."""
        self.log.append(change)
        self.log_bytes += change.size
        return len(self.log) >= 2 * self._retain

    def drop_half(self) -> list[Change]:
        """Drop the older half of the log; return the dropped changes."""
        self._past = None
        count = (len(self.log) + 1) // 2
        dropped = self.log[:count]
        del self.log[:count]
        self.log_bytes -= sum([change.size for change in dropped])
        self.floor = dropped[-1].rv
        return dropped

    def since(self, rv: int) -> list[Change]:
        """Return the changes after a version. Raises ApiError if some of them were dropped."""
        self._require(rv)
        return self.log[bisect_right(self.log, rv, key=attrgetter("rv")) :]

    def _require(self, rv: int) -> None:
        if rv < self.floor:
            raise expired(f"too old resource version: {rv} ({self.floor})")

    def ordered(self, namespace: str | None, rv: int | None = None) -> list[Record]:
        """Return the objects in the order of namespace and name, now or at a retained earlier version."""
        objects, keys = self.key_range(namespace, rv)
        return [objects[key] for key in keys]

    def key_range(
        self, namespace: str | None, rv: int | None = None, after: Key | None = None
    ) -> tuple[dict[Key, Record], list[Key]]:
        """Return the objects now or at an earlier version, and the ordered keys of a namespace after a key."""
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


def _notify(callbacks: Iterable[Callback], change: Change) -> None:
    for callback in callbacks:
        try:
            callback(change)
        except Exception as error:
            _report(change, error)


def _report(change: Change, error: Exception) -> None:
    record = change.record
    name = f"{record.namespace}/{record.name}" if record.namespace else record.name
    log.unexpected("A change was not processed", err=error, resource=record.storage, object=name, change=change.type)
