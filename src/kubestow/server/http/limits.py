"""What clients may cost a server. Sizes are in bytes; `docs/reference/serving.md` tells what happens beyond each."""

from dataclasses import dataclass

_KIBIBYTE = 1024
_MEBIBYTE = 1024 * _KIBIBYTE


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server; a connection beyond one of them is refused or cut, and all others are served on."""

    connections: int = 10_000
    """How many may be open; never more than three quarters of the files that the process may open."""
    url: int = 16 * _KIBIBYTE
    head: int = 64 * _KIBIBYTE
    """Request line and headers together."""
    headers: int = 100
    """How many headers a request may have."""
    body: int = 3 * _MEBIBYTE
    """The body of a request; a chunked one is counted as it is sent."""
    pipelined: int = 64 * _KIBIBYTE
    """How much a client may send ahead of the answers before it is no longer read."""
    unsent: int = 16 * _MEBIBYTE
    """How much of a stream a client may leave untaken, beside what the stream began with."""
    handshake_seconds: float = 10.0
    head_seconds: float = 10.0
    """From a connection's or a request's first byte to the end of its headers."""
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    """How long the application may take; streams go on for as long as they like."""
    taking_seconds: float = 30.0
    """How long a client may take what it is sent."""
    closing_seconds: float = 5.0
    """How long a client that was refused, or whose connection is closed, may stay."""
    idle_seconds: float = 300.0
    """How long a connection without a request is kept."""
    least_rate: int = 4 * _KIBIBYTE
    """Bytes a second; for a client that sends or takes more, the time begins anew."""

    @property
    def sweep_seconds(self) -> float:
        """How often to look for connections beyond a limit of time."""
        return min(self.head_seconds, self.body_seconds, self.answer_seconds,
                   self.taking_seconds, self.closing_seconds, self.idle_seconds) / 2  # fmt: skip
