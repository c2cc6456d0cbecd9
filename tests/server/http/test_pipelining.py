"""Clients that send requests ahead of the responses."""

import asyncio

from kubestow.server.http.connection import Connection
from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import Request, Response
from support.client import virtualtime
from support.server.talking import GET, Echo, Run, Tls, get, post, serving, until

_READ = 256 * 1024
"""Maximum number of bytes that an event loop reads from a socket at once."""


def test_ten_thousand_requests_at_once_are_answered_in_order(run: Run, tls: Tls) -> None:
    """However many arrive together; only a limited part is buffered, and only as bytes."""
    kept = 0
    echo = Echo()

    def application(request: Request, connection: Connection) -> None:
        nonlocal kept
        kept = max(kept, connection._receiver.unread)
        echo(request, connection)

    async def main() -> None:
        async with serving(application, tls=tls) as served:
            client = await served.client()
            client.send(b"".join(get(f"/{i}") for i in range(10_000)))
            for i in range(10_000):
                assert (await client.answer()).body == b"/%d" % i
            assert 0 < kept <= Limits().pipelined + _READ

    run(main())


def test_others_are_served_between_the_requests_of_one_client() -> None:
    """Each request has its own turn of the event loop."""
    echo = Echo()

    async def main() -> None:
        async with serving(echo) as served:
            crowd, other = await served.client(), await served.client()
            crowd.send(GET * 5000)
            assert (await crowd.answer()).status == 200
            assert (await other.ask(get("/other"))).body == b"/other"
            assert len(echo.requests) < 1000

    asyncio.run(main())


def test_pipelined_requests_are_not_parsed(run: Run) -> None:
    """One request is at the application; the next ones are unparsed bytes, most of them not read yet."""
    echo = Echo(at_once=False)

    async def main() -> None:
        async with serving(echo) as served:
            client = await served.client()
            client.send(b"".join(get(f"/{i}") for i in range(100_000)))
            await until(lambda: echo.requests and echo.connections[0]._reading_paused)
            await asyncio.sleep(0)
            assert len(echo.requests) == 1
            assert echo.connections[0]._receiver.unread <= Limits().pipelined + _READ
            echo.at_once = True
            echo.answer()
            for i in range(10_000):
                assert (await client.answer()).body == b"/%d" % i

    run(main())


def test_unread_responses_do_not_accumulate() -> None:
    """The next request waits until the client receives the response; a client that does not is disconnected."""
    unsent = answered = 0

    def application(request: Request, connection: Connection) -> None:
        nonlocal unsent, answered
        unsent = max(unsent, connection._sender.unsent)
        answered += 1
        connection.respond(Response(200, b"x" * 50_000))

    async def main() -> None:
        async with serving(application) as served:
            client = await served.client(receive_buffer=4096)
            client.send(GET * 10_000)
            await until(lambda: served.connections)
            await until(lambda: not served.connections, every=1.0)
        assert answered < 500
        assert unsent < 200_000

    virtualtime.run(main())


def test_requests_with_bodies_follow_each_other(run: Run) -> None:
    """Known length, chunked, none: each begins where the previous one ends, wherever the bytes are split."""
    chunked = post(b"5\r\nab\r\n\r\r\n3;x=y\r\n\n\r\n\r\n0\r\nX: y\r\n\r\n", Transfer_Encoding="chunked")
    sent = post(b"one\r\n\r\n") + chunked + GET + b"\r\n" + post(b"") + post(b"four")
    bodies = [b"/one\r\n\r\n", b"/ab\r\n\r\n\r\n", b"/", b"/", b"/four"]

    async def main() -> None:
        async with serving(Echo()) as served:
            for step in (1, 2, 3, 7, 50, len(sent)):
                client = await served.client()
                for start in range(0, len(sent), step):
                    await client.send_all(sent[start : start + step])
                    await asyncio.sleep(0)
                assert [(await client.answer()).body for _ in bodies] == bodies

    run(main())
