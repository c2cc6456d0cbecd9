"""Keep-alive connections to one server, and how many requests may be under way at a time.

The most recently used connection is taken first, so that those not needed fall idle and are closed. A connection is
also retired by age: new ones see rotated certificates and whichever API server a load balancer now prefers.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from kubestow.client.connection import Connection, Response
from kubestow.model.failures import TimedOutError

IDLE_SECONDS = 90.0
AGE_SECONDS = 600.0

Dial = Callable[[float], Awaitable[Connection]]
"""Opens a connection before a deadline (loop time) or raises ConnectError."""


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
        self._queue: deque[tuple[asyncio.Future[None], float]] = deque()
        self._impatient: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None

    def enter_at_once(self) -> bool:
        """Whether there is room for one more request, which then has it; pair with `leave`."""
        if self._room > 0:
            self._room -= 1
            return True
        return False

    async def wait_to_enter(self, deadline: float) -> None:
        """Wait for the room of a request that ends; pair with `leave`."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._queue.append((turn, deadline))
        self._look_at(deadline)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                # Its turn had come in the same moment.
                self.leave()
            raise

    def leave(self) -> None:
        while self._queue:
            turn, _ = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._room += 1

    def _look_at(self, deadline: float) -> None:
        """One timer for all who wait: it goes off at the earliest deadline."""
        if self._impatient is not None:
            if self._impatient.when() <= deadline:
                return
            self._impatient.cancel()
        self._impatient = self._loop.call_at(deadline, self._turn_away_the_late)

    def _turn_away_the_late(self) -> None:
        self._impatient, now = None, self._loop.time()
        for turn, deadline in self._queue:
            if deadline <= now and not turn.done():
                turn.set_exception(TimedOutError("too many requests are under way: no turn came in time"))
        self._queue = deque((turn, deadline) for turn, deadline in self._queue if not turn.done())
        if self._queue:
            self._look_at(min(deadline for _, deadline in self._queue))

    def take_idle(self) -> Connection | None:
        """A connection for one request or stream, if one is idle; pair with `put_back`."""
        oldest = self._loop.time() - AGE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and connection.opened_at > oldest:
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
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(IDLE_SECONDS, self._close_stale)

    async def exchange(self, message: Sequence[bytes], deadline: float) -> Response:
        """Send a request when there is room for it, and return the answer; raises TransportError."""
        if not self.enter_at_once():
            await self.wait_to_enter(deadline)
        connection = None
        try:
            connection = self.take_idle() or await self.dial(deadline)
            return await connection.exchange(message, deadline)
        except asyncio.CancelledError:
            if connection is not None:
                connection.close()
            raise
        finally:
            if connection is not None:
                self.put_back(connection)
            self.leave()

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
