"""Delivers the changes of a cluster to a scheduler, as informers do: every change, in order, after a delay.

While disconnected, nothing is delivered. After a reconnect everything is listed again, and only the latest state of
each object is delivered: an object replaced by another one of the same name as a deletion and an addition.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Listener(Protocol):
    """Receives the changes."""

    def added(self, obj: Any) -> None: ...

    def updated(self, old: Any, new: Any) -> None: ...

    def deleted(self, obj: Any) -> None: ...

    def access_changed(self, kind: type, problem: str) -> None: ...


class Access(NamedTuple):
    """A change of access to a kind, in place of an object."""

    problem: str
    """Why its objects cannot be read; empty if they can."""


_NANO = 10**9

ObjectId = tuple[type, str]


class ChangeFeed:
    """Delivers the changes of all objects to one listener."""

    def __init__(self, loop: asyncio.AbstractEventLoop, objects: Mapping[ObjectId, Any], delay: float = 0.0) -> None:
        """`objects` are the current objects; read when listing."""
        self.delay = delay
        """Seconds from a change to its delivery."""
        self.delivered: dict[ObjectId, Any] = {}
        """The objects that the listener currently has."""
        self._loop = loop
        self._listener: Listener | None = None
        self._objects = objects
        self._pending: deque[tuple[float, ObjectId, Any]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._connected = True

    def listen(self, listener: Listener) -> None:
        """Deliver all existing objects, and all changes from now on."""
        self._listener = listener
        self._list_again()

    def changed(self, object_id: ObjectId, new: Any) -> None:
        """Report a new or changed object; `new` is None for a deletion."""
        if self._connected and self._listener is not None:
            self._pending.append((self._due(), object_id, new))
            if self._timer is None:
                self._set_timer()

    @property
    def is_busy(self) -> bool:
        """Whether changes are yet to be delivered."""
        return bool(self._pending) or not self._connected

    def disconnect(self) -> None:
        """Stop deliveries; undelivered changes are lost."""
        self._connected = False
        self._pending.clear()

    def reconnect(self) -> None:
        """Resume deliveries by listing all objects."""
        self._connected = True
        self._list_again()

    def _list_again(self) -> None:
        now = self._due()
        self._pending.clear()
        # Deletions first: the resources they free are known before new demand arrives.
        self._pending.extend((now, object_id, None) for object_id in self.delivered if object_id not in self._objects)
        self._pending.extend((now, object_id, obj) for object_id, obj in self._objects.items())
        self._set_timer()

    def _due(self) -> float:
        # Whole nanoseconds: otherwise a timer of a virtual loop between two of them would fire too early.
        return round((self._loop.time() + self.delay) * _NANO) / _NANO

    def _set_timer(self) -> None:
        if self._timer is None and self._pending:
            self._timer = self._loop.call_at(self._pending[0][0], self._deliver_due)

    def _deliver_due(self) -> None:
        self._timer, now = None, self._loop.time()
        while self._pending and self._pending[0][0] <= now:
            _, object_id, new = self._pending.popleft()
            self._deliver(object_id, new)
        self._set_timer()

    def _deliver(self, object_id: ObjectId, new: Any) -> None:
        assert self._listener is not None
        if isinstance(new, Access):
            self._listener.access_changed(object_id[0], new.problem)
            return
        old = self.delivered.get(object_id)
        if new is None:
            if self.delivered.pop(object_id, None) is not None:
                self._listener.deleted(old)
            return
        self.delivered[object_id] = new
        if old is None:
            self._listener.added(new)
        elif old.metadata.uid != new.metadata.uid:
            self._listener.deleted(old)
            self._listener.added(new)
        elif old.metadata.resourceVersion != new.metadata.resourceVersion:
            self._listener.updated(old, new)
