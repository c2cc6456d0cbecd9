"""One client connection.

Requests are handed to the application one at a time and in order; the application answers, now or later, with a
response, or turns the exchange into a stream of chunks. What a client may cost is bounded: size of headers and body,
requests sent ahead, time to send a request.
"""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import httptools
import msgspec

from kubestow.http.errors import ApiError, bad_request, too_large
from kubestow.http.messages import LAST_CHUNK, Request, Response, stream_head

COMMON_HEADERS = frozenset(
    (b"accept", b"authorization", b"content-type", b"expect", b"user-agent", b"impersonate-user", b"if-none-match")
)
"""The headers that are kept of a request; all others are read over."""
_MAX_HEADER_BYTES = 64 * 1024
_MAX_PIPELINED = 32

Application = Callable[[Request, "Connection"], None]


class Connection(asyncio.Protocol):
    """Speaks HTTP/1.1 with one client."""

    def __init__(
        self,
        application: Application,
        max_body: int,
        connections: set["Connection"],
        kept_headers: Callable[[bytes], bool] = COMMON_HEADERS.__contains__,
    ) -> None:
        self._application = application
        self._max_body = max_body
        self._keeps = kept_headers
        self._connections = connections
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._pending: deque[tuple[Request, bool]] = deque()
        self._current_keeps_alive = True
        self._current_wants_body = True
        self._on_lost: Callable[[], None] | None = None
        self.peer_certificate: dict[str, Any] | None = None
        self.peer_certificate_der: bytes | None = None
        self.identity: Any = None
        self.busy = False
        self.refusing = False
        self.active_at = time.monotonic()
        self._start_message()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.peer_certificate = cast("dict[str, Any] | None", tls.getpeercert())
            if self.peer_certificate:
                self.peer_certificate_der = tls.getpeercert(binary_form=True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._connections.discard(self)
        self._transport = None
        if self._on_lost is not None:
            self._on_lost()
            self._on_lost = None

    def data_received(self, data: bytes) -> None:
        if self.refusing:
            return
        self.active_at = time.monotonic()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.refusing = True
        except httptools.HttpParserError as error:
            if not self.refusing:
                self._refuse(bad_request(f"this is not HTTP/1.1: {error}"))

    # httptools calls these while it parses.

    def _start_message(self) -> None:
        self._target: list[bytes] = []
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0

    def on_message_begin(self) -> None:
        """A request starts."""
        self._start_message()

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        self._target.append(url)
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header is complete."""
        self._count_header(len(name) + len(value))
        key = name.lower()
        if self._keeps(key):
            self._headers[key] = (
                self._headers[key] + b"," + value if key != b"authorization" and key in self._headers else value
            )

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > _MAX_HEADER_BYTES and not self.refusing:
            self._refuse(ApiError(431, "RequestHeaderFieldsTooLarge", "the request headers are too large"))

    def on_headers_complete(self) -> None:
        """The body comes next."""
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        self._body_bytes += len(data)
        if self._body_bytes > self._max_body:
            if not self.refusing:
                self._refuse(too_large(self._max_body))
        else:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """A request is complete."""
        if self.refusing:
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method = self._parser.get_method().decode("ascii")
        request = Request(method, b"".join(self._target), self._headers, body)
        keep = self._parser.should_keep_alive()
        if self.busy:
            self._pending.append((request, keep))
            if len(self._pending) >= _MAX_PIPELINED and self._transport is not None:
                self._transport.pause_reading()
        else:
            self._begin(request, keep)

    def _begin(self, request: Request, keep: bool) -> None:
        self.busy = True
        self._current_keeps_alive = keep
        self._current_wants_body = request.method != "HEAD"
        self._application(request, self)

    # The application calls these.

    def respond(self, response: Response) -> None:
        """Answers the current request."""
        transport = self._transport
        if transport is None:
            return
        close = not self._current_keeps_alive
        head = response.head(close=close)
        transport.write(head + response.body if self._current_wants_body else head)
        if close:
            transport.close()
        else:
            self._next()

    def open_stream(self, content_type: bytes, on_lost: Callable[[], None]) -> None:
        """Answers the current request with chunks to come; `on_lost` is called if the client goes away."""
        self._on_lost = on_lost
        self.write(stream_head(content_type))

    def write(self, data: bytes) -> None:
        """Sends bytes of a stream that are framed already."""
        if self._transport is not None:
            self._transport.write(data)

    def end_stream(self) -> None:
        """Ends the stream; the connection can be used again."""
        self._on_lost = None
        if self._transport is not None:
            self._transport.write(LAST_CHUNK)
            if self._current_keeps_alive:
                self._next()
            else:
                self._transport.close()

    def unsent(self) -> int:
        """Bytes the client has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def abort(self) -> None:
        """Drops the connection and whatever is unsent."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Closes the connection once everything is sent."""
        if self._transport is not None:
            self._transport.close()

    def _next(self) -> None:
        self.busy = False
        self.active_at = time.monotonic()
        if self._pending:
            if len(self._pending) == _MAX_PIPELINED and self._transport is not None:
                self._transport.resume_reading()
            self._begin(*self._pending.popleft())

    def _refuse(self, error: ApiError) -> None:
        """Answers something that never became a request, and closes."""
        self.refusing = True
        if self._transport is not None:
            response = Response(error.code, msgspec.json.encode(error.status()))
            self._transport.write(response.head(close=True) + response.body)
            self._transport.close()
