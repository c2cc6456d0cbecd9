"""One HTTP/1.1 connection: an asyncio protocol that sends one request at a time and parses the response with httptools.

A response is either collected (`exchange`) or fed piece by piece to a sink as it arrives (`stream`, for watches). The
sink runs inside `data_received`, so the socket is not read while it works: that is the back-pressure.
Deadlines are cheap: a timer keeps running from one request to the next and, when it fires, checks the current deadline.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol, cast

import httptools

from kubestow.api.failures import BadAnswerError, ConnectionLostError, TimedOutError, TransportError
from kubestow.client.secretive import Secretive

_END_OF_HEADERS = b"\r\n\r\n"
_LARGEST_HEAD = 1024 * 1024
_NEVER = math.inf


class Sink(Protocol):
    """Receives the body of a stream as it arrives; `silence` is the maximum time in seconds until the next piece."""

    silence: float

    def feed(self, piece: bytes) -> None:
        """Process a piece; an exception raised here ends the stream with that exception."""


class Response(Secretive, frozen=True, eq=False, gc=False):
    """A complete response; the body is empty if it was streamed to a sink."""

    status: int
    body: bytes
    head: bytes
    """The received bytes, which begin with the headers. Headers are rarely read, so they are parsed on demand."""

    def header(self, name: str) -> str:
        """Return the value of a header, by its lower-case name; empty if it is missing."""
        return _header(self.head, name)


class Connection(asyncio.Protocol):
    """A keep-alive connection; `reusable` is false once no other request can follow.

    `largest_answer` is the maximum size in bytes of a collected response.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, largest_answer: float = math.inf) -> None:
        self._loop = loop
        self._largest_answer = largest_answer
        self._collected = 0
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Response] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._sink: Sink | None = None
        self._deadline = _NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._status = 0
        self._pieces: list[bytes] = []
        self._head = b""
        """The response received so far, up to the end of its headers; empty before a response begins."""
        self._has_headers = False
        self.opened_at = self.idle_since = loop.time()
        self.served = 0
        self.reusable = True

    # Called by users of the connection.

    def exchange(
        self, request: Sequence[bytes], deadline: float, answer: asyncio.Future[Response] | None = None
    ) -> asyncio.Future[Response]:
        """Send a request given in pieces; the future (`answer` if given) gets the response or a TransportError."""
        answer = self._answer = self._loop.create_future() if answer is None else answer
        self.served += 1
        if self._transport is None:
            self._fail(ConnectionLostError("the connection was closed before the request was sent"))
            return answer
        self._wait_until(deadline)
        if len(request) == 1:
            self._transport.write(request[0])
        else:
            self._transport.writelines(request)
        return answer

    def stream(
        self, request: bytes, deadline: float, sink: Sink
    ) -> tuple[asyncio.Future[Response], asyncio.Future[None]]:
        """Send a request whose response, if it is a 200, is fed to the sink as it arrives.

        The first future is done when the response has begun (or, for an error, is complete); the second when the
        stream has ended: with None if the server ended it, else with the error.
        """
        self._sink = sink
        ended = self._ended = self._loop.create_future()
        return self.exchange((request,), deadline), ended

    def close(self) -> None:
        """Drop the connection; a pending request fails with ConnectionLostError."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()
        self._fail(ConnectionLostError("the connection was closed on this side"))

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop have the methods of asyncio's but not its base classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._has_headers:
            self._head += data
            if len(self._head) > _LARGEST_HEAD + len(data):
                self._break(BadAnswerError(f"the headers of the answer are larger than {_LARGEST_HEAD} bytes"))
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._break(BadAnswerError(f"the answer is not HTTP/1.1: {error}"))
        if self._sink is not None and self._answer is not None and self._answer.done():
            self._wait_until(self._loop.time() + self._sink.silence)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.reusable = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._has_headers and exc is None and not _has_length(self._head):
            self._complete()
            return
        what = "in the middle of the answer" if self._head else "before an answer came"
        self._fail(ConnectionLostError(f"the server closed the connection {what}" + (f": {exc}" if exc else "")))

    # Called by the parser.

    def on_headers_complete(self) -> None:
        self._status = status = self._parser.get_status_code()
        self._has_headers = status >= 200
        if self._answer is None and status >= 200:
            self._break(BadAnswerError("the server sent an answer without a request"))
        elif status > 200:
            self._sink = None
        elif status == 200 and self._sink is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(Response(200, b"", self._head))

    def on_body(self, piece: bytes) -> None:
        if self._sink is None:
            self._collected += len(piece)
            if self._collected > self._largest_answer:
                self._break(BadAnswerError(f"the answer is larger than {self._largest_answer} bytes"))
            else:
                self._pieces.append(piece)
            return
        # At once, not collected per read: measured, large batches cost more than they save.
        try:
            self._sink.feed(piece)
        except Exception as error:
            self._break(error)

    def on_message_complete(self) -> None:
        if self._status < 200:
            self._head = self._head.partition(_END_OF_HEADERS)[2]
            return
        if not self._parser.should_keep_alive():
            self.reusable = False
        self._complete()

    # The end of a response or of the connection.

    def _complete(self) -> None:
        pieces, answer, ended, head = self._pieces, self._answer, self._ended, self._head
        self._has_headers = False
        self._head = b""
        self._collected = 0
        self._deadline = _NEVER
        self._answer = self._ended = self._sink = None
        if pieces:
            self._pieces = []
        if answer is not None and not answer.done():
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            answer.set_result(Response(self._status, body, head))
        if ended is not None and not ended.done():
            ended.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._deadline = _NEVER
        self._sink = None
        answer, ended = self._answer, self._ended
        self._answer = self._ended = None
        self._pieces = []
        begun = answer is not None and answer.done() and not answer.cancelled()
        if answer is not None and not answer.done():
            answer.set_exception(error)
        if ended is not None and not ended.done():
            if begun:
                ended.set_exception(error)
            else:
                ended.cancel()

    def _break(self, error: Exception) -> None:
        self.reusable = False
        self._fail(error)
        if self._transport is not None:
            self._transport.abort()

    def _wait_until(self, deadline: float) -> None:
        self._deadline = deadline
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline == _NEVER:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)
        else:
            self._break(self._timeout())

    def _timeout(self) -> TransportError:
        if self._sink is not None and self._head:
            return TimedOutError(f"no data received for {self._sink.silence:g} s")
        return TimedOutError("the server did not answer in time")


def _header(head: bytes, name: str) -> str:
    for line in head.partition(_END_OF_HEADERS)[0].decode("latin-1").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.strip().lower() == name:
            return value.strip()
    return ""


def _has_length(head: bytes) -> bool:
    """Return whether the headers define the end of the response; if not, it ends with the connection."""
    return bool(_header(head, "content-length") or _header(head, "transfer-encoding"))
