"""Credentials as header lines, which are part of every request.

`current()` returns the lines at once, or None if they must be fetched first; then the client awaits `renew()`, which
reads a file, runs a plugin or sends a request to an identity provider. After a 401 the client renews once and retries.
"""

import abc
import asyncio
import base64

from kubestow.client.errors import CredentialsError
from kubestow.clock import Clock
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

REREAD_SECONDS = 60.0
"""Seconds for which a token read from a file is used; rotated tokens stay valid far longer."""


def bearer(token: str) -> bytes:
    return f"Authorization: Bearer {token}\r\n".encode("latin-1")


def basic(user: str, password: str) -> bytes:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return f"Authorization: Basic {pair}\r\n".encode()


class Auth(abc.ABC):
    """A source of header lines."""

    @abc.abstractmethod
    def current(self) -> bytes | None:
        """Return the lines to send now, or None if `renew` must be awaited first."""

    @abc.abstractmethod
    async def renew(self, rejected: bytes | None = None, /) -> bytes:
        """Fetch new lines; `rejected` are those for which the server returned 401. Raises CredentialsError."""


class Fixed(Auth):
    """Lines that never change: a static token, a password, or none (anonymous, or authenticated by a certificate)."""

    def __init__(self, lines: bytes = b"") -> None:
        self._lines = lines

    def current(self) -> bytes | None:
        return self._lines

    async def renew(self, _rejected: bytes | None = None, /) -> bytes:
        return self._lines


class TokenFile(Auth):
    """A token in a file that is rotated, such as that of a service account."""

    def __init__(self, path: str, source: str, fallback: str, loop: asyncio.AbstractEventLoop) -> None:
        self._path = path
        self._source = source
        self._loop = loop
        self._lines = bearer(fallback) if fallback else b""
        self._read_again = float("-inf")

    def current(self) -> bytes | None:
        return self._lines if self._loop.time() < self._read_again else None

    async def renew(self, _rejected: bytes | None = None, /) -> bytes:
        try:
            self._lines = bearer(self._read())
        except CredentialsError as error:
            if not self._lines:
                raise
            log.warning("Keeping the previous token", err=error)
        self._read_again = self._loop.time() + REREAD_SECONDS
        return self._lines

    def _read(self) -> str:
        try:
            with open(self._path, encoding="ascii") as file:
                token = file.read().strip()
        except OSError as error:
            problem = f"cannot read {self._path}: {error.strerror}"
            raise CredentialsError(self._source, "tokenFile", problem) from None
        except UnicodeDecodeError:
            raise CredentialsError(self._source, "tokenFile", f"{self._path} contains no token") from None
        if not token:
            raise CredentialsError(self._source, "tokenFile", f"{self._path} is empty")
        return token


class Expiring(Auth):
    """Credentials of plugins and identity providers: they expire, and are fetched once for all waiting requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: bytes | None = None
        self._expires = float("inf")
        self._lock = asyncio.Lock()

    def current(self) -> bytes | None:
        return self._lines if self._clock.now() < self._expires else None

    async def renew(self, rejected: bytes | None = None, /) -> bytes:
        async with self._lock:
            held = self.current()
            if held is not None and held != rejected:
                return held  # another request renewed it while this one waited
            self._lines, self._expires = await self._fetch()
            return self._lines

    @abc.abstractmethod
    async def _fetch(self) -> tuple[bytes, float]:
        """Return new lines, and the wall-clock time in seconds at which they expire. Raises CredentialsError."""
