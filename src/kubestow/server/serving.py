"""The server of the scheduler's pages: every request is authenticated, authorized and answered."""

import asyncio
import socket
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubestow.server.authentication import Authenticator
from kubestow.server.authorities import Trust
from kubestow.server.authorization import Authorizer
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError
from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import Request, Response
from kubestow.server.http.server import Server
from kubestow.server.pages import Answer, Pages
from kubestow.server.tls import ServerContexts
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

LIMITS = Limits(connections=1_000, body=64 * 1024, unsent=1024 * 1024)
"""Clients are few, the only request body is a number, and a client too slow for a stream is disconnected."""
_REFRESH_SECONDS = 60.0
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SAFE = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers for browsers: load content only from this server, never turn text into markup or data into another type."""


async def respond(work: Coroutine[Any, Any, Answer], connection: Connection, method: str) -> None:
    """Await the answer to a request and send it; an exception becomes an error response."""
    try:
        answer = await work
        if isinstance(answer, Awaitable):
            answer = await answer
        if not isinstance(answer, Response):
            answer(connection)
            return
        response = answer
    except ApiError as error:
        response = Response(error.code, msgspec.json.encode(error.status()), headers=error.headers)
    except Exception as error:
        log.unexpected("Request failed", err=error, method=method)
        refusal = ApiError(500, "InternalError", "internal error; see the scheduler's log")
        response = Response(500, msgspec.json.encode(refusal.status()))
    connection.respond(msgspec.structs.replace(response, headers=(*response.headers, *SAFE)))


@dataclass(slots=True)
class SecureServer:
    """The server of the scheduler's pages."""

    pages: Pages
    authenticator: Authenticator
    authorizer: Authorizer
    contexts: ServerContexts
    trust: Trust | None = None
    port: int = 0
    _server: Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, listener: socket.socket) -> None:
        """Start to accept connections on a listening socket."""
        self._server = Server(self._on_request, LIMITS, kept_headers=self.authenticator.needs_header)
        self.port = self._server.start(listener, self.contexts.context)
        self._spawn(self._refresh())

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        for task in self._tasks:
            task.cancel()
        if self._server is not None:
            await self._server.stop()

    def _on_request(self, request: Request, connection: Connection) -> None:
        self._spawn(respond(self._answer(request, connection), connection, request.method))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Request, connection: Connection) -> Answer:
        user = await self.authenticator.authenticate(request, connection)
        await self.authorizer.check(user, request)
        return self.pages.answer(request)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            self.contexts.refresh()
            if self.trust is not None:
                await self.trust.refresh(self.contexts, self.authenticator)
