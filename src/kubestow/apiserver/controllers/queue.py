"""The work queue of all controllers: keys of changed objects, and the time at which each is reconciled.

A change adds the keys it affects to the queue. A key is due after a few milliseconds, so that a burst of changes is one
reconciliation. The queue is passive: its driver reads when the next key is due, and reconciles it then. A server drives
it with a timer of the event loop; in a simulation the virtual clock advances to that time.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.work_queues import WorkQueueMetrics

log = get_logger(__name__)

_SETTLE_SECONDS = 0.01
_STEP_SECONDS = 0.001
"""Delay between the steps of a long reconciliation, so that virtual time advances, too."""
_RETRY_SECONDS = 1.0
_RETRY_LIMIT = 60.0

KeysOf = Callable[[Change], Iterable[Key]]
CUSTOM = "*"
"""Used instead of a storage name for all custom resources."""


class Controller(Protocol):
    """Reconciles objects of one kind."""

    @property
    def sources(self) -> Mapping[str, KeysOf]:
        """The storages to watch, each with the function that maps a change to the keys to reconcile."""

    def reconcile(self, key: Key) -> float | None:
        """Reconcile one object; return the seconds until the next run, None for no further run."""


class _Worker:
    """A controller, and the metrics of its queue, if any."""

    __slots__ = ("controller", "metrics", "name")

    def __init__(self, controller: Controller, metrics: WorkQueueMetrics | None) -> None:
        self.controller = controller
        self.name = type(controller).__name__
        self.metrics = None if metrics is None else metrics.queue(self.name)


class Controllers:
    """The keys that the controllers of a store have to reconcile."""

    def __init__(
        self, store: Store, controllers: Iterable[Controller], metrics: WorkQueueMetrics | None = None
    ) -> None:
        self._store = store
        self._due: list[tuple[float, int, _Worker, Key]] = []
        self._scheduled: dict[tuple[int, Key], float] = {}
        self._failures: dict[tuple[int, Key], int] = {}
        self._order = itertools.count()
        self._subscriptions: list[tuple[str, Callable[[Change], None]]] = []
        self.on_scheduled: Callable[[float], None] = lambda _: None
        """Callback with the time of a key that is due before all others."""
        self._workers = [_Worker(controller, metrics) for controller in controllers]
        for worker in self._workers:
            for storage, keys_of in worker.controller.sources.items():
                self._watch(worker, storage, keys_of)
        if metrics is not None:
            metrics.work_depth.watch(self._depths)

    def _watch(self, worker: _Worker, storage: str, keys_of: KeysOf) -> None:
        def notify(change: Change) -> None:
            for key in keys_of(change):
                self._schedule(worker, key, _SETTLE_SECONDS)

        self._subscriptions.append((storage, notify))
        if storage == CUSTOM:
            self._store.subscribe_custom(notify)
            watched = list(self._store.custom_collections())
        else:
            watched = [self._store.collection(storage)]
            watched[0].subscribers.append(notify)
        for collection in watched:
            collection.replay(notify)

    def _schedule(self, worker: _Worker, key: Key, seconds: float) -> None:
        at = self._store.clock.now() + seconds
        identity = (id(worker), key)
        before = self._scheduled.get(identity)
        if before is not None and before <= at:
            return
        if before is None and worker.metrics is not None:
            worker.metrics.adds += 1
        self._scheduled[identity] = at
        entry = (at, next(self._order), worker, key)
        heapq.heappush(self._due, entry)
        if self._due[0] is entry:
            self.on_scheduled(at)

    def next_due(self) -> float | None:
        """Return the time at which the next key is due; None if the queue is empty."""
        return self._due[0][0] if self._due else None

    @property
    def has_scheduled_keys(self) -> bool:
        """Whether a key will be reconciled; entries of keys that were already reconciled earlier do not count."""
        return bool(self._scheduled)

    def reconcile_next(self) -> None:
        """Reconcile the key that is due first."""
        at, _, worker, key = heapq.heappop(self._due)
        identity = (id(worker), key)
        if self._scheduled.get(identity) == at:
            del self._scheduled[identity]
            if worker.metrics is not None:
                worker.metrics.begin(self._store.clock.now() - at)
            again = self._reconcile(worker, key, identity)
            if worker.metrics is not None:
                worker.metrics.end()
            if again is not None:
                self._schedule(worker, key, max(again, _STEP_SECONDS))

    def _reconcile(self, worker: _Worker, key: Key, identity: tuple[int, Key]) -> float | None:
        try:
            again = worker.controller.reconcile(key)
        except ApiError as error:
            log.info("Retrying", v=2, err=error.message, controller=worker.name, object="/".join(key))
        except Exception as error:
            log.unexpected("Controller failed", err=error, controller=worker.name, object="/".join(key))
        else:
            self._failures.pop(identity, None)
            return again
        if worker.metrics is not None:
            worker.metrics.retries += 1
        failures = self._failures[identity] = self._failures.get(identity, 0) + 1
        return min(_RETRY_LIMIT, _RETRY_SECONDS * 2.0 ** min(failures - 1, 10))

    def _depths(self) -> dict[tuple[str, ...], float]:
        """Return the number of keys that are due, by controller; keys to be reconciled later are not waiting."""
        now = self._store.clock.now()
        depths: dict[tuple[str, ...], float] = {(worker.name,): 0 for worker in self._workers}
        for at, _, worker, key in self._due:
            if at <= now and self._scheduled.get((id(worker), key)) == at:
                depths[worker.name,] += 1
        return depths

    def close(self) -> None:
        """Stop watching changes, and discard all keys."""
        for storage, notify in self._subscriptions:
            if storage == CUSTOM:
                self._store.unsubscribe_custom(notify)
            else:
                self._store.collection(storage).subscribers.remove(notify)
        self._subscriptions.clear()
        self._due.clear()


def own_key(change: Change) -> Iterable[Key]:
    """Return the key of the changed object itself."""
    return ((change.record.namespace, change.record.name),)


def owners_in(store: Store, storage: str) -> KeysOf:
    """Return a function that maps a change to the keys of the object's owners in one storage."""

    def keys(change: Change) -> Iterable[Key]:
        found = []
        for uid in change.record.owners:
            entry = store.by_uid.get(uid)
            if entry is not None and entry[0] == storage:
                found.append((entry[1].namespace, entry[1].name))
        return found

    return keys
