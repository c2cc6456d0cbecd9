"""Requests, with only the headers that are needed, and responses."""

from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from kubestow.server.http.errors import bad_request

_REASONS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
JSON = b"application/json"
Headers = tuple[tuple[str, str], ...]


class Request:
    """A request that has been received completely."""

    def __init__(self, method: str, target: bytes, headers: dict[bytes, bytes], body: bytes) -> None:
        self.method = method
        self.headers = headers
        self.body = body
        self.user: Any = None
        self.impersonation: Any = None
        self.annotations: dict[str, Any] = {}
        """The annotations of the request in the audit log."""
        raw_path, _, self.raw_query = target.partition(b"?")
        self.raw_path = raw_path

    @cached_property
    def path(self) -> str:
        """The decoded path."""
        try:
            text = self.raw_path.decode("ascii")
            return unquote(text, errors="strict") if "%" in text else text
        except UnicodeDecodeError as error:
            raise bad_request("the path is not valid UTF-8") from error

    @cached_property
    def query(self) -> dict[str, str]:
        """The query parameters; of repeated ones, the last."""
        if not self.raw_query:
            return {}
        try:
            text = self.raw_query.decode("ascii")
            return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=100))
        except (UnicodeDecodeError, ValueError) as error:
            raise bad_request("the query string is invalid") from error

    def header(self, name: bytes) -> str:
        """Return the value of a header; empty if it is missing."""
        return self.headers.get(name, b"").decode("latin-1")


class Response(msgspec.Struct, frozen=True, gc=False):
    """A response with a complete body."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: Headers = ()

    def head(self, *, close: bool) -> bytes:
        """Return everything before the body."""
        more = _lines(self.headers)
        if close:
            more += b"Connection: close\r\n"
        return b"%bContent-Length: %d\r\n%b\r\n" % (_start(self.status, self.content_type), len(self.body), more)


def stream_head(content_type: bytes, headers: Headers = ()) -> bytes:
    """Return everything before the first chunk of a stream."""
    return b"%b%bTransfer-Encoding: chunked\r\n\r\n" % (_start(200, content_type), _lines(headers))


def _lines(headers: Headers) -> bytes:
    return b"".join(f"{name}: {value}\r\n".encode("latin-1", "replace") for name, value in headers)


@lru_cache(maxsize=256)
def _start(status: int, content_type: bytes) -> bytes:
    return b"%bCache-Control: no-cache, private\r\nContent-Type: %b\r\n" % (_REASONS[status], content_type)


def chunk(data: bytes) -> bytes:
    """Return the data framed as a chunk of a stream."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
