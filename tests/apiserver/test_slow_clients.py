"""Clients that send slowly, or nothing, do not keep others from the server."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kubestow.server.http.limits import Limits
from support.apiserver.running import TOKEN, Running
from support.polling import until

HEAD = b"GET /version HTTP/1.1\r\nHost: a\r\nX-Slow: "
BODY = f"POST /api/v1/namespaces HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 99999\r\n\r\n{{".encode()
COUNT = 150
LIMITS = Limits(handshake_seconds=1.0, head_seconds=1.0, body_seconds=1.0, closing_seconds=1.0)


@pytest.fixture
def sockets() -> Iterator[Callable[[Running, bool], socket.socket]]:
    """Return a function that opens connections, with TLS or without its handshake, closed after the test."""
    with ExitStack() as opened:

        def connect(plane: Running, tls: bool) -> socket.socket:
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", plane.port)))
            if tls:
                context = ssl.create_default_context(cafile=str(plane.control_plane.ca))
                connection = opened.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1"))
            return connection

        yield connect


def test_hundreds_of_slow_connections_are_closed_while_others_are_served(
    start: Callable[..., Running], sockets: Callable[[Running, bool], socket.socket]
) -> None:
    """Within the time limits of handshake, head and body, although each of them sends a byte now and then."""
    plane = start(limits=LIMITS)
    client = plane.client()
    server = plane.control_plane._server
    assert server is not None
    client.get("/version")
    silent = [sockets(plane, False) for _ in range(COUNT)]
    slow = [sockets(plane, True) for _ in range(COUNT)]
    for number, connection in enumerate(slow):
        connection.sendall(HEAD if number % 2 else BODY)

    def are_closed() -> bool:
        assert client.get("/version")["major"]
        for connection in slow:
            try:
                connection.sendall(b" ")
            except OSError:
                continue
        return plane.inside(lambda: len(server._connections) + len(server._handshaking)) == 1

    until(are_closed)
    assert len(silent) == COUNT
