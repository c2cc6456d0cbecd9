"""One request to the API server, from rate limit to typed answer.

A request waits for its token (the client's own rate limit) and for room in the pool, is sent on a kept-alive
connection, and ends in a Response or an exception. Answers that ask to come back later (429 and 5xx with Retry-After)
are honoured within the request's time; a 401 renews the credentials once; only a GET is sent again after a lost
connection, because anything else may have been carried out.
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
from kubestow.telemetry.metrics.instruments import MOST_RECENT, Observations

log = get_logger(__name__)

JSON = "application/json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
REQUEST_SECONDS = 60.0
MOST_RETRIES = 10
_NOTICED_WAIT = 1.0
_TOLD_EVERY = 1.0
"""Seconds between two lines about the rate limit."""
_TURNS_TO_CLOSE = 3
"""Of TLS: the protocol, the transport below it, and its socket."""


class Channel:
    """The way to one server as one user: connections and credentials, shared by the clients built on it."""

    def __init__(self, endpoint: Endpoint, pool: Pool, auth: Auth, extra_headers: bytes = b"") -> None:
        self.endpoint = endpoint
        self.pool = pool
        self.auth = auth
        self.extra_headers = extra_headers

    def close(self) -> None:
        self.pool.close()

    async def closed(self) -> None:
        """Close, and let the loop notice: it may be about to end."""
        self.pool.close()
        for _ in range(_TURNS_TO_CLOSE):
            await asyncio.sleep(0)


class ApiClient:
    """Sends requests under one user agent and one rate limit.

    A `patient` one waits for the rate limit as long as that takes: a request's time begins when it may go. A
    `leisurely` one lets the requests of others go first where there is no room for all.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        user_agent: str,
        limiter: TokenBucket | None = None,
        seconds: float = REQUEST_SECONDS,
        metrics: ClientMetrics | None = None,
        patient: bool = False,
        leisurely: bool = False,
    ) -> None:
        self.seconds = seconds
        self._leisurely = leisurely
        self._patient = patient
        self._told_at = float("-inf")
        self._loop = asyncio.get_running_loop()
        self._pool = channel.pool
        self._auth = channel.auth
        self._limiter = limiter
        self._metrics = metrics or ClientMetrics()
        self._observed: dict[str, list[Observations]] = {}
        """By method, how long requests took, how large they were, and their answers."""
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
        """Send a request and return the answer; raises ApiError, TransportError or CredentialsError.

        `path` includes the query. `seconds` limits the whole of it: waiting, retries, answer.
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
                response = await self._pool.exchange((message,), deadline, leisurely=self._leisurely)
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
            if pause is None or retries == MOST_RETRIES or self._loop.time() + pause >= deadline:
                raise api_error(f"{method} {path}", status, response.body, pause)
            retries += 1
            log.info("Trying a request again", v=4, method=method, path=path, status=status, seconds=pause)
            self._metrics.request_retries.inc(str(status), self._host, method)
            await asyncio.sleep(pause)
            auth = self._auth.current()

    @asynccontextmanager
    async def stream(self, path: str, sink: Sink, seconds: float | None = None) -> AsyncIterator[asyncio.Future[None]]:
        """GET whose body goes to the sink as it arrives; yields the future of its end once it has begun.

        Not rate limited, like watches everywhere. Raises as `request` does where the answer is not 200.
        """
        deadline = self._loop.time() + (self.seconds if seconds is None else seconds)
        auth = self._auth.current()
        if auth is None:
            auth = await self._renew(None, deadline)
        connection, response, ended = await self._open_stream(path, auth, deadline, sink)
        if response.status == 401:
            self._pool.put_back(connection)
            renewed = await self._renew(auth, deadline)
            connection, response, ended = await self._open_stream(path, renewed, deadline, sink)
        if response.status != 200:
            self._pool.put_back(connection)
            raise api_error(f"GET {path}", response.status, response.body, _retry_delay(response))
        try:
            yield ended
        finally:
            if not ended.done():
                ended.cancel()
                connection.close()
            elif not ended.cancelled():
                ended.exception()  # seen, even by a caller that was cancelled meanwhile
            self._pool.put_back(connection)

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
            answer, ended = connection.stream(message, deadline, sink)
            response = await answer
            code = str(response.status)
        except BaseException as error:
            connection.close()
            self._pool.put_back(connection)
            if isinstance(error, ConnectionLostError) and connection.served > 1:
                # The server closed an idle connection just as it was taken; the next is another one.
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
        took, request, answer = observed
        took.recent.append(seconds)
        request.recent.append(sent)
        answer.recent.append(received)
        if len(took.recent) >= MOST_RECENT:
            for observations in observed:
                observations.count()

    async def _throttle(self, limiter: TokenBucket, delay: float, method: str, path: str, deadline: float) -> float:
        """Wait as the rate limit asks; returns the deadline, which moves if the client is patient."""
        if self._patient:
            deadline += delay
        elif self._loop.time() + delay > deadline:
            limiter.give_back()
            raise TimedOutError(f"{method} {path}: the client's own rate limit would delay it by {delay:.1f} s")
        if delay > _NOTICED_WAIT and self._loop.time() - self._told_at > _TOLD_EVERY:
            self._told_at = self._loop.time()
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
    """Seconds after which the server wants to be asked again; dates and nonsense count as not given."""
    if response.status != 429 and response.status < 500:
        return None
    try:
        return max(0.0, float(int(response.header("retry-after"))))
    except ValueError:
        return None
