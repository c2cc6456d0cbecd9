"""The work queue of all controllers: keys of changed objects, and the time at which each is reconciled.

A change adds the keys it affects to the queue. A key is due after a few milliseconds, so that a burst of changes is one
reconciliation. The queue is passive: its driver reads when the next key is due, and reconciles it then. A server drives
it with a timer of the event loop; in a simulation the virtual clock advances to that time.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from time import perf_counter
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

    def sources(self) -> dict[str, KeysOf]:
        """Return the storages to watch, each with the function that maps a change to the keys to reconcile."""

    def reconcile(self, key: Key) -> float | None:
        """Reconcile one object; return the seconds until the next run, None for no further run."""


class Controllers:
    """The keys that the controllers of a store have to reconcile."""

    def __init__(
        self, store: Store, controllers: Iterable[Controller], metrics: WorkQueueMetrics | None = None
    ) -> None:
        self._store = store
        self._metrics = metrics
        if metrics is not None:
            metrics.work_depth.watch(self._depths)
        self._due: list[tuple[float, int, Controller, Key]] = []
        self._scheduled: dict[tuple[int, Key], float] = {}
        self._failures: dict[tuple[int, Key], int] = {}
        self._order = itertools.count()
        self._subscriptions: list[tuple[str, Callable[[Change], None]]] = []
        self.on_scheduled: Callable[[float], None] = lambda _: None
        """Callback with the time of a key that is due before all others."""
        self._names: set[tuple[str, ...]] = set()
        for controller in controllers:
            self._names.add((type(controller).__name__,))
            for storage, keys_of in controller.sources().items():
                self._watch(controller, storage, keys_of)

    def _watch(self, controller: Controller, storage: str, keys_of: KeysOf) -> None:
        def notify(change: Change) -> None:
            for key in keys_of(change):
                self._schedule(controller, key, _SETTLE_SECONDS)

        self._subscriptions.append((storage, notify))
        if storage == CUSTOM:
            self._store.subscribe_custom(notify)
            watched = list(self._store.custom_collections())
        else:
            watched = [self._store.collection(storage)]
            watched[0].subscribers.append(notify)
        for collection in watched:
            collection.replay(notify)

    def _schedule(self, controller: Controller, key: Key, seconds: float) -> None:
        at = self._store.clock.now() + seconds
        identity = (id(controller), key)
        if self._scheduled.get(identity, float("inf")) <= at:
            return
        if self._metrics is not None and identity not in self._scheduled:
            self._metrics.work_adds.inc(type(controller).__name__)
        self._scheduled[identity] = at
        entry = (at, next(self._order), controller, key)
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
        at, _, controller, key = heapq.heappop(self._due)
        now = self._store.clock.now()
        identity = (id(controller), key)
        if self._scheduled.get(identity) == at:
            del self._scheduled[identity]
            started = perf_counter()
            again = self._reconcile(controller, key, identity)
            if self._metrics is not None:
                name = type(controller).__name__
                self._metrics.work_seconds.observe(perf_counter() - started, name)
                self._metrics.work_waited.observe(max(0.0, now - at), name)
            if again is not None:
                self._schedule(controller, key, max(again, _STEP_SECONDS))

    def _reconcile(self, controller: Controller, key: Key, identity: tuple[int, Key]) -> float | None:
        try:
            again = controller.reconcile(key)
        except ApiError as error:
            log.info("Retrying", v=2, err=error.message, controller=type(controller).__name__, object="/".join(key))
        except Exception as error:
            log.unexpected("Controller failed", err=error, controller=type(controller).__name__, object="/".join(key))
        else:
            self._failures.pop(identity, None)
            return again
        if self._metrics is not None:
            self._metrics.work_retries.inc(type(controller).__name__)
        failures = self._failures[identity] = self._failures.get(identity, 0) + 1
        return min(_RETRY_LIMIT, _RETRY_SECONDS * 2.0 ** min(failures - 1, 10))

    def _depths(self) -> dict[tuple[str, ...], float]:
        """Return the number of keys that are due, by controller; keys to be reconciled later are not waiting."""
        now = self._store.clock.now()
        depths: dict[tuple[str, ...], float] = dict.fromkeys(self._names, 0.0)
        for at, _, controller, key in self._due:
            if at <= now and self._scheduled.get((id(controller), key)) == at:
                depths[type(controller).__name__,] += 1
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
