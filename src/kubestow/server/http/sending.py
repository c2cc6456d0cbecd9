"""Sends responses and streams no faster than the client receives them.

One slice is passed to the transport per turn of the event loop, and none while the transport has paused writing. The
rest is queued here, where its size is known: a TLS transport does not report the bytes in the buffer of its socket.
"""

import asyncio
from collections import deque
from collections.abc import Callable

SLICE = 128 * 1024
"""Maximum number of bytes passed to the transport at once."""


class Sender:
    """Sends bytes to one client, in order; calls `on_clear` when queued bytes have been passed to the transport."""

    def __init__(self, transport: asyncio.Transport, on_clear: Callable[[], None]) -> None:
        self._transport = transport
        self._on_clear = on_clear
        self._loop = asyncio.get_running_loop()
        self._pending: deque[memoryview] = deque()
        self._pending_bytes = 0
        self._handed_over = 0
        self._paused = False
        self._turn: asyncio.Handle | None = None
        self.clear = True
        """Whether the queue is empty and the transport accepts data."""

    @property
    def unsent(self) -> int:
        """Number of bytes not sent to the client yet, as far as the transport reports them."""
        return self._pending_bytes + self._transport.get_write_buffer_size()

    @property
    def sent(self) -> int:
        """Number of bytes sent to the client so far."""
        return self._handed_over - self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Send bytes, now or after the queued ones."""
        if self.clear and len(data) <= SLICE:
            self._handed_over += len(data)
            self._transport.write(data)
            return
        self.clear = False
        self._pending.append(memoryview(data))
        self._pending_bytes += len(data)
        if self._turn is None and not self._paused:
            self._send_slice()

    def _send_slice(self) -> None:
        self._turn = None
        parts: list[memoryview] = []
        free = SLICE
        while self._pending and free > 0:
            part = self._pending.popleft()
            if len(part) > free:
                self._pending.appendleft(part[free:])
                part = part[:free]
            parts.append(part)
            free -= len(part)
        self._pending_bytes -= SLICE - free
        self._handed_over += SLICE - free
        self._transport.writelines(parts)
        self._continue()

    def _continue(self) -> None:
        if self._paused:
            return
        if self._pending:
            self._turn = self._loop.call_soon(self._send_slice)
        else:
            self.clear = True
            self._on_clear()

    def pause(self) -> None:
        """Stop sending: the buffer of the transport is full."""
        self._paused = True
        self.clear = False
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def resume(self) -> None:
        """Continue sending."""
        self._paused = False
        self._continue()

    def close(self) -> None:
        """Discard the queue."""
        self._pending.clear()
        if self._turn is not None:
            self._turn.cancel()
