"""Opens connections to the API server: direct or through a proxy, plain or TLS, within a time limit."""

import asyncio
import math
import os
import socket
import ssl
from urllib.parse import urlsplit

import msgspec

from kubestow.api.failures import ConnectError, UntrustedError
from kubestow.client.connection import Connection
from kubestow.client.errors import CredentialsError
from kubestow.client.proxies import Handshake, Proxy
from kubestow.client.tls import ResumingContext, TlsContexts

CONNECT_SECONDS = 10.0
_TICKET_SECONDS = 0.05
"""Seconds for which further connections wait for the session ticket of the first one."""
_TICKET_CHECKS = 12
# The kernel detects a peer that disappeared without closing the connection after about a minute.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))


class Endpoint(msgspec.Struct, frozen=True):
    """The parts of a server URL; `prefix` is the path in front of every API path."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.scheme == "https" else 80
        return host if self.port == default else f"{host}:{self.port}"


def parse_server(url: str, source: str, named: str) -> Endpoint:
    """Parse a server URL; without a scheme it is http, as for kubectl. Raises CredentialsError if it is invalid."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise CredentialsError(source, named, f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise CredentialsError(source, named, f"{url!r} is not a server; write it as https://host:6443")
    return Endpoint(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), parts.path.rstrip("/"))


class Dialer:
    """Opens connections to one endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        tls: TlsContexts,
        loop: asyncio.AbstractEventLoop,
        *,
        server_name: str = "",
        proxy: Proxy | None = None,
        seconds: float = CONNECT_SECONDS,
        largest_answer: float = math.inf,
    ) -> None:
        self._endpoint = endpoint
        self._tls = tls
        self._loop = loop
        self._server_name = server_name or endpoint.host
        self._proxy = proxy
        self._seconds = seconds
        self._largest_answer = largest_answer
        self._context: ResumingContext | None = None
        """The context of the latest connection."""
        self._ticket_deadline = 0.0
        """Time until which further connections wait for the ticket that lets them resume its session."""
        self._polling = asyncio.Lock()
        """Held by the connection that polls for the ticket."""

    async def __call__(self, deadline: float) -> Connection:
        endpoint = self._endpoint
        context = self._tls.current() if endpoint.scheme == "https" else None
        try:
            async with asyncio.timeout_at(min(deadline, self._loop.time() + self._seconds)):
                if context is not None:
                    await self._wait_for_ticket(context)
                if self._proxy is None:
                    connection = await self._direct(context)
                else:
                    connection = await self._through(self._proxy, context)
        except TimeoutError:
            raise ConnectError(f"cannot connect to {self._route()}: no answer in time") from None
        except ssl.SSLCertVerificationError as error:
            what = f"certificate verify failed: {error.verify_message}"
            raise UntrustedError(f"cannot connect to {self._route()}: {what}") from error
        except OSError as error:
            raise ConnectError(f"cannot connect to {self._route()}: {_reason(error)}") from error
        return connection

    def _route(self) -> str:
        address = f"{self._endpoint.host}:{self._endpoint.port}"
        return address if self._proxy is None else f"{address} through the proxy {self._proxy.host}:{self._proxy.port}"

    async def _wait_for_ticket(self, context: ResumingContext) -> None:
        """Wait for the ticket of the first connection, so that the many others at the start resume its session."""
        if context is not self._context:
            self._context, self._ticket_deadline = context, self._loop.time() + _TICKET_SECONDS
            return
        async with self._polling:
            for _ in range(_TICKET_CHECKS):
                if self._loop.time() >= self._ticket_deadline or context.can_resume():
                    break
                await asyncio.sleep(_TICKET_SECONDS / _TICKET_CHECKS)

    def _new_connection(self) -> Connection:
        return Connection(self._loop, self._largest_answer)

    async def _direct(self, context: ssl.SSLContext | None) -> Connection:
        transport, connection = await self._loop.create_connection(
            self._new_connection,
            self._endpoint.host,
            self._endpoint.port,
            ssl=context,
            server_hostname=self._server_name if context is not None else None,
        )
        _keep_alive(transport)
        return connection

    async def _through(self, proxy: Proxy, context: ssl.SSLContext | None) -> Connection:
        outer = ssl.create_default_context() if proxy.scheme == "https" else None
        transport, handshake = await self._loop.create_connection(Handshake, proxy.host, proxy.port, ssl=outer)
        try:
            _keep_alive(transport)
            tunnel = await handshake.open_tunnel(proxy, self._endpoint.host, self._endpoint.port)
            connection = self._new_connection()
            if context is None:
                tunnel.set_protocol(connection)
                connection.connection_made(tunnel)
                return connection
            secured = await self._loop.start_tls(tunnel, connection, context, server_hostname=self._server_name)
            if secured is None:
                raise ConnectError("the connection through the proxy was lost during the TLS handshake")
            connection.connection_made(secured)
        except BaseException:
            transport.abort()
            raise
        return connection


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    sock = transport.get_extra_info("socket")
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        number = getattr(socket, option, None)
        if number is not None:
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


def _reason(error: OSError) -> str:
    """Return the message of an error without the error numbers and function names of Python and its libraries."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno).lower()
    return error.strerror or str(error)
