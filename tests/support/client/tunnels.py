"""A proxy with the parts of CONNECT and SOCKS5 that open tunnels."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import cast

CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
RELAYED = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


class _Relay(asyncio.Protocol):
    def __init__(self, other: asyncio.Transport) -> None:
        self._other = other

    def data_received(self, data: bytes) -> None:
        self._other.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._other.close()


class _Proxy(asyncio.Protocol):
    """Implements the parts of CONNECT and SOCKS5 that open tunnels."""

    def __init__(self, seen: list[bytes], target: int, verdict: bytes) -> None:
        self._seen = seen
        self._target = target
        self._verdict = verdict
        self._stage = 0
        self._out: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop have the methods of asyncio's but not its base classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._out is not None:
            self._out.write(data)
            return
        self._seen.append(data)
        if data.startswith(b"CONNECT"):
            self._open(self._verdict)
        elif self._stage == 0:
            self._stage = 1 if data[1] == 2 else 2
            self._transport.write(b"\x05\x02" if self._stage == 1 else b"\x05\x00")
        elif self._stage == 1:
            self._stage = 2
            self._transport.write(b"\x01\x00")
        else:
            self._open(self._verdict)

    def _open(self, verdict: bytes) -> None:
        async def connect() -> None:
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_connection(lambda: _Relay(self._transport), "127.0.0.1", self._target)
            self._out = transport
            self._transport.write(verdict)

        self._task = asyncio.ensure_future(connect())

    def connection_lost(self, exc: Exception | None) -> None:
        if self._out is not None:
            self._out.close()


@contextlib.asynccontextmanager
async def proxying(
    target: int, verdict: bytes, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Run a proxy on a free port; the second value is what it received before the tunnel was open."""
    seen: list[bytes] = []
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: _Proxy(seen, target, verdict), "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1], seen
    finally:
        listener.close()
        await asyncio.sleep(0.01)
