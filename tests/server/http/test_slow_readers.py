"""Clients that do not receive the responses."""

import asyncio
from collections.abc import Callable

import pytest

from kubestow.server.http.connection import Connection
from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import Request, Response, chunk
from kubestow.server.http.sending import SLICE
from support.client import virtualtime
from support.server.talking import GET, TEXT, Client, Run, Served, Tls, get, serving, until

LARGE = 50_000_000
LIMITS = Limits()


class Streams:
    """Answers / with a stream that the test writes to, /large with a large body, /small with a small one."""

    def __init__(self, first: bytes = b"") -> None:
        self.open: list[Connection] = []
        self.lost = 0
        self._first = first

    def __call__(self, request: Request, connection: Connection) -> None:
        if request.raw_path == b"/":
            self.open.append(connection)
            connection.open_stream(TEXT, self._leave, self._first)
        else:
            self.open.append(connection)
            connection.respond(Response(200, b"x" * (LARGE if request.raw_path == b"/large" else 1)))

    def _leave(self) -> None:
        self.lost += 1


async def _gone(served: Served, connection: Connection) -> float:
    """Return the seconds until a connection is closed."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await until(lambda: connection not in served.connections, every=0.5)
    return loop.time() - began


async def _begun(served: Served, streams: Streams, path: str) -> tuple[Client, Connection]:
    client = await served.client(receive_buffer=4096)
    before = len(streams.open)
    client.send(get(path))
    await until(lambda: len(streams.open) > before)
    return client, streams.open[-1]


def test_a_large_response_that_is_not_received() -> None:
    """Little of it is passed to the system, and it is discarded at the time limit; others are served."""
    streams = Streams()

    async def main() -> None:
        async with serving(streams) as served:
            _, connection = await _begun(served, streams, "/large")
            await asyncio.sleep(1.0)
            assert connection._transport.get_write_buffer_size() <= SLICE + 2**16
            assert (await (await served.client()).ask(get("/small"))).body == b"x"
            seconds = await _gone(served, connection)
            assert LIMITS.taking_seconds - 1 <= seconds <= LIMITS.taking_seconds + 2 * LIMITS.sweep_seconds

    virtualtime.run(main())


@pytest.mark.parametrize("path", ["/", "/large"])
def test_tls_hides_nothing(path: str, run: Run, tls: Tls) -> None:
    """A TLS transport does not report the buffer of its socket; little is in it, and the client is disconnected."""
    streams = Streams(b"x" * LARGE)

    async def main() -> None:
        async with serving(streams, Limits(taking_seconds=0.2), tls) as served:
            _, connection = await _begun(served, streams, path)
            while connection in served.connections:
                assert connection._transport.get_write_buffer_size() <= 2**19 + 2 * SLICE
                await asyncio.sleep(0.01)
        assert streams.lost == (path == "/")

    run(main())


def test_a_large_response_arrives_whole(run: Run, tls: Tls) -> None:
    """In slices, with other requests served between them."""
    streams = Streams()

    async def main() -> None:
        async with serving(streams, tls=tls) as served:
            client, other = await served.client(), await served.client()
            client.send(get("/large"))
            assert (await other.ask(get("/small"))).body == b"x"
            assert (await client.answer()).body == b"x" * LARGE
            assert (await client.ask(get("/small"))).body == b"x"

    run(main())


def test_a_slow_reader_that_makes_progress_gets_everything() -> None:
    """It takes minutes, and the connection stays open."""
    streams = Streams()

    async def main() -> None:
        async with serving(streams) as served:
            client = await served.client()
            client.send(get("/large"))
            assert (await client.head()).status == 200
            for _ in range(100):
                await asyncio.sleep(1.0)
                assert await client.exactly(LARGE // 100) == b"x" * (LARGE // 100)
            assert (await client.ask(get("/small"))).body == b"x"

    virtualtime.run(main())


def test_a_stream_whose_reader_falls_behind_is_closed_at_once(run: Run, tls: Tls) -> None:
    """If more than the limit is unsent; the application is notified, and other readers are not affected."""
    streams = Streams()
    piece = chunk(b"x" * 10_000)

    async def main() -> None:
        async with serving(streams, Limits(unsent=1_000_000), tls) as served:
            _, slow = await _begun(served, streams, "/")
            quick_client = await served.client()
            quick_client.send(GET)
            reading = asyncio.create_task(quick_client.rest())
            await until(lambda: len(streams.open) == 2)
            quick = streams.open[1]
            most = written = 0
            while slow in served.connections:
                slow.write(piece)
                quick.write(piece)
                written += len(piece)
                most = max(most, slow._sender.unsent)
                await asyncio.sleep(0)
            assert most <= 1_000_000 + len(piece) + 200
            assert streams.lost == 1
            quick.end_stream()
            await until(lambda: not quick._busy)
            quick.close()
            assert (await reading).count(b"x") >= written // len(piece) * 10_000

    run(main())


def test_the_start_of_a_stream_may_be_larger_than_the_limit(run: Run) -> None:
    """A watch that starts with all objects; chunks before the client has received them are still sent."""
    streams = Streams(chunk(b"x" * 5_000_000))

    async def main() -> None:
        async with serving(streams, Limits(unsent=100_000)) as served:
            client = await served.client(receive_buffer=4096)
            client.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
            await until(lambda: streams.open)
            for _ in range(5):
                streams.open[0].write(chunk(b"z" * 10_000))
            streams.open[0].end_stream()
            assert (await client.rest()).count(b"z") == 50_000

    run(main())


def test_a_stream_whose_reader_stops_is_closed_at_the_time_limit() -> None:
    """Although it is within the limit of bytes."""
    streams = Streams(b"x" * 20_000_000)

    async def main() -> None:
        async with serving(streams) as served:
            _, connection = await _begun(served, streams, "/")
            seconds = await _gone(served, connection)
            assert LIMITS.taking_seconds <= seconds <= LIMITS.taking_seconds + 2 * LIMITS.sweep_seconds
        assert streams.lost == 1

    virtualtime.run(main())


def test_a_reader_that_disconnects_before_the_stream_begins_is_reported() -> None:
    """The application is notified at once, so that it keeps no data for the client."""
    lost: list[str] = []
    late: list[Callable[[], None]] = []

    def application(_: Request, connection: Connection) -> None:
        late.append(lambda: connection.open_stream(TEXT, lambda: lost.append("gone")))

    async def main() -> None:
        async with serving(application) as served:
            client = await served.client()
            client.send(GET)
            await until(lambda: late)
            client.leave()
            await until(lambda: not served.connections)
            late[0]()
        assert lost == ["gone"]

    asyncio.run(main())


def test_a_closing_connection_does_not_wait_for_its_reader_for_ever() -> None:
    """The client requested to close after the response, and then does not receive it."""
    streams = Streams()

    async def main() -> None:
        async with serving(streams) as served:
            client = await served.client(receive_buffer=4096)
            client.send(b"GET /large HTTP/1.1\r\nConnection: close\r\n\r\n")
            await until(lambda: streams.open)
            seconds = await _gone(served, streams.open[0])
            assert LIMITS.taking_seconds <= seconds <= LIMITS.taking_seconds + 2 * LIMITS.sweep_seconds

    virtualtime.run(main())
