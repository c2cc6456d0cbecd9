"""What goes over a connection: requests, with only the headers anybody asks for, and responses."""

from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

from kubestow.http.errors import bad_request

_REASONS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
JSON = b"application/json"


class Request:
    """A request that has been received completely."""

    def __init__(self, method: str, target: bytes, headers: dict[bytes, bytes], body: bytes) -> None:
        self.method = method
        self.headers = headers
        self.body = body
        self.user: Any = None
        raw_path, _, self.raw_query = target.partition(b"?")
        self.raw_path = raw_path

    @cached_property
    def path(self) -> str:
        """The path, decoded."""
        try:
            text = self.raw_path.decode("ascii")
            return unquote(text, errors="strict") if "%" in text else text
        except UnicodeDecodeError as error:
            raise bad_request("the path is not valid UTF-8") from error

    @cached_property
    def query(self) -> dict[str, str]:
        """Parameters after the question mark; of repeated ones the last counts."""
        if not self.raw_query:
            return {}
        try:
            text = self.raw_query.decode("ascii")
            return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=100))
        except (UnicodeDecodeError, ValueError) as error:
            raise bad_request("the query string cannot be read") from error

    def header(self, name: bytes) -> str:
        """A header's value; empty if absent."""
        return self.headers.get(name, b"").decode("latin-1")


class Response:
    """A response with a complete body."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes,
        *,
        content_type: bytes = JSON,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers

    def head(self, *, close: bool) -> bytes:
        """Everything before the body."""
        parts = [
            _REASONS[self.status],
            b"Cache-Control: no-cache, private\r\nContent-Type: ",
            self.content_type,
            b"\r\nContent-Length: ",
            str(len(self.body)).encode(),
            b"\r\n",
        ]
        for name, value in self.headers:
            parts.append(f"{name}: {value}\r\n".encode("latin-1", "replace"))
        parts.append(b"Connection: close\r\n\r\n" if close else b"\r\n")
        return b"".join(parts)


def stream_head(content_type: bytes) -> bytes:
    """Everything before the first chunk of a stream."""
    return b"".join(
        (
            _REASONS[200],
            b"Cache-Control: no-cache, private\r\nContent-Type: ",
            content_type,
            b"\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
    )


def chunk(data: bytes) -> bytes:
    """A chunk of a stream, framed."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
