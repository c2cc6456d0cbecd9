"""The queue of all controllers.

A change puts the keys it concerns into the queue; a key waits a few milliseconds, so that a burst of changes is one
visit. Visits run in slices of a few milliseconds, between which the server answers requests.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Protocol

from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.reporting.logs import get_logger

log = get_logger(__name__)

_SETTLE_SECONDS = 0.01
_SLICE_SECONDS = 0.004
_RETRY_SECONDS = 1.0

KeysOf = Callable[[Change], Iterable[Key]]
CUSTOM = "*"
"""In place of a storage: those of all custom resources."""


class Controller(Protocol):
    """Looks after objects of one kind."""

    def sources(self) -> dict[str, KeysOf]:
        """For each storage it follows: the keys a change concerns."""

    def visit(self, key: Key) -> float | None:
        """Brings one object in line; returns after how many seconds to look again, if at all."""


class Controllers:
    """Runs controllers over a store."""

    def __init__(self, store: Store, controllers: Iterable[Controller]) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._due: list[tuple[float, int, Controller, Key]] = []
        self._planned: dict[tuple[int, Key], float] = {}
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._closed = False
        self._subscriptions: list[tuple[str, Callable[[Change], None]]] = []
        for controller in controllers:
            for storage, keys_of in controller.sources().items():
                self._follow(controller, storage, keys_of)

    def _follow(self, controller: Controller, storage: str, keys_of: KeysOf) -> None:
        def tell(change: Change) -> None:
            for key in keys_of(change):
                self._plan(controller, key, _SETTLE_SECONDS)

        if storage == CUSTOM:
            self._store.follow_custom(tell)
            return
        collection = self._store.collection(storage)
        collection.subscribers.append(tell)
        self._subscriptions.append((storage, tell))
        for record in list(collection.objects.values()):
            tell(Change("ADDED", record, None))

    def _plan(self, controller: Controller, key: Key, seconds: float) -> None:
        at = self._loop.time() + seconds
        identity = (id(controller), key)
        if self._planned.get(identity, float("inf")) <= at:
            return
        self._planned[identity] = at
        heapq.heappush(self._due, (at, next(self._order), controller, key))
        self._set_timer(at)

    def _set_timer(self, at: float) -> None:
        if at < self._timer_at and not self._closed:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = at
            self._timer = self._loop.call_at(at, self._run)

    def _run(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        end = self._loop.time() + _SLICE_SECONDS
        while self._due and self._loop.time() < end:
            at, _, controller, key = self._due[0]
            if at > self._loop.time():
                break
            heapq.heappop(self._due)
            identity = (id(controller), key)
            if self._planned.get(identity) != at:
                continue
            del self._planned[identity]
            again = self._visit(controller, key)
            if again is not None:
                self._plan(controller, key, again)
        if self._due:
            self._set_timer(max(self._due[0][0], self._loop.time()))

    def _visit(self, controller: Controller, key: Key) -> float | None:
        try:
            return controller.visit(key)
        except ApiError as error:
            log.info("Trying again", v=2, err=error.message, controller=type(controller).__name__, object="/".join(key))
        except Exception as error:
            log.unexpected("Controller failed", err=error, controller=type(controller).__name__, object="/".join(key))
        return _RETRY_SECONDS

    def close(self) -> None:
        """Stops following changes."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for storage, tell in self._subscriptions:
            self._store.collection(storage).subscribers.remove(tell)


def own_key(change: Change) -> Iterable[Key]:
    """The changed object itself."""
    return ((change.record.namespace, change.record.name),)


def owners_in(store: Store, storage: str) -> KeysOf:
    """The owners of the changed object that live in one storage."""

    def keys(change: Change) -> Iterable[Key]:
        found = []
        for uid in change.record.owners:
            entry = store.by_uid.get(uid)
            if entry is not None and entry[0] == storage:
                found.append((entry[1].namespace, entry[1].name))
        return found

    return keys
