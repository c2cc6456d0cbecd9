"""The server: accepts connections, with TLS, and sweeps over them to end those that exceed a time limit.

One connection is accepted per turn of the event loop, so that many new connections do not block the existing ones. A
connection beyond the limit is closed at once, before its TLS handshake.
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
_WARNING_SECONDS = 60.0


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
        self._handshaking: set[asyncio.Task[Any]] = set()
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._warned_at = -_WARNING_SECONDS

    def start(self, listener: socket.socket, tls: ssl.SSLContext | None) -> int:
        """Start to accept connections, without TLS if there is no context; return the port."""
        self._listener = listener
        self._accepting = asyncio.create_task(self._accept(self._listener, tls))
        self._sweep()
        chosen: int = self._listener.getsockname()[1]
        return chosen

    async def _accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        limit = min(self._limits.connections, _max_files() * 3 // 4)
        handshake = None if tls is None else self._limits.handshake_seconds
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                self._warn("New connections cannot be accepted", err=error)
                await asyncio.sleep(_EXHAUSTED_SECONDS if error.errno in _EXHAUSTED else 0)
                continue
            if len(self._connections) + len(self._handshaking) < limit:
                connecting = loop.connect_accepted_socket(
                    self._new_connection, accepted, ssl=tls, ssl_handshake_timeout=handshake
                )
                task = loop.create_task(connecting)
                self._handshaking.add(task)
                task.add_done_callback(self._on_connected)
            else:
                accepted.close()
                self._warn("New connections are closed: the limit is reached", limit=limit)
            await asyncio.sleep(0)

    def _new_connection(self) -> Connection:
        return Connection(self._application, self._limits, self._connections, self._keeps)

    def _on_connected(self, task: asyncio.Task[Any]) -> None:
        self._handshaking.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("A connection failed before its first request", v=4, err=error)

    def _warn(self, message: str, **values: Any) -> None:
        """Log a warning, at most one per minute."""
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = now
            log.warning(message, **values)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._connections):
            connection.sweep(now)
        self._sweeper = loop.call_later(self._limits.sweep_seconds, self._sweep)

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._listener is None or self._accepting is None or self._sweeper is None:
            return
        self._sweeper.cancel()
        begun = [self._accepting, *self._handshaking]
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


def _max_files() -> int:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return files if files != resource.RLIM_INFINITY else 2**31
