"""Keep-alive connections to one server, and how many requests may be under way at a time.

The most recently used connection is taken first, so that those not needed fall idle and are closed. A connection is
also retired by age: new ones see rotated certificates and whichever API server a load balancer now prefers.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from kubestow.api.failures import TimedOutError
from kubestow.client.connection import Connection, Response

IDLE_SECONDS = 90.0
AGE_SECONDS = 600.0
LEISURE_SECONDS = 10.0
"""For so long, requests that let others go first get a turn only when nobody else wants it."""
_LEISURELY_TURNS = 8
"""After that one turn in so many is theirs."""

Dial = Callable[[float], Awaitable[Connection]]
"""Opens a connection before a deadline (loop time) or raises ConnectError."""


class _Request(msgspec.Struct, eq=False):
    """A request that waits for room, or is under way."""

    message: Sequence[bytes]
    deadline: float
    answer: asyncio.Future[Response]
    has_room: bool = False
    connection: Connection | None = None
    """On which it was sent."""

    __repr__ = object.__repr__  # the message holds credentials


_YOUR_TURN = Response(0, b"", b"")
"""What a request gets in place of an answer if it has room, but nobody left a connection."""


class Pool:
    """Hands out connections for requests (at most `limit` at a time) and for streams (not counted)."""

    def __init__(self, dial: Dial, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        if limit < 1:
            raise ValueError(f"a pool needs room for at least one request, got {limit}")
        self._dial = dial
        self._loop = loop
        self._room = limit
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._queue: deque[_Request] = deque()
        self._leisurely: deque[_Request] = deque()
        self._at_leisure_since = 0.0
        self._turns = 0
        self._impatient: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None

    def _look_at(self, deadline: float) -> None:
        """One timer for all who wait: it goes off at the earliest deadline."""
        if self._impatient is not None:
            if self._impatient.when() <= deadline:
                return
            self._impatient.cancel()
        self._impatient = self._loop.call_at(deadline, self._turn_away_the_late)

    def _turn_away_the_late(self) -> None:
        self._impatient, now = None, self._loop.time()
        for waiting in (*self._queue, *self._leisurely):
            if waiting.deadline <= now and not waiting.answer.done():
                waiting.answer.set_exception(TimedOutError("too many requests are under way: no turn came in time"))
        self._queue = deque(waiting for waiting in self._queue if not waiting.answer.done())
        self._leisurely = deque(waiting for waiting in self._leisurely if not waiting.answer.done())
        if self._queue or self._leisurely:
            self._look_at(min(waiting.deadline for waiting in (*self._queue, *self._leisurely)))

    def take_idle(self) -> Connection | None:
        """A connection for one request or stream, if one is idle; pair with `put_back`."""
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and self._loop.time() - connection.opened_at <= AGE_SECONDS:
                self._busy.add(connection)
                return connection
            connection.close()
        return None

    async def dial(self, deadline: float) -> Connection:
        """A new connection for one request or stream; pair with `put_back`."""
        connection = await self._dial(deadline)
        self._busy.add(connection)
        return connection

    def put_back(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if not connection.reusable:
            # The server may take its time to close it, and nobody else would.
            connection.close()
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(IDLE_SECONDS, self._close_stale)

    async def exchange(self, message: Sequence[bytes], deadline: float, *, leisurely: bool = False) -> Response:
        """Send a request when there is room for it, and return the answer; raises TransportError.

        A leisurely one lets others go first, for LEISURE_SECONDS always and then but for one turn in eight.
        """
        request = _Request(message, deadline, self._loop.create_future())
        try:
            if self._room > 0:
                self._room -= 1
                self._let_go(request, self.take_idle())
            else:
                self._queue_up(request, leisurely)
            response = await request.answer
            if response is _YOUR_TURN:
                connection = request.connection = await self.dial(deadline)
                response = await connection.exchange(message, deadline)
            return response
        except asyncio.CancelledError:
            if request.connection is not None:
                request.connection.close()
            raise
        finally:
            # One that was cancelled may have got its turn in the same moment.
            if request.has_room:
                self._leave(request.connection)

    def _queue_up(self, request: _Request, leisurely: bool) -> None:
        if leisurely and not self._leisurely:
            self._at_leisure_since = self._loop.time()
        (self._leisurely if leisurely else self._queue).append(request)
        self._look_at(request.deadline)

    def _let_go(self, request: _Request, connection: Connection | None) -> None:
        request.has_room = True
        request.connection = connection
        if connection is None:
            request.answer.set_result(_YOUR_TURN)
        else:
            connection.exchange(request.message, request.deadline, request.answer)

    def _leave(self, connection: Connection | None) -> None:
        """A request has ended; the next one goes out at once, without its sender being woken for that."""
        while (request := self._next()) is not None:
            if request.answer.done():
                continue
            oldest = self._loop.time() - AGE_SECONDS
            if connection is None or not connection.reusable or connection.opened_at < oldest:
                if connection is not None:
                    self.put_back(connection)
                connection = self.take_idle()
            self._let_go(request, connection)
            return
        self._room += 1
        if connection is not None:
            self.put_back(connection)

    def _next(self) -> _Request | None:
        if self._leisurely and (not self._queue or self._is_turn_of_leisurely()):
            return self._leisurely.popleft()
        return self._queue.popleft() if self._queue else None

    def _is_turn_of_leisurely(self) -> bool:
        self._turns += 1
        is_turn = self._turns % _LEISURELY_TURNS == 0
        return is_turn and self._loop.time() - self._at_leisure_since >= LEISURE_SECONDS

    def close_idle(self) -> None:
        """Drop what is not in use, e.g. because it was opened with a certificate that was replaced."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def close(self) -> None:
        """Drop everything; requests under way end with ConnectionLostError."""
        for timer in (self._sweep, self._impatient):
            if timer is not None:
                timer.cancel()
        self._sweep = self._impatient = None
        self.close_idle()
        for connection in list(self._busy):
            connection.close()

    def _close_stale(self) -> None:
        self._sweep = None
        limit = self._loop.time() - IDLE_SECONDS
        kept = []
        for connection in self._idle:
            if connection.reusable and connection.idle_since > limit:
                kept.append(connection)
            else:
                connection.close()
        self._idle = kept
        if kept:
            self._sweep = self._loop.call_later(IDLE_SECONDS, self._close_stale)
