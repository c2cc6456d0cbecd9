"""The store: collections with one version counter; changes are published once they are durable.

Writes change the state in memory immediately, so that the next request reads them. With a journal, they are queued
there, and published (to watches and pending responses) when they are on disk; without one, immediately.

Clock and random generator are passed in, so that the same requests create the same objects in a simulation.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kubestow.api.timestamps import format_time
from kubestow.apiserver.resources import BY_KIND, BY_STORAGE, Registry, Resource
from kubestow.apiserver.store.collection import Collection, Key
from kubestow.apiserver.store.records import Change, Record, Row, decode, encode
from kubestow.clock import Clock, SystemClock
from kubestow.telemetry.logs import get_logger

if TYPE_CHECKING:
    from kubestow.apiserver.store.sqlite import SqliteJournal

log = get_logger(__name__)

DEFAULT_RETAIN = 10_000
DEFAULT_RETAINED_BYTES = 64 * 1024 * 1024


class Store:
    """The objects of all resources, the version counter, and the publication of changes."""

    def __init__(
        self,
        journal: "SqliteJournal | None" = None,
        *,
        retain: int = DEFAULT_RETAIN,
        retained_bytes: int = DEFAULT_RETAINED_BYTES,
        clock: Clock = SystemClock(),  # noqa: B008 - has no state
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Keep `retain` to twice as many changes of each resource, and at most `retained_bytes` of all."""
        self.clock = clock
        self.random = random
        """Source of random bytes for UIDs and generated names."""
        self.registry = Registry()
        self.custom_subscribers: list[Callable[[Change], None]] = []
        """Callbacks for the changes of all current and future custom resources."""
        self.collections = {name: Collection(resource, retain) for name, resource in BY_STORAGE.items()}
        self._retain = retain
        self._retained_bytes = retained_bytes
        self._log_bytes = 0
        """Estimated size of the logs of all collections."""
        self.by_uid: dict[str, tuple[str, Record]] = {}
        self.dependents: dict[str, dict[tuple[str, str, str], None]] = {}
        """For each UID: storage, namespace and name of the objects it owns, oldest first."""
        self.rv = 1
        self.durable_rv = 1
        self._journal = journal
        self._failed = False
        self._unpublished: deque[tuple[Collection, Change]] = deque()
        self._waiting: deque[tuple[int, Callable[[], None], Callable[[], None]]] = deque()
        if journal is not None:
            self._load(journal)
            journal.start(self._on_durable, self._on_failure)

    def fork(self, clock: Clock, random: Callable[[int], bytes]) -> "Store":
        """Return an independent store with the same objects, without the log of changes.

        Records never change, so they are shared, and the copy is cheap.
        """
        other = Store(retain=self._retain, retained_bytes=self._retained_bytes, clock=clock, random=random)
        for storage, collection in self.collections.items():
            if storage not in other.collections:
                other.add(collection.resource)
            copy = other.collections[storage]
            copy.floor = self.rv
            copy.objects = dict(collection.objects)
            copy.by_namespace = {name: dict(objects) for name, objects in collection.by_namespace.items()}
        other.by_uid = dict(self.by_uid)
        other.dependents = {uid: dict(owned) for uid, owned in self.dependents.items()}
        other.rv = other.durable_rv = self.rv
        return other

    def now(self) -> str:
        """Return the current time in the format of objects."""
        return format_time(self.clock.now())

    def add(self, resource: Resource) -> None:
        """Create the collection of a custom resource, or convert its objects to a changed schema."""
        collection = self.collections.get(resource.storage)
        if collection is None:
            collection = self.collections[resource.storage] = Collection(resource, self._retain)
            collection.floor = self.rv
            collection.subscribers.extend(self.custom_subscribers)
        if resource.is_custom:
            collection.convert_to(resource)

    def custom_collections(self) -> Iterator[Collection]:
        """Return the collections of all current custom resources."""
        return (collection for name, collection in self.collections.items() if name not in BY_STORAGE)

    def subscribe_custom(self, callback: Callable[[Change], None]) -> None:
        """Call a function for all changes of current and future custom resources."""
        self.custom_subscribers.append(callback)
        for collection in self.custom_collections():
            collection.subscribers.append(callback)

    def unsubscribe_custom(self, callback: Callable[[Change], None]) -> None:
        """Remove a callback for changes of custom resources."""
        self.custom_subscribers.remove(callback)
        for collection in self.custom_collections():
            collection.subscribers.remove(callback)

    def drop(self, storage: str) -> None:
        """Remove a custom resource without objects."""
        collection = self.collections.pop(storage)
        self._log_bytes -= collection.log_bytes
        for end in list(collection.end_callbacks):
            end()

    def collection(self, storage: str) -> Collection:
        """Return the collection of a resource, by storage name such as `pods` or `deployments.apps`."""
        return self.collections[storage]

    def get(self, storage: str, namespace: str, name: str) -> Record | None:
        """Return the current version of an object; None if it does not exist."""
        return self.collections[storage].objects.get((namespace, name))

    def put(self, storage: str, obj: dict[str, Any]) -> Record:
        """Write an object with the next version, which is set in its metadata."""
        collection = self.collections[storage]
        self.rv = rv = self.rv + 1
        obj["metadata"]["resourceVersion"] = str(rv)
        record = Record(collection.resource, obj, rv, encode(obj))
        self._replace(storage, collection, record)
        return record

    def renew(self, storage: str, previous: Record, body: Callable[[int], bytes]) -> Record:
        """Write the next version of an object whose labels, owners and selectable fields did not change."""
        self.rv = rv = self.rv + 1
        record = previous.next_version(rv, body(rv))
        self._replace(storage, self.collections[storage], record)
        return record

    def _replace(self, storage: str, collection: Collection, record: Record) -> None:
        previous = collection.objects.get((record.namespace, record.name))
        self._index(storage, record, previous)
        collection.set(record)
        self._changed(collection, Change("ADDED" if previous is None else "MODIFIED", record, previous))

    def delete(self, storage: str, record: Record) -> Record:
        """Delete an object; return its last state, with the version of the deletion."""
        collection = self.collections[storage]
        previous = collection.objects[(record.namespace, record.name)]
        self.rv = rv = self.rv + 1
        obj = previous.object()
        obj["metadata"]["resourceVersion"] = str(rv)
        last = previous.next_version(rv, encode(obj))
        self._unindex(storage, previous)
        collection.remove(previous)
        self._changed(collection, Change("DELETED", last, previous))
        return last

    def when_durable(self, rv: int, call: Callable[[], None], refuse: Callable[[], None]) -> None:
        """Call a function once all writes up to a version are durable, or `refuse` if the journal has failed."""
        if rv <= self.durable_rv:
            call()
        elif self._failed:
            refuse()
        else:
            self._waiting.append((self.rv, call, refuse))

    def _on_failure(self) -> None:
        self._failed = True
        while self._waiting:
            _call(self._waiting.popleft()[2])

    def _changed(self, collection: Collection, change: Change) -> None:
        if self._journal is None:
            self.durable_rv = change.rv
            self._publish(collection, change)
            return
        self._unpublished.append((collection, change))
        collection.pending.append(change)
        self._journal.write(Row(change.rv, collection.resource.storage, change.type, change.record.body))

    def _on_durable(self, rv: int) -> None:
        self.durable_rv = rv
        unpublished = self._unpublished
        while unpublished and unpublished[0][1].rv <= rv:
            collection, change = unpublished.popleft()
            collection.pending.popleft()
            self._publish(collection, change)
        waiting = self._waiting
        while waiting and waiting[0][0] <= rv:
            _call(waiting.popleft()[1])

    def _publish(self, collection: Collection, change: Change) -> None:
        self._log_bytes += change.size
        if collection.append(change):
            self._drop_half(collection)
        while self._log_bytes > self._retained_bytes:
            self._drop_half(max(self.collections.values(), key=lambda one: one.log_bytes))
        collection.publish(change)
        # A watch that resumes later encodes its own lines; keeping these would double the size of the log.
        change.lines.clear()

    def _drop_half(self, collection: Collection) -> None:
        """Drop the older half of a collection's log."""
        before = collection.log_bytes
        dropped = collection.drop_half()
        self._log_bytes -= before - collection.log_bytes
        if self._journal is not None:
            # Watches need a version until the change that replaced it is dropped.
            versions = [old.previous.rv for old in dropped if old.previous is not None]
            versions += [old.rv for old in dropped if old.type == "DELETED"]
            self._journal.drop(collection.resource.storage, collection.floor, versions)

    def _index(self, storage: str, record: Record, previous: Record | None) -> None:
        self.by_uid[record.uid] = (storage, record)
        if previous is not None and previous.owners != record.owners:
            self._drop_owners(storage, previous)
        for owner in record.owners:
            self.dependents.setdefault(owner, {})[(storage, record.namespace, record.name)] = None

    def _unindex(self, storage: str, record: Record) -> None:
        self.by_uid.pop(record.uid, None)
        self._drop_owners(storage, record)

    def _drop_owners(self, storage: str, record: Record) -> None:
        for owner in record.owners:
            owned = self.dependents.get(owner)
            if owned is not None:
                owned.pop((storage, record.namespace, record.name), None)
                if not owned:
                    del self.dependents[owner]

    def _load(self, journal: "SqliteJournal") -> None:
        """Replay the journal; changes above a resource's floor are added to its log.

        Rows that were written like this but cannot be used, such as those of an earlier version, are logged and kept.
        Raises StorageError if the journal is damaged.
        """
        for name, collection in self.collections.items():
            collection.floor = _floor(journal, name)
        unserved: dict[tuple[str, str], set[Key]] = {}
        for row in journal.rows():
            self.rv = max(self.rv, row.rv)
            try:
                self._replay(row, journal, unserved)
            except Exception as error:
                log.unexpected("A stored object is ignored", err=error, resource=row.resource, version=row.rv)
        self.durable_rv = self.rv = max(self.rv, journal.state.highest)
        for (api_version, kind), found in unserved.items():
            if found:
                log.warning(
                    "Ignoring stored objects of a version that is no longer served; create them in a newer one",
                    apiVersion=api_version,
                    kind=kind,
                    objects=len(found),
                )

    def _replay(self, row: Row, journal: "SqliteJournal", unserved: dict[tuple[str, str], set[Key]]) -> None:
        collection = self.collections.get(row.resource)
        if collection is None:
            # A custom resource whose definition is read later.
            plural, _, group = row.resource.partition(".")
            self.add(Resource(f"{group}/v1", f"{plural} {plural}"))
            collection = self.collections[row.resource]
            collection.floor = _floor(journal, row.resource)
        obj, body = decode(row.body), row.body
        if row.resource in BY_STORAGE:
            named = (obj.get("apiVersion", ""), obj.get("kind", ""))
            if named[0] not in ("", collection.resource.api_version):
                # Earlier versions stored objects in another version of the API.
                served = BY_KIND.get(named)
                if served is None or served.conversion is None:
                    _remember(unserved.setdefault(named, set()), row.type, obj["metadata"])
                    return
                obj = served.conversion.to_stored(obj)
                body = encode(obj)
            if "spec" not in obj:
                # Earlier versions stored such objects of kinds that have a spec.
                collection.resource.add_spec(obj)
                body = encode(obj)
        record = Record(collection.resource, obj, row.rv, body)
        previous = collection.objects.get((record.namespace, record.name))
        if row.type == "DELETED":
            if previous is not None:
                self._unindex(row.resource, previous)
                collection.remove(previous)
        else:
            self._index(row.resource, record, previous)
            collection.set(record)
        if row.rv > collection.floor:
            change = Change(row.type, record, previous)
            collection.append(change)
            self._log_bytes += change.size


def _floor(journal: "SqliteJournal", storage: str) -> int:
    return max(journal.floors.get(storage, 0), journal.state.base)


def _remember(keys: set[Key], change: str, metadata: dict[str, Any]) -> None:
    """Keep the keys of existing objects."""
    key = (metadata.get("namespace", ""), metadata["name"])
    (keys.discard if change == "DELETED" else keys.add)(key)


def _call(callback: Callable[[], None]) -> None:
    """Call a function that waited for a version; the others must be called even if it fails."""
    try:
        callback()
    except Exception as error:
        log.unexpected("Request failed", err=error)
