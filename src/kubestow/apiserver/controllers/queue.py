"""The queue of all controllers: who looks at what, and when.

A change puts the keys it concerns into the queue; a key waits a few milliseconds, so that a burst of changes is one
visit. The queue neither waits nor runs by itself: whoever drives it asks when the next visit is due, and has it done
then. Live that is a timer of the event loop, in a simulation the virtual clock jumps there.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Protocol

from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_SETTLE_SECONDS = 0.01
_STEP_SECONDS = 0.001
"""Between the steps of a visit that goes on: time passes even where it is virtual."""
_RETRY_SECONDS = 1.0
_RETRY_LIMIT = 60.0

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
    """The visits that controllers have to make over a store."""

    def __init__(self, store: Store, controllers: Iterable[Controller]) -> None:
        self._store = store
        self._due: list[tuple[float, int, Controller, Key]] = []
        self._planned: dict[tuple[int, Key], float] = {}
        self._failures: dict[tuple[int, Key], int] = {}
        self._order = itertools.count()
        self._subscriptions: list[tuple[str, Callable[[Change], None]]] = []
        self.on_planned: Callable[[float], None] = lambda _: None
        """Told of a visit that is due before all others."""
        for controller in controllers:
            for storage, keys_of in controller.sources().items():
                self._follow(controller, storage, keys_of)

    def _follow(self, controller: Controller, storage: str, keys_of: KeysOf) -> None:
        def tell(change: Change) -> None:
            for key in keys_of(change):
                self._plan(controller, key, _SETTLE_SECONDS)

        self._subscriptions.append((storage, tell))
        if storage == CUSTOM:
            self._store.follow_custom(tell)
            followed = list(self._store.custom_collections())
        else:
            followed = [self._store.collection(storage)]
            followed[0].subscribers.append(tell)
        for collection in followed:
            for record in list(collection.objects.values()):
                tell(Change("ADDED", record, None))

    def _plan(self, controller: Controller, key: Key, seconds: float) -> None:
        at = self._store.clock.now() + seconds
        identity = (id(controller), key)
        if self._planned.get(identity, float("inf")) <= at:
            return
        self._planned[identity] = at
        entry = (at, next(self._order), controller, key)
        heapq.heappush(self._due, entry)
        if self._due[0] is entry:
            self.on_planned(at)

    def next_due(self) -> float | None:
        """When the next visit is due; None if there is none."""
        return self._due[0][0] if self._due else None

    @property
    def has_plans(self) -> bool:
        """Whether a visit will be made; what was planned for later may have been made earlier, and is due no more."""
        return bool(self._planned)

    def visit_next(self) -> None:
        """Makes the visit that is due first."""
        at, _, controller, key = heapq.heappop(self._due)
        identity = (id(controller), key)
        if self._planned.get(identity) == at:
            del self._planned[identity]
            again = self._visit(controller, key, identity)
            if again is not None:
                self._plan(controller, key, max(again, _STEP_SECONDS))

    def _visit(self, controller: Controller, key: Key, identity: tuple[int, Key]) -> float | None:
        try:
            again = controller.visit(key)
        except ApiError as error:
            log.info("Trying again", v=2, err=error.message, controller=type(controller).__name__, object="/".join(key))
        except Exception as error:
            log.unexpected("Controller failed", err=error, controller=type(controller).__name__, object="/".join(key))
        else:
            self._failures.pop(identity, None)
            return again
        failures = self._failures[identity] = self._failures.get(identity, 0) + 1
        return min(_RETRY_LIMIT, _RETRY_SECONDS * 2.0 ** min(failures - 1, 10))

    def close(self) -> None:
        """Stops following changes."""
        for storage, tell in self._subscriptions:
            if storage == CUSTOM:
                self._store.unfollow_custom(tell)
            else:
                self._store.collection(storage).subscribers.remove(tell)
        self._subscriptions.clear()
        self._due.clear()


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
