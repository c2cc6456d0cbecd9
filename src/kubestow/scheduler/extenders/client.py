"""Calls to extenders over HTTP: kept-alive connections, one time limit for the whole call, answers of bounded size.

A redirect is followed where Go's client would send the body again (307, 308), as long as it stays at the same server.
A query whose connection is lost is made once more, since servers close connections that are idle; a binding is not.
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

MOST_REQUESTS = 256
"""Calls to one extender under way at a time: many pods may be bound at once."""
LARGEST_ANSWER = 256 << 20
"""Bytes; whole nodes, of which a large cluster has many, may be sent back."""
MOST_REDIRECTS = 10
_TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class ExtenderClient:
    """The ways to all extenders; made inside the running loop."""

    def __init__(
        self, configured: Sequence[Extender], clock: Clock, user_agent: str, may_act: Callable[[], bool]
    ) -> None:
        """Raises CredentialsError for what cannot be used; `may_act` tells whether nobody else can be the leader."""
        self._clock = clock
        self._user_agent = user_agent
        self._may_act = may_act
        self._ways: dict[Extender, _Way] = {}
        self.open(configured)

    def open(self, configured: Sequence[Extender]) -> None:
        """Make ways to more extenders; raises CredentialsError."""
        for number, config in enumerate(configured):
            if config not in self._ways:
                self._ways[config] = self._way(number, config)

    def keep(self, configured: Sequence[Extender]) -> None:
        """Give up the ways to all others, once calls that are under way have ended."""
        for config in [config for config in self._ways if config not in configured]:
            self._ways.pop(config).give_up()

    def _way(self, number: int, config: Extender) -> "_Way":
        return _Way(number, config, self._clock, self._user_agent)

    def _way_for(self, call: Call) -> "_Way":
        way = self._ways.get(call.extender.config)
        if way is None:
            # Of a pod that began before the way was given up.
            way = self._way(call.extender.number, call.extender.config)
            way.give_up()
        return way

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """Make calls side by side."""
        if len(calls) == 1:
            return [await self._answer(calls[0])]
        return await asyncio.gather(*map(self._answer, calls))

    async def _answer(self, call: Call) -> Answer:
        if not self._may_act():
            return ExtenderError("no extender is asked any more: this instance is not the leader")
        try:
            return await self._way_for(call).post(call)
        except TimedOutError:
            return ExtenderError(f'Post "{call.url}": {_TIMED_OUT}')
        except Exception as error:
            return error if isinstance(error, ExtenderError) else ExtenderError(f'Post "{call.url}": {error}')

    def close(self) -> None:
        for way in self._ways.values():
            way.channel.close()


class _Way:
    """The way to one extender."""

    def __init__(self, number: int, config: Extender, clock: Clock, user_agent: str) -> None:
        access = Access(f"extenders[{number}]", config.urlPrefix, tls=_tls_of(number, config), server_field="urlPrefix")
        self.channel: Channel = open_channel(
            access, most_requests=MOST_REQUESTS, largest_answer=LARGEST_ANSWER, clock=clock
        )
        self._seconds = config.httpTimeout.seconds
        self._calls = 0
        self._is_given_up = False
        endpoint = self.channel.endpoint
        self._root = f"{endpoint.scheme}://{endpoint.authority}"
        self._headers = (
            f" HTTP/1.1\r\nHost: {endpoint.authority}\r\nUser-Agent: {user_agent}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )

    def give_up(self) -> None:
        """Close it when no call is under way any more."""
        self._is_given_up = True
        if not self._calls:
            self.channel.close()

    async def post(self, call: Call) -> bytes:
        """The body of the answer; raises TransportError or ExtenderError."""
        self._calls += 1
        try:
            return await self._post(call)
        finally:
            self._calls -= 1
            if self._is_given_up and not self._calls:
                self.channel.close()

    async def _post(self, call: Call) -> bytes:
        path = f"{self.channel.endpoint.prefix}/{call.verb}"
        deadline = asyncio.get_running_loop().time() + self._seconds
        for _ in range(MOST_REDIRECTS):
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
            raise ExtenderError(f"{_failed(call, response)}: it redirects more than {MOST_REDIRECTS} times")
        raise ExtenderError(_failed(call, response))

    async def _send(self, call: Call, path: str, deadline: float) -> Response:
        size = sum(map(len, call.body))
        message = (f"POST {path}{self._headers}{size}\r\n\r\n".encode(), *call.body)
        pool = self.channel.pool
        try:
            return await pool.exchange(message, deadline)
        except ConnectionLostError:
            if call.changes_something:
                raise
            # Other idle connections may be as stale.
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
        # As kube-scheduler has it: whoever asks for HTTPS and names no authority trusts anybody.
        insecure=tls.insecure or (config.enableHTTPS and not has_authority),
        server_name=tls.serverName,
    )
