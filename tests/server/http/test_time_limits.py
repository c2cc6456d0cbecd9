"""Slow clients and applications. Time is virtual, and the limits are the defaults."""

import asyncio

from kubestow.server.http.connection import Connection
from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import Request, Response, chunk
from support.client.virtualtime import run
from support.server.talking import GET, TEXT, Client, Echo, Served, Tls, get, post, serving, until

LIMITS = Limits()
SLACK = 2.1 * LIMITS.sweep_seconds
"""Maximum delay of the sweep after a time limit."""


class Clock:
    """Measures durations."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    def check(self, seconds: float) -> None:
        """Check that the elapsed time is the limit, or slightly more."""
        assert seconds <= self._loop.time() - self._began <= seconds + SLACK


async def _served_on(served: Served) -> None:
    """Check that other clients are served."""
    assert (await (await served.client()).ask(get("/other"))).body == b"/other"


async def _drip(client: Client, byte: bytes, seconds: float) -> None:
    while True:
        client.send(byte)
        await asyncio.sleep(seconds)


async def _cut_while_dripping(client: Client, byte: bytes) -> int:
    dripping = asyncio.create_task(_drip(client, byte, 0.5))
    answer = await client.answer()
    dripping.cancel()
    return answer.status


def test_half_a_head() -> None:
    """408 at the time limit."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client, clock = await served.client(), Clock()
            client.send(GET[:-2])
            await _served_on(served)
            assert (await client.answer()).status == 408
            clock.check(LIMITS.head_seconds)
            assert await client.rest() == b""

    run(main())


def test_a_head_that_arrives_byte_by_byte() -> None:
    """Single bytes do not extend the time limit."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client, clock = await served.client(), Clock()
            client.send(b"GET / HTTP/1.1\r\nX: ")
            assert await _cut_while_dripping(client, b"x") == 408
            clock.check(LIMITS.head_seconds)

    run(main())


def test_a_connection_without_a_request() -> None:
    """It is closed without a response, with or without empty lines."""

    async def main() -> None:
        async with serving(Echo()) as served:
            silent, lines, clock = await served.client(), await served.client(), Clock()
            dripping = asyncio.create_task(_drip(lines, b"\r\n\r\n", 0.5))
            assert (await silent.rest(), await lines.rest()) == (b"", b"")
            dripping.cancel()
            clock.check(LIMITS.head_seconds)

    run(main())


def test_half_a_body() -> None:
    """408 at the time limit."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client, clock = await served.client(), Clock()
            client.send(post(b"x" * 1000)[:-1])
            await _served_on(served)
            assert (await client.answer()).status == 408
            clock.check(LIMITS.body_seconds)
            assert await client.rest() == b""

    run(main())


def test_a_body_that_arrives_byte_by_byte() -> None:
    """Single bytes hardly extend the time limit, with a known length and in chunks."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client, clock = await served.client(), Clock()
            client.send(post(b"", Content_Length="1000"))
            assert await _cut_while_dripping(client, b"x") == 408
            clock.check(LIMITS.body_seconds)
            client, clock = await served.client(), Clock()
            client.send(post(b"", Transfer_Encoding="chunked"))
            assert await _cut_while_dripping(client, b"4\r\n\r\n\r\n\r\n") == 408
            clock.check(LIMITS.body_seconds)

    run(main())


def test_a_slow_body_that_makes_progress_is_waited_for() -> None:
    """A mebibyte over a slow connection, which takes minutes."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client, clock = await served.client(), Clock()
            client.send(post(b"", Content_Length=str(2**20)))
            for _ in range(128):
                client.send(b"x" * 8192)
                await asyncio.sleep(1.0)
            assert len((await client.answer()).body) == 1 + 2**20
            clock.check(128.0)

    run(main())


def test_an_idle_connection() -> None:
    """It is kept for a while, then closed without a response."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client, clock = await served.client(), Clock()
            assert (await client.ask(GET)).status == 200
            assert await client.rest() == b""
            clock.check(LIMITS.idle_seconds)

    run(main())


def test_a_connection_that_is_used_occasionally() -> None:
    """It is never closed."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client = await served.client()
            for seconds in (LIMITS.head_seconds - 1, *[LIMITS.idle_seconds - 1] * 3):
                await asyncio.sleep(seconds)
                assert (await client.ask(GET)).status == 200

    run(main())


def test_a_stream_is_never_idle() -> None:
    """Without any data, too; after its end the connection can be used again."""
    streams: list[Connection] = []

    def application(request: Request, connection: Connection) -> None:
        if request.raw_path == b"/":
            streams.append(connection)
            connection.open_stream(TEXT, lambda: None)
        else:
            connection.respond(Response(200, b"ok"))

    async def main() -> None:
        async with serving(application) as served:
            client = await served.client()
            assert (await client.ask(GET)).status == 200
            await asyncio.sleep(3 * LIMITS.idle_seconds)
            streams[0].write(chunk(b"at last"))
            streams[0].end_stream()
            assert await client.read(100) == b"7\r\nat last\r\n0\r\n\r\n"
            assert (await client.ask(get("/more"))).body == b"ok"

    run(main())


def test_an_application_that_does_not_answer() -> None:
    """504, only for this client; a later response is discarded."""
    stuck, echo = Echo(at_once=False), Echo()

    def application(request: Request, connection: Connection) -> None:
        (stuck if request.raw_path == b"/" else echo)(request, connection)

    async def main() -> None:
        async with serving(application) as served:
            client, clock = await served.client(), Clock()
            client.send(GET + GET)
            await _served_on(served)
            assert (await client.answer()).status == 504
            clock.check(LIMITS.answer_seconds)
            stuck.answer()
            assert await client.rest() == b""
            assert len(stuck.requests) == 1

    run(main())


def test_a_client_that_stays_after_an_error() -> None:
    """Its connection is closed, even if it still sends."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client = await served.client()
            assert (await client.ask(b"nonsense\r\n\r\n")).status == 400
            clock = Clock()
            dripping = asyncio.create_task(_drip(client, b"more", 0.5))
            await until(lambda: not served.connections)
            dripping.cancel()
            clock.check(LIMITS.closing_seconds)

    run(main())


def test_a_tls_handshake_that_is_not_completed(tls: Tls) -> None:
    """The connection is closed, and other handshakes succeed meanwhile."""

    async def main() -> None:
        async with serving(Echo(), tls=tls) as served:
            clock = Clock()
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(b"\x16\x03\x01\x02\x00")
            await _served_on(served)
            assert await Client(reader, writer).rest() == b""
            clock.check(LIMITS.handshake_seconds)
            assert not served.server._handshaking
            writer.close()

    run(main())
