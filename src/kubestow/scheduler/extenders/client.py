"""Calls to extenders over HTTP: kept-alive connections, one timeout for the whole call, answers of limited size.

A redirect is followed where Go's client would send the body again (307, 308), as long as it stays on the same server.
A query whose connection is lost is repeated once, since servers close idle connections; a binding is not.
"""

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urljoin, urlsplit

from kubestow.api.failures import ConnectionLostError, TimedOutError
from kubestow.client.access import Access, open_channel
from kubestow.client.api import Channel
from kubestow.client.connection import Response
from kubestow.client.tls import Certificate, TlsSettings
from kubestow.clock import Clock
from kubestow.config.configuration import Extender, ExtenderTLSConfig
from kubestow.scheduler.extenders.extender import Answer, Call, ExtenderError

MAX_REQUESTS = 256
"""Maximum number of concurrent calls to one extender: many pods may be bound at once."""
MAX_ANSWER_BYTES = 256 << 20
"""An answer may contain whole nodes, of which a large cluster has many."""
MAX_REDIRECTS = 10
_TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class ExtenderClient:
    """The connections to all extenders; created inside the running loop."""

    def __init__(
        self, configured: Sequence[Extender], clock: Clock, user_agent: str, may_act: Callable[[], bool]
    ) -> None:
        """Raises CredentialsError for invalid TLS settings; `may_act` returns whether this instance is the leader."""
        self._clock = clock
        self._user_agent = user_agent
        self._may_act = may_act
        self._connections: dict[Extender, _Connection] = {}
        self.open(configured)

    def open(self, configured: Sequence[Extender]) -> None:
        """Add connections to more extenders; raises CredentialsError."""
        for number, config in enumerate(configured):
            if config not in self._connections:
                self._connections[config] = self._connect(number, config)

    def keep_only(self, configured: Sequence[Extender]) -> None:
        """Remove the connections to all other extenders, after calls in progress have ended."""
        for config in [config for config in self._connections if config not in configured]:
            self._connections.pop(config).close_when_idle()

    def _connect(self, number: int, config: Extender) -> "_Connection":
        return _Connection(number, config, self._clock, self._user_agent)

    def _connection_for(self, call: Call) -> "_Connection":
        connection = self._connections.get(call.extender.config)
        if connection is None:
            # For a pod whose cycle began before the connection was removed.
            connection = self._connect(call.extender.number, call.extender.config)
            connection.close_when_idle()
        return connection

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """Make calls concurrently."""
        if len(calls) == 1:
            return [await self._answer(calls[0])]
        return await asyncio.gather(*map(self._answer, calls))

    async def _answer(self, call: Call) -> Answer:
        if not self._may_act():
            return ExtenderError("extenders are not called: this instance is not the leader")
        try:
            return await self._connection_for(call).post(call)
        except TimedOutError:
            return ExtenderError(f'Post "{call.url}": {_TIMED_OUT}')
        except Exception as error:
            return error if isinstance(error, ExtenderError) else ExtenderError(f'Post "{call.url}": {error}')

    def close(self) -> None:
        for connection in self._connections.values():
            connection.channel.close()


class _Connection:
    """The connections to one extender."""

    def __init__(self, number: int, config: Extender, clock: Clock, user_agent: str) -> None:
        access = Access(f"extenders[{number}]", config.urlPrefix, tls=_tls_of(number, config), server_field="urlPrefix")
        self.channel: Channel = open_channel(
            access, most_requests=MAX_REQUESTS, largest_answer=MAX_ANSWER_BYTES, clock=clock
        )
        self._seconds = config.httpTimeout.seconds
        self._calls = 0
        self._is_retired = False
        endpoint = self.channel.endpoint
        self._root = f"{endpoint.scheme}://{endpoint.authority}"
        self._headers = (
            f" HTTP/1.1\r\nHost: {endpoint.authority}\r\nUser-Agent: {user_agent}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )

    def close_when_idle(self) -> None:
        """Close the channel when no call is in progress any more."""
        self._is_retired = True
        if not self._calls:
            self.channel.close()

    async def post(self, call: Call) -> bytes:
        """Return the body of the answer; raises TransportError or ExtenderError."""
        self._calls += 1
        try:
            return await self._post(call)
        finally:
            self._calls -= 1
            if self._is_retired and not self._calls:
                self.channel.close()

    async def _post(self, call: Call) -> bytes:
        path = f"{self.channel.endpoint.prefix}/{call.verb}"
        deadline = asyncio.get_running_loop().time() + self._seconds
        for _ in range(MAX_REDIRECTS):
            response = await self._send(call, path, deadline)
            if response.status == 200:
                return response.body
            if response.status not in (307, 308) or not (location := response.header("location")):
                break
            moved = urljoin(f"{self._root}{path}", location)
            if not moved.startswith(f"{self._root}/"):
                raise ExtenderError(f"{_failed(call, response)}: it redirects to {moved}; set that as the urlPrefix")
            parts = urlsplit(moved)
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        else:
            raise ExtenderError(f"{_failed(call, response)}: it redirects more than {MAX_REDIRECTS} times")
        raise ExtenderError(_failed(call, response))

    async def _send(self, call: Call, path: str, deadline: float) -> Response:
        size = sum(map(len, call.body))
        message = (f"POST {path}{self._headers}{size}\r\n\r\n".encode(), *call.body)
        pool = self.channel.pool
        try:
            return await pool.exchange(message, deadline)
        except ConnectionLostError:
            if call.binds:
                raise
            # Other idle connections may be closed as well.
            pool.close_idle()
            return await pool.exchange(message, deadline)


def _failed(call: Call, response: Response) -> str:
    return f"failed {call.verb} with extender at URL {call.url}, code {response.status}"


def _tls_of(number: int, config: Extender) -> TlsSettings:
    tls = config.tlsConfig or ExtenderTLSConfig()
    has_authority = bool(tls.caFile or tls.caData)
    certificate = Certificate(tls.certData or None, tls.keyData or None, tls.certFile, tls.keyFile)
    return TlsSettings(
        source=f"extenders[{number}].tlsConfig",
        ca_data=tls.caData or None,
        ca_file=tls.caFile,
        certificate=None if certificate == Certificate() else certificate,
        # As in kube-scheduler: HTTPS without a certificate authority accepts every certificate.
        insecure=tls.insecure or (config.enableHTTPS and not has_authority),
        server_name=tls.serverName,
    )
