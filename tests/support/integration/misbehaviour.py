"""Faults of a server, drawn at random with a seed, in front of a working one."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request, Response, chunk
from support.integration.cluster import Application

Fault = Callable[[Application, Request, Connection], None]


class _ResponseReplaced:
    """A connection whose response is replaced."""

    def __init__(self, connection: Connection, instead: Callable[[Response], None]) -> None:
        self._connection = connection
        self.respond = instead

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def _refused(code: int, reason: str, **headers: str) -> Response:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(code, msgspec.json.encode(ApiError(code, reason, "injected").status()), headers=named)


def drop(_: Application, __: Request, connection: Connection) -> None:
    """Break the connection before the request is read."""
    connection.abort()


def fail(_: Application, __: Request, connection: Connection) -> None:
    connection.respond(_refused(500, "InternalError"))


def conflict(_: Application, __: Request, connection: Connection) -> None:
    """Respond that another client has changed the object."""
    connection.respond(_refused(409, "Conflict"))


def ask_to_wait(_: Application, __: Request, connection: Connection) -> None:
    connection.respond(_refused(429, "TooManyRequests", Retry_After="1"))


def stall(_: Application, __: Request, ___: Connection) -> None:
    """Never respond."""


def lose_the_answer(application: Application, request: Request, connection: Connection) -> None:
    """Execute the request, but abort the connection instead of responding."""
    application(request, _ResponseReplaced(connection, lambda _: connection.abort()))  # type: ignore[arg-type]


def garble_the_answer(application: Application, request: Request, connection: Connection) -> None:
    """Execute the request, and respond with something other than JSON."""

    def garbled(response: Response) -> None:
        connection.respond(Response(response.status, b'{"kind": "Stat'))

    application(request, _ResponseReplaced(connection, garbled))  # type: ignore[arg-type]


def tear_the_watch(application: Application, request: Request, connection: Connection) -> None:
    """End a watch in the middle of a line."""

    def tear() -> None:
        connection.write(b'20\r\n{"type": "ADDED", "obj')
        connection.abort()

    application(request, connection)
    asyncio.get_running_loop().call_later(0.2, tear)


def nonsense_in_the_watch(application: Application, request: Request, connection: Connection) -> None:
    """Send a line in a watch that is not an event."""
    application(request, connection)
    asyncio.get_running_loop().call_later(0.2, connection.write, chunk(b"<html>gateway</html>\n"))


def refuse(path: str, code: int, reason: str) -> "Callable[[Application], Application]":
    """Return a wrapper that always rejects requests with this path prefix."""

    def wrap(application: Application) -> Application:
        def answer(request: Request, connection: Connection) -> None:
            if request.path.startswith(path):
                connection.respond(_refused(code, reason))
            else:
                application(request, connection)

        return answer

    return wrap


def expire_the_watch(_: Application, __: Request, connection: Connection) -> None:
    """Respond to a watch with 410: its position is too old."""
    connection.respond(_refused(410, "Expired"))


OF_REQUESTS: tuple[Fault, ...] = (drop, fail, ask_to_wait, stall, lose_the_answer, garble_the_answer)
OF_WATCHES: tuple[Fault, ...] = (drop, fail, expire_the_watch, tear_the_watch, nonsense_in_the_watch)


class Misbehaving:
    """Wraps an application; a share of the requests fails, until `behave` is called."""

    def __init__(self, seed: int, likelihood: float = 0.2) -> None:
        self._chance = random.Random(seed)
        self._likelihood = likelihood
        self.happened: dict[str, int] = {}

    def behave(self) -> None:
        self._likelihood = 0.0

    def __call__(self, application: Application) -> Application:
        def answer(request: Request, connection: Connection) -> None:
            watches = b"watch=" in request.raw_query
            # Watches are few, so they fail more often.
            if self._chance.random() >= (2 * self._likelihood if watches else self._likelihood):
                application(request, connection)
                return
            fault = self._chance.choice(OF_WATCHES if watches else OF_REQUESTS)
            self.happened[fault.__name__] = self.happened.get(fault.__name__, 0) + 1
            fault(application, request, connection)

        return answer
