"""From responses and streams to bytes, no faster than the client takes them.

A slice is handed to the transport in each turn of the event loop, and none while the transport says that it has enough.
The rest waits here, where its size is known: a TLS transport does not tell how much lies in the socket below it.
"""

import asyncio
from collections import deque
from collections.abc import Callable

SLICE = 128 * 1024
"""How much is handed over at once."""


class Sender:
    """Sends bytes to one client, in order; calls `on_clear` when it had to wait and all is handed over."""

    def __init__(self, transport: asyncio.Transport, on_clear: Callable[[], None]) -> None:
        self._transport = transport
        self._on_clear = on_clear
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._handed_over = 0
        self._paused = False
        self._turn: asyncio.Handle | None = None
        self.clear = True
        """Whether all is handed over and the transport takes more."""

    @property
    def unsent(self) -> int:
        """Bytes the client has not taken yet, as far as can be seen from here."""
        return self._waiting_bytes + self._transport.get_write_buffer_size()

    @property
    def taken(self) -> int:
        """Bytes the client has taken so far."""
        return self._handed_over - self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Sends bytes, now or as soon as the client has taken those before."""
        if self.clear and len(data) <= SLICE:
            self._handed_over += len(data)
            self._transport.write(data)
            return
        self.clear = False
        self._waiting.append(memoryview(data))
        self._waiting_bytes += len(data)
        if self._turn is None and not self._paused:
            self._hand_over()

    def _hand_over(self) -> None:
        self._turn = None
        parts: list[memoryview] = []
        room = SLICE
        while self._waiting and room > 0:
            part = self._waiting.popleft()
            if len(part) > room:
                self._waiting.appendleft(part[room:])
                part = part[:room]
            parts.append(part)
            room -= len(part)
        self._waiting_bytes -= SLICE - room
        self._handed_over += SLICE - room
        self._transport.writelines(parts)
        self._go_on()

    def _go_on(self) -> None:
        if self._paused:
            return
        if self._waiting:
            self._turn = self._loop.call_soon(self._hand_over)
        else:
            self.clear = True
            self._on_clear()

    def pause(self) -> None:
        """The transport has enough."""
        self._paused = True
        self.clear = False
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def resume(self) -> None:
        """The transport takes more."""
        self._paused = False
        self._go_on()

    def close(self) -> None:
        """Nothing more is sent."""
        self._waiting.clear()
        if self._turn is not None:
            self._turn.cancel()
