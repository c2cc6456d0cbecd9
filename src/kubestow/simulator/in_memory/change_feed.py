"""What a scheduler hears of a cluster: every change, in order, some time after it happened; as from informers.

While the connection is down nothing is heard. When it is back, everything is listed again, and only what became of
each object in the end is told: an object that was replaced by another of its name is told as deleted and added.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol


class Listener(Protocol):
    """Who is told of changes."""

    def added(self, obj: Any) -> None: ...

    def updated(self, old: Any, new: Any) -> None: ...

    def deleted(self, obj: Any) -> None: ...


_NANO = 10**9

ObjectId = tuple[type, str]


class ChangeFeed:
    """Tells one listener of the changes of all objects."""

    def __init__(self, loop: asyncio.AbstractEventLoop, objects: Mapping[ObjectId, Any], delay: float = 0.0) -> None:
        """`objects` are all that there are at any time."""
        self.delay = delay
        """Seconds from a change to its being told."""
        self.told: dict[ObjectId, Any] = {}
        """What the listener knows."""
        self._loop = loop
        self._listener: Listener | None = None
        self._truth = objects
        self._on_the_way: deque[tuple[float, ObjectId, Any]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._connected = True

    def listen(self, listener: Listener) -> None:
        """Begin to tell; what exists already comes first."""
        self._listener = listener
        self._list_again()

    def changed(self, which: ObjectId, new: Any) -> None:
        """An object is now this; None: gone."""
        if self._connected and self._listener is not None:
            self._on_the_way.append((self._due(), which, new))
            if self._timer is None:
                self._set_timer()

    @property
    def is_busy(self) -> bool:
        """Whether changes are on their way."""
        return bool(self._on_the_way) or not self._connected

    def disconnect(self) -> None:
        """Nothing is heard from now on; what was on its way is lost."""
        self._connected = False
        self._on_the_way.clear()

    def reconnect(self) -> None:
        """List everything again."""
        self._connected = True
        self._list_again()

    def _list_again(self) -> None:
        now = self._due()
        self._on_the_way.clear()
        # Deletions first: what they free is seen before what may need it.
        self._on_the_way.extend((now, which, None) for which in self.told if which not in self._truth)
        self._on_the_way.extend((now, which, obj) for which, obj in self._truth.items())
        self._set_timer()

    def _due(self) -> float:
        # In whole nanoseconds: the timer of a virtual loop would ring before a moment between two of them.
        return round((self._loop.time() + self.delay) * _NANO) / _NANO

    def _set_timer(self) -> None:
        if self._timer is None and self._on_the_way:
            self._timer = self._loop.call_at(self._on_the_way[0][0], self._tell_due)

    def _tell_due(self) -> None:
        self._timer, now = None, self._loop.time()
        while self._on_the_way and self._on_the_way[0][0] <= now:
            _, which, new = self._on_the_way.popleft()
            self._tell(which, new)
        self._set_timer()

    def _tell(self, which: ObjectId, new: Any) -> None:
        assert self._listener is not None
        old = self.told.get(which)
        if new is None:
            if self.told.pop(which, None) is not None:
                self._listener.deleted(old)
            return
        self.told[which] = new
        if old is None:
            self._listener.added(new)
        elif old.metadata.uid != new.metadata.uid:
            self._listener.deleted(old)
            self._listener.added(new)
        elif old.metadata.resourceVersion != new.metadata.resourceVersion:
            self._listener.updated(old, new)
