"""One request to the API server, from the rate limit to the response.

A request waits for its token (the client's own rate limit) and for a slot of the pool, is sent on a kept-alive
connection, and ends in a Response or an exception. After a 429 or 5xx with Retry-After it is retried, within its time
limit; after a 401 the credentials are renewed once; only a GET is repeated after a lost connection, because the server
may have executed anything else.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubestow.api.failures import ConnectionLostError, TimedOutError
from kubestow.client.auth import Auth
from kubestow.client.connection import Connection, Response, Sink
from kubestow.client.dialing import Endpoint
from kubestow.client.errors import api_error
from kubestow.client.pool import Pool
from kubestow.client.ratelimit import TokenBucket
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.client import ClientMetrics
from kubestow.telemetry.metrics.instruments import MAX_RECENT, Observations

log = get_logger(__name__)

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
REQUEST_SECONDS = 60.0
MAX_RETRIES = 10
_LOGGED_WAIT = 1.0
"""Waits for the rate limit that take longer, in seconds, are logged."""
_LOG_INTERVAL = 1.0
"""Seconds between two log lines about the rate limit."""
_TURNS_TO_CLOSE = 3
"""Turns of the event loop until a TLS connection is closed: its protocol, the transport below it, and the socket."""


class Channel:
    """The connections to one server as one user, and the credentials, shared by several clients."""

    def __init__(self, endpoint: Endpoint, pool: Pool, auth: Auth, extra_headers: bytes = b"") -> None:
        self.endpoint = endpoint
        self.pool = pool
        self.auth = auth
        self.extra_headers = extra_headers

    def close(self) -> None:
        self.pool.close()

    async def closed(self) -> None:
        """Close all connections and wait until the event loop has closed their transports."""
        self.pool.close()
        for _ in range(_TURNS_TO_CLOSE):
            await asyncio.sleep(0)


class ApiClient:
    """Sends requests under one user agent and one rate limit.

    With `unlimited_wait`, the wait for the rate limit does not count towards the time limit of a request. With
    `low_priority`, requests of other clients are sent first when the pool is full.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        user_agent: str,
        limiter: TokenBucket | None = None,
        seconds: float = REQUEST_SECONDS,
        metrics: ClientMetrics | None = None,
        unlimited_wait: bool = False,
        low_priority: bool = False,
    ) -> None:
        self.seconds = seconds
        self._low_priority = low_priority
        self._unlimited_wait = unlimited_wait
        self._logged_at = float("-inf")
        self._loop = asyncio.get_running_loop()
        self._pool = channel.pool
        self._auth = channel.auth
        self._limiter = limiter
        self._metrics = metrics or ClientMetrics()
        self._observed: dict[str, list[Observations]] = {}
        """By method: the durations and sizes of the requests, and the sizes of the responses."""
        self._prefix = channel.endpoint.prefix
        self._host = channel.endpoint.authority
        self._static = (
            f" HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: {user_agent}\r\n".encode()
            + _accept(JSON)
            + channel.extra_headers
        )

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = JSON,
        seconds: float | None = None,
        accept: str = JSON,
    ) -> Response:
        """Send a request and return the response. Raises ApiError, TransportError or CredentialsError.

        `path` includes the query. `seconds` limits the total time: waits, retries and response.
        """
        deadline = self._loop.time() + (self.seconds if seconds is None else seconds)
        auth = self._auth.current()
        retries = 0
        renewed = resent = False
        while True:
            if self._limiter is not None:
                delay = self._limiter.reserve()
                if delay > 0.0:
                    deadline = await self._throttle(self._limiter, delay, method, path, deadline)
                self._metrics.rate_limiter_seconds.observe(delay, self._host, method)
            if auth is None:
                auth = await self._renew(None, deadline)
            message = self._message(method, path, auth, body, content_type)
            if accept != JSON:
                message = message.replace(_accept(JSON), _accept(accept), 1)
            started = self._loop.time()
            code, received = "<error>", 0
            try:
                response = await self._pool.exchange((message,), deadline, low_priority=self._low_priority)
                status, received = response.status, len(response.body)
                code = str(status)
            except ConnectionLostError:
                if method != "GET" or resent:
                    raise
                resent = True
                continue
            finally:
                self._count(method, code, self._loop.time() - started, len(message), received)
            if status < 300:
                return response
            if status == 401 and not renewed:
                renewed = True
                rejected, auth = auth, await self._renew(auth, deadline)
                if auth != rejected:
                    self._metrics.request_retries.inc("401", self._host, method)
                    continue
            pause = _retry_delay(response)
            if pause is None or retries == MAX_RETRIES or self._loop.time() + pause >= deadline:
                raise api_error(f"{method} {path}", status, response.body, pause)
            retries += 1
            log.info("Retrying a request", v=4, method=method, path=path, status=status, seconds=pause)
            self._metrics.request_retries.inc(str(status), self._host, method)
            await asyncio.sleep(pause)
            auth = self._auth.current()

    @asynccontextmanager
    async def stream(self, path: str, sink: Sink, seconds: float | None = None) -> AsyncIterator[asyncio.Future[None]]:
        """Send a GET whose body is fed to the sink as it arrives; when it begins, yield the future of its end.

        Not rate limited, as watches of other Kubernetes clients. Raises as `request` does if the response is not 200.
        """
        deadline = self._loop.time() + (self.seconds if seconds is None else seconds)
        auth = self._auth.current()
        if auth is None:
            auth = await self._renew(None, deadline)
        connection, response, ended = await self._open_stream(path, auth, deadline, sink)
        if response.status == 401:
            self._pool.release(connection)
            renewed = await self._renew(auth, deadline)
            connection, response, ended = await self._open_stream(path, renewed, deadline, sink)
        if response.status != 200:
            self._pool.release(connection)
            raise api_error(f"GET {path}", response.status, response.body, _retry_delay(response))
        try:
            yield ended
        finally:
            if not ended.done():
                ended.cancel()
                connection.close()
            elif not ended.cancelled():
                ended.exception()  # marks it as retrieved, also if the caller was cancelled meanwhile
            self._pool.release(connection)

    def _message(self, method: str, path: str, auth: bytes, body: bytes, content_type: str) -> bytes:
        start = f"{method} {self._prefix}{path}".encode()
        if not body:
            return b"".join((start, self._static, auth, b"\r\n"))
        tail = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        return b"".join((start, self._static, auth, tail, body))

    async def _open_stream(
        self, path: str, auth: bytes, deadline: float, sink: Sink
    ) -> tuple[Connection, Response, asyncio.Future[None]]:
        message = self._message("GET", path, auth, b"", JSON)
        started = self._loop.time()
        connection = self._pool.take_idle() or await self._pool.dial(deadline)
        code = "<error>"
        try:
            begun, ended = connection.stream(message, deadline, sink)
            response = await begun
            code = str(response.status)
        except BaseException as error:
            connection.close()
            self._pool.release(connection)
            if isinstance(error, ConnectionLostError) and connection.served > 1:
                # The server closed an idle connection just as it was taken; try another one.
                return await self._open_stream(path, auth, deadline, sink)
            raise
        finally:
            self._count("GET", code, self._loop.time() - started, len(message), 0)
        return connection, response, ended

    def _count(self, method: str, code: str, seconds: float, sent: int, received: int) -> None:
        self._metrics.requests.inc(code, self._host, method)
        observed = self._observed.get(method)
        if observed is None:
            metrics = self._metrics
            histograms = (metrics.request_seconds, metrics.request_bytes, metrics.response_bytes)
            observed = self._observed[method] = [histogram.of(self._host, method) for histogram in histograms]
        durations, request_sizes, response_sizes = observed
        durations.recent.append(seconds)
        request_sizes.recent.append(sent)
        response_sizes.recent.append(received)
        if len(durations.recent) >= MAX_RECENT:
            for observations in observed:
                observations.count()

    async def _throttle(self, limiter: TokenBucket, delay: float, method: str, path: str, deadline: float) -> float:
        """Wait for the rate limit; return the deadline, extended by the delay if the wait is unlimited."""
        if self._unlimited_wait:
            deadline += delay
        elif self._loop.time() + delay > deadline:
            limiter.give_back()
            raise TimedOutError(f"{method} {path}: the client's own rate limit would delay it by {delay:.1f} s")
        if delay > _LOGGED_WAIT and self._loop.time() - self._logged_at > _LOG_INTERVAL:
            self._logged_at = self._loop.time()
            log.info("Waiting for the client's own rate limit", v=3, method=method, path=path, seconds=round(delay, 1))
        await limiter.wait(delay)
        return deadline

    async def _renew(self, rejected: bytes | None, deadline: float) -> bytes:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._auth.renew(rejected)
        except TimeoutError:
            raise TimedOutError("the credentials could not be renewed in time") from None


def _accept(content_type: str) -> bytes:
    return f"Accept: {content_type}\r\n".encode()


def _retry_delay(response: Response) -> float | None:
    """Return the seconds of Retry-After; None if the response allows no retry or the header is not a number."""
    if response.status != 429 and response.status < 500:
        return None
    try:
        return max(0.0, float(int(response.header("retry-after"))))
    except ValueError:
        return None
