"""Listens: TLS, connections, and the sweep that ends those that take too long.

Connections are accepted one in a turn of the event loop, so that a crowd at the door does not keep others from being
served. One too many is closed before anything is spent on it, a TLS handshake least of all.
"""

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import Callable
from typing import Any

from kubestow.server.http.connection import Application, Connection
from kubestow.server.http.limits import Limits
from kubestow.server.http.receiving import COMMON_HEADERS
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_EXHAUSTED_SECONDS = 1.0
_TOLD_SECONDS = 60.0


class Server:
    """Accepts connections for an application."""

    def __init__(
        self,
        application: Application,
        limits: Limits,
        *,
        kept_headers: Callable[[bytes], bool] = COMMON_HEADERS.__contains__,
    ) -> None:
        self._application = application
        self._limits = limits
        self._keeps = kept_headers
        self._connections: set[Connection] = set()
        self._arriving: set[asyncio.Task[Any]] = set()
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._told_at = -_TOLD_SECONDS

    def start(self, listener: socket.socket, tls: ssl.SSLContext | None) -> int:
        """Accepts what comes to the socket, without TLS if there is no context; returns the port."""
        self._listener = listener
        self._accepting = asyncio.create_task(self._accept(self._listener, tls))
        self._sweep()
        chosen: int = self._listener.getsockname()[1]
        return chosen

    async def _accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        most = min(self._limits.connections, _most_files() * 3 // 4)
        handshake = None if tls is None else self._limits.handshake_seconds
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                self._tell("New connections cannot be accepted", err=error)
                await asyncio.sleep(_EXHAUSTED_SECONDS if error.errno in _EXHAUSTED else 0)
                continue
            if len(self._connections) + len(self._arriving) < most:
                arriving = loop.connect_accepted_socket(self._meet, accepted, ssl=tls, ssl_handshake_timeout=handshake)
                task = loop.create_task(arriving)
                self._arriving.add(task)
                task.add_done_callback(self._arrived)
            else:
                accepted.close()
                self._tell("New connections are closed: the limit is reached", limit=most)
            await asyncio.sleep(0)

    def _meet(self) -> Connection:
        return Connection(self._application, self._limits, self._connections, self._keeps)

    def _arrived(self, task: asyncio.Task[Any]) -> None:
        self._arriving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("A connection failed before its first request", v=4, err=error)

    def _tell(self, message: str, **values: Any) -> None:
        """Warns, but not all the time."""
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= _TOLD_SECONDS:
            self._told_at = now
            log.warning(message, **values)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._connections):
            connection.sweep(now)
        self._sweeper = loop.call_later(self._limits.sweep_seconds, self._sweep)

    async def stop(self) -> None:
        """Stops listening and closes all connections."""
        if self._listener is None or self._accepting is None or self._sweeper is None:
            return
        self._sweeper.cancel()
        begun = [self._accepting, *self._arriving]
        for task in begun:
            task.cancel()
        await asyncio.wait(begun)
        self._listener.close()
        for connection in list(self._connections):
            connection.close()
        for _ in range(100):
            if not self._connections:
                break
            await asyncio.sleep(0.005)
        for connection in list(self._connections):
            connection.abort()


def _most_files() -> int:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return files if files != resource.RLIM_INFINITY else 2**31
