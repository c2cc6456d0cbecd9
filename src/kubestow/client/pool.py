"""A pool of keep-alive connections to one server, which limits the number of concurrent requests.

The most recently used connection is taken first, so that surplus connections become idle and are closed. Connections
are also closed by age: new ones use rotated certificates and the API server that a load balancer now prefers.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from kubestow.api.failures import TimedOutError
from kubestow.client.connection import Connection, Response

IDLE_SECONDS = 90.0
AGE_SECONDS = 600.0
LOW_PRIORITY_SECONDS = 10.0
"""Time for which low-priority requests get a slot only if no other request waits."""
_LOW_PRIORITY_INTERVAL = 8
"""After that time, every Nth slot is assigned to a low-priority request."""

Dial = Callable[[float], Awaitable[Connection]]
"""Opens a connection before a deadline (loop time) or raises ConnectError."""


class _Request(msgspec.Struct, eq=False):
    """A request that waits for a slot or is in progress."""

    message: Sequence[bytes]
    deadline: float
    answer: asyncio.Future[Response]
    has_slot: bool = False
    connection: Connection | None = None
    """The connection on which it was sent."""

    __repr__ = object.__repr__  # the message contains credentials


_MUST_DIAL = Response(0, b"", b"")
"""Result of a waiting request that has a slot but no idle connection: it must open one."""


class Pool:
    """Provides connections for requests (`limit` at the same time) and for streams (not limited)."""

    def __init__(self, dial: Dial, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        if limit < 1:
            raise ValueError(f"the limit of a pool must be at least 1, got {limit}")
        self._dial = dial
        self._loop = loop
        self._free_slots = limit
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._queue: deque[_Request] = deque()
        self._low_priority: deque[_Request] = deque()
        self._low_priority_since = 0.0
        self._turns = 0
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    def _set_timer(self, deadline: float) -> None:
        """Ensure that the timer of all waiting requests fires by a deadline."""
        if self._expiry_timer is not None:
            if self._expiry_timer.when() <= deadline:
                return
            self._expiry_timer.cancel()
        self._expiry_timer = self._loop.call_at(deadline, self._expire_waiting)

    def _expire_waiting(self) -> None:
        self._expiry_timer, now = None, self._loop.time()
        for waiting in (*self._queue, *self._low_priority):
            if waiting.deadline <= now and not waiting.answer.done():
                waiting.answer.set_exception(TimedOutError("too many concurrent requests: no slot became free in time"))
        self._queue = deque(waiting for waiting in self._queue if not waiting.answer.done())
        self._low_priority = deque(waiting for waiting in self._low_priority if not waiting.answer.done())
        if self._queue or self._low_priority:
            self._set_timer(min(waiting.deadline for waiting in (*self._queue, *self._low_priority)))

    def take_idle(self) -> Connection | None:
        """Return an idle connection for one request or stream, if there is one; return it with `release`."""
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and self._loop.time() - connection.opened_at <= AGE_SECONDS:
                self._busy.add(connection)
                return connection
            connection.close()
        return None

    async def dial(self, deadline: float) -> Connection:
        """Open a new connection for one request or stream; return it with `release`."""
        connection = await self._dial(deadline)
        self._busy.add(connection)
        return connection

    def release(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if not connection.reusable:
            # Otherwise it would stay open until the server closes it.
            connection.close()
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._idle_timer is None:
            self._idle_timer = self._loop.call_later(IDLE_SECONDS, self._close_expired)

    async def exchange(self, message: Sequence[bytes], deadline: float, *, low_priority: bool = False) -> Response:
        """Send a request once it has a slot, and return the response. Raises TransportError.

        With `low_priority`, other requests are sent first: always for LOW_PRIORITY_SECONDS, then seven of eight.
        """
        request = _Request(message, deadline, self._loop.create_future())
        try:
            if self._free_slots > 0:
                self._free_slots -= 1
                self._start(request, self.take_idle())
            else:
                self._enqueue(request, low_priority)
            response = await request.answer
            if response is _MUST_DIAL:
                connection = request.connection = await self.dial(deadline)
                response = await connection.exchange(message, deadline)
            return response
        except asyncio.CancelledError:
            if request.connection is not None:
                request.connection.close()
            raise
        finally:
            # A request that was cancelled may have received its slot at the same moment.
            if request.has_slot:
                self._release_slot(request.connection)

    def _enqueue(self, request: _Request, low_priority: bool) -> None:
        if low_priority and not self._low_priority:
            self._low_priority_since = self._loop.time()
        (self._low_priority if low_priority else self._queue).append(request)
        self._set_timer(request.deadline)

    def _start(self, request: _Request, connection: Connection | None) -> None:
        request.has_slot = True
        request.connection = connection
        if connection is None:
            request.answer.set_result(_MUST_DIAL)
        else:
            connection.exchange(request.message, request.deadline, request.answer)

    def _release_slot(self, connection: Connection | None) -> None:
        """End a request and send the next one at once, without waiting for its task to wake up."""
        while (request := self._next()) is not None:
            if request.answer.done():
                continue
            oldest = self._loop.time() - AGE_SECONDS
            if connection is None or not connection.reusable or connection.opened_at < oldest:
                if connection is not None:
                    self.release(connection)
                connection = self.take_idle()
            self._start(request, connection)
            return
        self._free_slots += 1
        if connection is not None:
            self.release(connection)

    def _next(self) -> _Request | None:
        if self._low_priority and (not self._queue or self._is_low_priority_turn()):
            return self._low_priority.popleft()
        return self._queue.popleft() if self._queue else None

    def _is_low_priority_turn(self) -> bool:
        self._turns += 1
        is_turn = self._turns % _LOW_PRIORITY_INTERVAL == 0
        return is_turn and self._loop.time() - self._low_priority_since >= LOW_PRIORITY_SECONDS

    def close_idle(self) -> None:
        """Close the idle connections, e.g. because their certificate was replaced."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def close(self) -> None:
        """Close all connections; requests in progress fail with ConnectionLostError."""
        for timer in (self._idle_timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()
        self._idle_timer = self._expiry_timer = None
        self.close_idle()
        for connection in list(self._busy):
            connection.close()

    def _close_expired(self) -> None:
        self._idle_timer = None
        limit = self._loop.time() - IDLE_SECONDS
        kept = []
        for connection in self._idle:
            if connection.reusable and connection.idle_since > limit:
                kept.append(connection)
            else:
                connection.close()
        self._idle = kept
        if kept:
            self._idle_timer = self._loop.call_later(IDLE_SECONDS, self._close_expired)
