"""Parses received bytes into requests, one at a time.

Bytes are buffered until a part of a request is complete: its head, a body of known length, or a piece of a chunked body
up to an empty line. Only then is the part parsed. So the next request is not parsed before the application is ready for
it, and sizes are checked before data is stored.
"""

from collections.abc import Callable
from typing import Any

import httptools

from kubestow.server.http.errors import ApiError, bad_request, too_large
from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import Request

COMMON_HEADERS = frozenset(
    (
        b"accept",
        b"authorization",
        b"content-type",
        b"user-agent",
        b"if-none-match",
    )
)
"""The headers of a request that are kept; all others are ignored."""
_UNLISTED = b"impersonate-"
"""The start of headers whose values may contain commas: the values of repeated ones are separated by line feeds."""
_FRAMING = frozenset((b"content-length", b"transfer-encoding", b"expect"))
_EMPTY_LINE = b"\r\n\r\n"


class Receiver:
    """Buffers received bytes and takes complete requests from the front."""

    def __init__(self, limits: Limits, kept_headers: Callable[[bytes], bool]) -> None:
        self.unread = 0
        """Number of received bytes that are not parsed yet."""
        self.keeps_alive = True
        """Whether the connection may be used again after the latest request."""
        self.in_body = False
        """Whether the head of a request has been parsed, but not its body."""
        self.continue_due = False
        """Whether the client waits for a 100 Continue before it sends the body."""
        self._limits = limits
        self._small = min(limits.url, 4 * limits.headers)
        """A head of this size is within all limits: a header has at least four bytes."""
        self._keeps = kept_headers
        self._parser: Any = httptools.HttpRequestParser(self)
        self._buffer: bytes | bytearray = b""
        self._at = self._searched = 0
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_length: int | None = None
        self._body_parsed = 0
        self._complete = False

    @property
    def progress(self) -> int:
        """Number of bytes received of the current head or body."""
        return self._body_parsed + self.unread

    def add(self, data: bytes) -> None:
        """Add received bytes."""
        if not self.unread:
            self._buffer = data
        else:
            if self._at or isinstance(self._buffer, bytes):
                self._buffer = bytearray(self._buffer[self._at :])
                self._searched -= self._at
                self._at = 0
            self._buffer += data
        self.unread += len(data)

    def clear(self) -> None:
        """Discard the received bytes."""
        self._buffer = b""
        self.unread = self._at = self._searched = 0

    def next(self) -> Request | None:
        """Return the next request if it is complete. Raises ApiError if it is invalid or too large."""
        while size := self._next_part_size():
            end = self._at + size
            part = self._buffer[self._at : end]
            self.unread -= size
            if self.unread:
                self._at = self._searched = end
            else:
                self.clear()
            try:
                self._parser.feed_data(part)
            except httptools.HttpParserUpgrade:
                self._enter_body()
                if self.in_body:
                    raise bad_request("a request to upgrade the protocol cannot have a body") from None
                self.keeps_alive = False
            except httptools.HttpParserError as error:
                raise bad_request(f"this is not HTTP/1.1: {error}") from error
            if self._complete:
                return self._finish_request()
            if self.in_body:
                self._body_parsed += size
            elif self._target:
                self._enter_body()
        return None

    def _next_part_size(self) -> int:
        """Return the size of the part in front; 0 if it is incomplete."""
        if self._body_length is not None:
            return self._body_length if self.unread >= self._body_length else 0
        found = self._buffer.find(_EMPTY_LINE, self._searched)
        size = self.unread if found < 0 else found + len(_EMPTY_LINE) - self._at
        if self.in_body:
            if self._body_parsed + size > self._limits.body:
                raise too_large(self._limits.body)
        elif size > self._small:
            self._check_head(self._buffer[self._at : self._at + size])
        if found < 0:
            self._searched = max(self._at + size - len(_EMPTY_LINE) + 1, self._at)
            return 0
        return size

    def _check_head(self, head: bytes | bytearray) -> None:
        limits = self._limits
        if len(head.lstrip().partition(b"\r\n")[0]) > limits.url:
            raise ApiError(414, "RequestURITooLong", f"the request line is longer than {limits.url} bytes")
        if len(head) > limits.head:
            raise _head_too_large(f"the headers are larger than {limits.head} bytes")
        if head.count(b"\n") > limits.headers + 2:
            raise _head_too_large(f"there are more than {limits.headers} headers")

    def _enter_body(self) -> None:
        """Determine the end of the body; the parser has rejected contradictory headers."""
        headers = self._headers
        if b"transfer-encoding" in headers:
            if self._parser.get_http_version() != "1.1":
                raise bad_request("a Transfer-Encoding needs HTTP/1.1")
            if headers[b"transfer-encoding"].strip().lower() != b"chunked":
                raise ApiError(501, "NotImplemented", "the only supported Transfer-Encoding is chunked")
            self.in_body = True
        elif b"content-length" in headers:
            self._body_length = length = int(headers[b"content-length"])
            if length > self._limits.body:
                raise too_large(self._limits.body)
            self.in_body = length > 0
        if self.in_body and b"expect" in headers:
            self.continue_due = headers[b"expect"].lower() == b"100-continue"

    def _finish_request(self) -> Request:
        body = b""
        if self.in_body:
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
            self._body_length = None
            self._body_parsed = 0
            self.in_body = False
        request = Request(str(self._parser.get_method(), "ascii"), self._target, self._headers, body)
        self._target, self._headers, self._complete = b"", {}, False
        return request

    # Called by httptools while it parses.

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header, or ignore a trailer."""
        key = name.lower()
        if (self._keeps(key) or key in _FRAMING) and not self.in_body:
            if key in self._headers and key != b"authorization":
                value = self._headers[key] + (b"\n" if key.startswith(_UNLISTED) else b",") + value
            self._headers[key] = value

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        self._complete = True
        self.keeps_alive = self._parser.should_keep_alive()


def _head_too_large(message: str) -> ApiError:
    return ApiError(431, "RequestHeaderFieldsTooLarge", message)
