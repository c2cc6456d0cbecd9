"""A scripted API server: the test defines the response to every request, including errors."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import httptools

from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient, Channel
from kubestow.client.ratelimit import TokenBucket
from kubestow.telemetry.metrics.client import ClientMetrics
from support.client.doubles import FixedClock


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Answer:
    """The server's side of one request."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.gone = asyncio.get_running_loop().create_future()

    def reply(self, status: int, body: Any = None, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self._transport.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n{lines}\r\n".encode() + data)

    def error(self, status: int, reason: str = "", message: str = "", **headers: str) -> None:
        self.reply(status, {"kind": "Status", "code": status, "reason": reason, "message": message}, **headers)

    def raw(self, data: bytes) -> None:
        self._transport.write(data)

    def begin_stream(self) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def event(self, kind: str, obj: Any) -> None:
        self.chunk(line(kind, obj))

    def bookmark(self, version: str, *, ends_initial: bool = False) -> None:
        annotations = {"k8s.io/initial-events-end": "true"} if ends_initial else {}
        self.event("BOOKMARK", {"metadata": {"resourceVersion": version, "annotations": annotations}})

    def end_stream(self) -> None:
        self._transport.write(b"0\r\n\r\n")

    def drop(self) -> None:
        """Close the connection once everything written is sent."""
        self._transport.close()

    async def client_left(self) -> None:
        await self.gone


def line(kind: str, obj: Any) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


Script = Callable[[Request, Answer], Awaitable[None]]


class _Peer(asyncio.Protocol):
    def __init__(self, server: "ScriptedServer") -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._answers: list[Answer] = []
        self._headers: dict[str, str] = {}
        self._url = b""
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop have the methods of asyncio's but not its base classes.
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections += 1
        self._server.transports.add(self._transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._headers, self._url, self._body = {}, b"", b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        request = Request(self._parser.get_method().decode(), self._url.decode(), self._headers, self._body)
        answer = Answer(self._transport)
        self._answers.append(answer)
        self._server.serve(request, answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.transports.discard(self._transport)
        for answer in self._answers:
            if not answer.gone.done():
                answer.gone.set_result(None)


@dataclass
class ScriptedServer:
    script: Script
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    transports: set[asyncio.Transport] = field(default_factory=set)
    port: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def serve(self, request: Request, answer: Answer) -> None:
        self.requests.append(request)

        async def play() -> None:
            await self.script(request, answer)

        task = asyncio.ensure_future(play())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def drop_everything(self) -> None:
        for transport in list(self.transports):
            transport.abort()


@contextlib.asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """Run a scripted server on a free local port."""
    state = ScriptedServer(script)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: _Peer(state), "127.0.0.1", 0, ssl=tls)
    state.port = listener.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        listener.close()
        for task in list(state._tasks):
            task.cancel()
        state.drop_everything()
        await asyncio.sleep(0)


@contextlib.contextmanager
def opened(server: ScriptedServer | int, access: Access | None = None, **options: Any) -> Iterator[Channel]:
    """Open a channel to the server and close it at the end."""
    port = server if isinstance(server, int) else server.port
    access = access or Access("test", f"http://127.0.0.1:{port}")
    channel = open_channel(access, environ={}, clock=FixedClock(), **options)
    try:
        yield channel
    finally:
        channel.close()


def client_of(
    channel: Channel,
    limiter: TokenBucket | None = None,
    seconds: float = 60.0,
    metrics: ClientMetrics | None = None,
) -> ApiClient:
    return ApiClient(channel, user_agent="test/1", limiter=limiter, seconds=seconds, metrics=metrics)
