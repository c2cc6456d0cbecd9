"""A server on loopback and clients that send and receive bytes, all in one event loop."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from kubestow.server.http.connection import Application, Connection
from kubestow.server.http.limits import Limits
from kubestow.server.http.listening import listen
from kubestow.server.http.messages import Request, Response
from kubestow.server.http.server import Server
from support.client.virtualtime import VirtualTimeLoop

TEXT = b"text/plain"
PATIENT = Limits(
    handshake_seconds=600.0,
    head_seconds=600.0,
    body_seconds=600.0,
    answer_seconds=600.0,
    taking_seconds=600.0,
    closing_seconds=600.0,
)
"""Limits for tests in real time, which a slow machine must not exceed."""
Run = Callable[[Coroutine[Any, Any, None]], None]
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def post(body: bytes, **headers: str) -> bytes:
    """Return a request with a body, with other headers than a Content-Length if any are given."""
    named = headers or {"Content_Length": str(len(body))}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"POST / HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode() + body


async def until(holds: Callable[[], object], every: float = 0.01) -> None:
    """Wait until a condition holds."""
    while True:
        if holds():
            return
        await asyncio.sleep(every)


class Echo:
    """Answers each request with its path and body, at once or when `answer` is called; records all."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.at_once = at_once
        self.requests: list[Request] = []
        self.connections: list[Connection] = []
        self._unanswered: list[tuple[Connection, Response]] = []

    def __call__(self, request: Request, connection: Connection) -> None:
        self.requests.append(request)
        self.connections.append(connection)
        self._unanswered.append((connection, Response(200, request.raw_path + request.body, TEXT)))
        if self.at_once:
            self.answer()

    def answer(self) -> None:
        """Answer all pending requests."""
        unanswered, self._unanswered = self._unanswered, []
        for connection, response in unanswered:
            connection.respond(response)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes = b""


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def send_all(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self) -> Answer:
        """Return the next response without its body."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        return Answer(int(head[0].split()[1]), headers)

    async def answer(self) -> Answer:
        """Return the next response."""
        head = await self.head()
        return head._replace(body=await self.exactly(int(head.headers.get("content-length", "0"))))

    async def ask(self, data: bytes) -> Answer:
        self.send(data)
        return await self.answer()

    async def read(self, size: int) -> bytes:
        return await self._reader.read(size)

    async def exactly(self, size: int) -> bytes:
        return await self._reader.readexactly(size)

    async def rest(self) -> bytes:
        """Return everything received until the server closes the connection."""
        came = b""
        try:
            while data := await self._reader.read(2**16):
                came += data
        except ConnectionError:
            pass
        return came

    def leave(self) -> None:
        self._writer.transport.abort()


class Served:
    """A running server."""

    def __init__(self, server: Server, port: int, tls: ssl.SSLContext | None) -> None:
        self.server = server
        self.port = port
        self._tls = tls
        self._clients: list[Client] = []

    @property
    def connections(self) -> set[Connection]:
        """The open connections."""
        return self.server._connections

    async def client(self, receive_buffer: int = 0) -> Client:
        """Open a connection; with a small buffer the system accepts little that the client does not read."""
        sock = socket.socket()
        sock.setblocking(False)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        name = None if self._tls is None else "localhost"
        streams = await asyncio.open_connection(sock=sock, ssl=self._tls, server_hostname=name, limit=2**12)
        self._clients.append(Client(*streams))
        return self._clients[-1]

    def leave(self) -> None:
        for client in self._clients:
            client.leave()


class Tls(NamedTuple):
    """Both sides of TLS."""

    server: ssl.SSLContext
    client: ssl.SSLContext


@asynccontextmanager
async def serving(
    application: Application, limits: Limits | None = None, tls: Tls | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[Served]:
    """Run a server until the end of the block; in virtual time with the default limits."""
    virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    server = Server(application, limits or (Limits() if virtual else PATIENT))
    port = server.start(listen(address, 0, "--port"), tls.server if tls else None)
    served = Served(server, port, tls.client if tls else None)
    try:
        async with asyncio.timeout(2000.0 if virtual else 600.0):
            yield served
    finally:
        served.leave()
        await server.stop()
