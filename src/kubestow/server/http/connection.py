"""One client connection.

Requests are passed to the application one at a time and in order; the application answers, now or later, with a
response, or with a stream of chunks. Pipelined requests are not parsed until the responses before them are on their
way, and each request has its own turn of the event loop, so that a thousand at once do not block other connections.

There is no timer per request. The server sweeps over all connections periodically and ends one that has been at the
same stage for too long.
"""

import asyncio
import enum
import math
import ssl
from collections.abc import Callable
from typing import Any, cast

import msgspec

from kubestow.server.http.errors import ApiError
from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import LAST_CHUNK, Headers, Request, Response, stream_head
from kubestow.server.http.receiving import Receiver
from kubestow.server.http.sending import SLICE, Sender

Application = Callable[[Request, "Connection"], None]


class Stage(enum.Enum):
    """The stage of a connection; each has a time limit. TAKING: the client receives what was sent."""

    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    ANSWER = enum.auto()
    STREAM = enum.auto()
    TAKING = enum.auto()
    CLOSING = enum.auto()


class Connection(asyncio.Protocol):
    """The HTTP/1.1 protocol of one client connection, which is in `connections` while it is open."""

    def __init__(
        self,
        application: Application,
        limits: Limits,
        connections: set["Connection"],
        kept_headers: Callable[[bytes], bool],
    ) -> None:
        self._application = application
        self._limits = limits
        self._connections = connections
        self._receiver = Receiver(limits, kept_headers)
        self._transport: asyncio.Transport
        self._sender: Sender
        self._open = False
        """Whether responses can still be sent."""
        self._busy = False
        """Whether a request waits for its response, or the next request for its turn."""
        self._answered = False
        """Whether the response is complete but not passed to the transport yet."""
        self._reading_paused = False
        self._wants_body = True
        self._on_lost: Callable[[], None] | None = None
        self._max_unsent = 0
        self._exchanges = 0
        self._seen: tuple[Stage, int] | None = None
        self._seen_at = 0.0
        self._seen_progress = 0
        self.peer_certificate: dict[str, Any] | None = None
        self.peer_certificate_der: bytes | None = None
        self.identity: Any = None

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._sender = Sender(self._transport, self._on_clear)
        self._open = True
        self._connections.add(self)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.peer_certificate = cast("dict[str, Any] | None", tls.getpeercert())
            if self.peer_certificate:
                self.peer_certificate_der = tls.getpeercert(binary_form=True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._open = False
        self._sender.close()
        self._connections.discard(self)
        if self._on_lost is not None:
            self._on_lost()
            self._on_lost = None

    def pause_writing(self) -> None:
        self._sender.pause()

    def resume_writing(self) -> None:
        self._sender.resume()

    def data_received(self, data: bytes) -> None:
        if not self._open:
            return
        self._receiver.add(data)
        if not self._busy:
            self._advance()
        elif self._receiver.unread > self._limits.pipelined and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _advance(self) -> None:
        """Pass the next request to the application, if it has been received completely."""
        if not self._open:
            return
        receiver = self._receiver
        try:
            request = receiver.next()
        except ApiError as error:
            self._reject(error)
            return
        if self._reading_paused and (request is None or receiver.unread <= self._limits.pipelined):
            self._reading_paused = False
            self._transport.resume_reading()
        self._busy = request is not None
        if request is not None:
            self._exchanges += 1
            self._wants_body = request.method != "HEAD"
            self._application(request, self)
        elif receiver.continue_due:
            receiver.continue_due = False
            self._sender.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _reject(self, error: ApiError) -> None:
        """Send an error as the last response. Further data is ignored: closing at once might lose the response."""
        self._open = False
        response = Response(error.code, msgspec.json.encode(error.status()))
        self._sender.write(response.head(close=True) + response.body)
        self._receiver.clear()
        if self._reading_paused:
            self._transport.resume_reading()
        if self._sender.clear and self._transport.can_write_eof():
            self._transport.write_eof()

    # Called by the application.

    def respond(self, response: Response) -> None:
        """Send the response to the current request."""
        if not self._open:
            return
        head = response.head(close=not self._receiver.keeps_alive)
        body = response.body if self._wants_body else b""
        if len(body) < SLICE:
            self._sender.write(head + body)
        else:
            self._sender.write(head)
            self._sender.write(body)
        self._finish()

    def open_stream(
        self, content_type: bytes, on_lost: Callable[[], None], first: bytes = b"", headers: Headers = ()
    ) -> None:
        """Answer the current request with `first` and further chunks; call `on_lost` if the client disconnects."""
        if not self._open:
            on_lost()
            return
        self._on_lost = on_lost
        self._sender.write(stream_head(content_type, headers))
        self._sender.write(first)
        self._max_unsent = self._limits.unsent + self._sender.unsent

    def write(self, data: bytes) -> None:
        """Send a framed chunk of a stream; disconnect a client that has too many unsent bytes."""
        if not self._open:
            return
        if self._sender.unsent > self._max_unsent:
            self.abort()
        else:
            self._sender.write(data)

    def end_stream(self) -> None:
        """End the stream; the connection can be used again."""
        self._on_lost = None
        if self._open:
            self._sender.write(LAST_CHUNK)
            self._finish()

    def abort(self) -> None:
        """Close the connection at once; unsent bytes are lost."""
        self._open = False
        self._transport.abort()

    def close(self) -> None:
        """Close the connection once everything passed to the transport is sent."""
        self._open = False
        self._transport.close()

    def _on_clear(self) -> None:
        if self._answered:
            self._answered = False
            self._finish()

    def _finish(self) -> None:
        """Continue once the response is passed to the transport, not before: unread responses must not accumulate."""
        if not self._sender.clear:
            self._answered = True
        elif not self._receiver.keeps_alive:
            self.close()
        elif self._receiver.unread:
            asyncio.get_running_loop().call_soon(self._advance)
        else:
            self._busy = False

    # Called by the server.

    def sweep(self, now: float) -> None:
        """End the connection if it has been at the same stage for too long without progress."""
        stage, seconds, progress = self._stage()
        seen = (stage, self._exchanges)
        elapsed = now - self._seen_at
        if seen != self._seen or progress - self._seen_progress > self._limits.least_rate * elapsed:
            self._seen, self._seen_at, self._seen_progress = seen, now, progress
        elif elapsed > seconds:
            self._end_stage(stage)

    def _stage(self) -> tuple[Stage, float, int]:
        """Return the current stage, its time limit in seconds, and its progress in bytes."""
        limits, receiver = self._limits, self._receiver
        if self._sender.unsent:
            return Stage.TAKING, limits.taking_seconds, self._sender.sent
        if not self._open:
            return Stage.CLOSING, limits.closing_seconds, 0
        if self._on_lost is not None:
            return Stage.STREAM, math.inf, 0
        if self._busy:
            return Stage.ANSWER, limits.answer_seconds, 0
        if receiver.in_body:
            return Stage.BODY, limits.body_seconds, receiver.progress
        if receiver.unread or not self._exchanges:
            return Stage.HEAD, limits.head_seconds, receiver.progress
        return Stage.IDLE, limits.idle_seconds, 0

    def _end_stage(self, stage: Stage) -> None:
        if stage in (Stage.TAKING, Stage.CLOSING):
            self.abort()
        elif stage is Stage.ANSWER:
            self._reject(ApiError(504, "Timeout", f"there is no answer after {self._limits.answer_seconds:g} seconds"))
        elif stage is Stage.BODY or self._receiver.unread:
            self._reject(ApiError(408, "RequestTimeout", "the request takes too long to arrive"))
        else:
            self.close()
