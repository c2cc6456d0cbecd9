"""Limits of a server per client. Sizes are in bytes; `docs/reference/serving.md` describes the effect of each."""

from dataclasses import dataclass

_KIBIBYTE = 1024
_MEBIBYTE = 1024 * _KIBIBYTE


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server; a connection that exceeds one is rejected or closed, without effect on the others."""

    connections: int = 10_000
    """Maximum number of open connections; also limited to three quarters of the open files of the process."""
    url: int = 16 * _KIBIBYTE
    head: int = 64 * _KIBIBYTE
    """Maximum size of request line and headers together."""
    headers: int = 100
    """Maximum number of headers of a request."""
    body: int = 3 * _MEBIBYTE
    """Maximum size of the body of a request; of a chunked one, with its chunk sizes and trailers."""
    pipelined: int = 64 * _KIBIBYTE
    """Maximum size of pipelined requests; a client that sends more is not read until it receives responses."""
    unsent: int = 16 * _MEBIBYTE
    """Maximum size of the unsent part of a stream, not counting the initial data of the stream."""
    handshake_seconds: float = 10.0
    head_seconds: float = 10.0
    """Time limit from the start of a connection or the first byte of a request to the end of its headers."""
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    """Time limit of the application for a response; streams are not limited."""
    taking_seconds: float = 30.0
    """Time limit for a client to receive a response."""
    closing_seconds: float = 5.0
    """Time limit for a client to close a rejected or closed connection."""
    idle_seconds: float = 300.0
    """Time for which a connection without a request is kept open."""
    least_rate: int = 4 * _KIBIBYTE
    """Bytes per second; the time limit starts again for a client that sends or receives more."""

    @property
    def sweep_seconds(self) -> float:
        """The interval at which connections beyond a time limit are closed."""
        return min(self.head_seconds, self.body_seconds, self.answer_seconds,
                   self.taking_seconds, self.closing_seconds, self.idle_seconds) / 2  # fmt: skip
