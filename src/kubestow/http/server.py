"""Listens: TLS, connections, and the sweep that closes those that do nothing."""

import asyncio
import errno
import ssl
import time
from collections.abc import Callable

from kubestow.http.connection import COMMON_HEADERS, Application, Connection

_SWEEP_SECONDS = 15.0
_IDLE_SECONDS = 300.0


class ListenError(Exception):
    """The address cannot be listened on; the message says why and what to do."""


class Server:
    """Accepts connections for an application."""

    def __init__(
        self,
        application: Application,
        *,
        max_body: int,
        kept_headers: Callable[[bytes], bool] = COMMON_HEADERS.__contains__,
        port_flag: str = "--port",
    ) -> None:
        """`port_flag` is named when the port cannot be had."""
        self._application = application
        self._max_body = max_body
        self._keeps = kept_headers
        self._port_flag = port_flag
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(
        self,
        address: str,
        port: int,
        tls: ssl.SSLContext | None,
        *,
        share_address: bool | None = None,
        share_port: bool | None = None,
    ) -> int:
        """Listens, without TLS if there is no context; returns the port, chosen by the system if 0 was asked for."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._application, self._max_body, self._connections, self._keeps),
                address,
                port,
                ssl=tls,
                reuse_address=share_address,
                reuse_port=share_port,
                backlog=1024,
            )
        except OSError as error:
            raise ListenError(_explain(error, address, port, self._port_flag)) from error
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    def _sweep(self) -> None:
        too_old = time.monotonic() - _IDLE_SECONDS
        for connection in list(self._connections):
            if not connection.busy and connection.active_at < too_old:
                connection.close()
        self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    async def stop(self) -> None:
        """Stops listening and closes all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()
        for _ in range(100):
            if not self._connections:
                break
            await asyncio.sleep(0.005)
        for connection in list(self._connections):
            connection.abort()
        if self._server is not None:
            await self._server.wait_closed()


def _explain(error: OSError, address: str, port: int, flag: str) -> str:
    where = address or "all addresses"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {where} is in use; stop what listens there, or choose another with {flag}"
    if error.errno == errno.EACCES:
        return f"not allowed to listen on port {port}; choose one above 1023 with {flag}"
    return f"cannot listen on {where}:{port}: {error.strerror or error}"
