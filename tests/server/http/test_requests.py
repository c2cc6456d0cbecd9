"""Requests that are too large, invalid requests, and the end of a request."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.server.http.limits import Limits
from kubestow.server.http.receiving import COMMON_HEADERS, Receiver
from support.server.talking import GET, Answer, Client, Echo, Run, get, post, serving

LIMITS = Limits(url=1000, head=4000, headers=20, body=5000)


async def _refused(client: Client) -> Answer:
    """An error is a Status, and the last response of a connection."""
    answer = await client.answer()
    assert answer.headers["connection"] == "close"
    assert json.loads(answer.body)["code"] == answer.status
    assert await client.rest() == b""
    return answer


def _headers(count: int, size: int = 0) -> bytes:
    return b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %b\r\n" % (i, b"x" * size) for i in range(count)) + b"\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(get("/" + "x" * 1000), 414, id="URL"),
        pytest.param(b"GET /" + b"x" * 4000, 414, id="URL that does not end"),
        pytest.param(_headers(1, 4000), 431, id="header"),
        pytest.param(_headers(10, 400), 431, id="headers together"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"x" * 4000, 431, id="header that does not end"),
        pytest.param(_headers(21), 431, id="number of headers"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 200, 431, id="headers that do not end"),
        pytest.param(post(b"", Content_Length="5001"), 413, id="announced body"),
        pytest.param(post(b"", Content_Length="5001", Expect="100-continue"), 413, id="body asked about"),
        pytest.param(post(b"", Content_Length="9" * 18), 413, id="absurd body"),
        pytest.param(post(b"1389\r\n" + b"x" * 5001, Transfer_Encoding="chunked"), 413, id="chunk"),
        pytest.param(post(b"1\r\nx\r\n" * 1000, Transfer_Encoding="chunked"), 413, id="chunks together"),
        pytest.param(post(b"1;" + b"x" * 5000, Transfer_Encoding="chunked"), 413, id="chunk extension"),
        pytest.param(post(b"0\r\n" + b"a: b\r\n" * 1000, Transfer_Encoding="chunked"), 413, id="trailers"),
    ],
)
def test_requests_beyond_a_limit_are_rejected(sent: bytes, status: int, run: Run) -> None:
    """The status names the limit; the application is not called."""
    echo = Echo()

    async def main() -> None:
        async with serving(echo, LIMITS) as served:
            client = await served.client()
            client.send(sent)
            assert (await _refused(client)).status == status
            assert echo.requests == []

    run(main())


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(get("/" + "x" * 980), id="URL"),
        pytest.param(_headers(20), id="number of headers"),
        pytest.param(_headers(10, 380), id="headers together"),
        pytest.param(post(b"x" * 5000), id="body"),
        pytest.param(post(b"1000\r\n" + b"x" * 4096 + b"\r\n0\r\n\r\n", Transfer_Encoding="chunked"), id="chunks"),
    ],
)
def test_requests_just_within_the_limits_are_answered(sent: bytes) -> None:
    """The connection stays open."""

    async def main() -> None:
        async with serving(Echo(), LIMITS) as served:
            client = await served.client()
            assert (await client.ask(sent)).status == 200
            assert (await client.ask(GET)).status == 200

    asyncio.run(main())


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (f"Content-Length: 5\r\n{CHUNKED}", "0\r\n\r\nGET /hidden HTTP/1.1\r\n\r\n", 400),
        (f"{CHUNKED}\r\nContent-Length: 5", "0\r\n\r\n", 400),
        ("Content-Length: 5\r\nContent-Length: 6", "hello!", 400),
        ("Content-Length: 5\r\nContent-Length: 5", "hello", 400),
        ("Content-Length: 5, 6", "hello!", 400),
        ("Content-Length: +5", "hello", 400),
        ("Content-Length: -1", "hello", 400),
        ("Content-Length: 0x5", "hello", 400),
        ("Content-Length: 1_0", "hellohello", 400),
        ("Content-Length:", "hello", 400),
        ("Content-Length : 5", "hello", 400),
        (" Content-Length: 5", "hello", 400),
        ("X: y\r\n Content-Length: 5", "hello", 400),
        ("X: y\rContent-Length: 5", "hello", 400),
        ("X: y\nContent-Length: 5", "hello", 400),
        ("X: y\0", "hello", 400),
        ("Content-Length: " + "9" * 30, "hello", 400),
        ("Transfer-Encoding: chunked, identity", "0\r\n\r\n", 400),
        ("Transfer-Encoding: xchunked", "0\r\n\r\n", 400),
        (f"{CHUNKED}\r\nTransfer-Encoding: identity", "0\r\n\r\n", 400),
        ("Transfer-Encoding:\r\n chunked", "0\r\n\r\n", 400),
        ("Transfer-Encoding: gzip, chunked", "0\r\n\r\n", 501),
        (CHUNKED, "5\nhello\n0\n\n\r\n\r\n", 400),
        (CHUNKED, "5\r\nhelloGET / HTTP/1.1\r\n\r\n", 400),
        (CHUNKED, "ffffffffffffffffff\r\n\r\n", 400),
        (CHUNKED, "-1\r\n\r\n", 400),
        (CHUNKED, "0\r\nContent-Length: 5\r\n\r\n", 400),
        ("Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 5", "hello", 400),
        (f"Upgrade: h2c\r\nConnection: Upgrade\r\n{CHUNKED}", "0\r\n\r\n", 400),
    ],
)
def test_ambiguous_requests_are_rejected(headers: str, body: str, status: int) -> None:
    """The end of its body must be unambiguous: a proxy in front may read it differently."""
    echo = Echo()

    async def main() -> None:
        async with serving(echo) as served:
            client = await served.client()
            client.send(f"POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{body}".encode())
            assert (await _refused(client)).status == status
            assert echo.requests == []

    asyncio.run(main())


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="chunks in HTTP/1.0"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", id="TLS"),
        pytest.param(b"hello\r\n\r\n", id="nothing"),
    ],
)
def test_invalid_requests_are_rejected(sent: bytes) -> None:
    """The status is 400."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client = await served.client()
            client.send(sent)
            assert (await _refused(client)).status == 400

    asyncio.run(main())


def test_trailers_are_not_headers() -> None:
    """A proxy that removes headers may let them pass as trailers."""
    echo = Echo()
    body = b"0\r\nAuthorization: Bearer stolen\r\nAccept: x\r\n\r\n"

    async def main() -> None:
        async with serving(echo) as served:
            client = await served.client()
            assert (await client.ask(post(body, Transfer_Encoding="chunked"))).status == 200

    asyncio.run(main())
    assert echo.requests[0].headers == {b"transfer-encoding": b"chunked"}


def test_a_client_that_waits_before_the_body_gets_a_100_continue(run: Run) -> None:
    """Expect: 100-continue."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client = await served.client()
            assert (await client.ask(post(b"", Content_Length="5", Expect="100-continue"))).status == 100
            assert (await client.ask(b"hello")).body == b"/hello"

    run(main())


def test_protocol_upgrades_are_ignored() -> None:
    """The request is answered as it is, and the connection closed: the following bytes may be in the other protocol."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client = await served.client()
            client.send(b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello")
            answer = await client.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await client.rest() == b""

    asyncio.run(main())


def test_an_error_reaches_a_client_that_still_sends(run: Run) -> None:
    """Its data is read and discarded, so that no reset overtakes the response."""

    async def main() -> None:
        async with serving(Echo()) as served:
            client = await served.client()
            await client.send_all(post(b"x" * 20_000_000))
            assert (await client.answer()).status == 413

    run(main())


@given(
    st.lists(st.one_of(st.none(), st.binary(max_size=50)), min_size=1, max_size=5),
    st.booleans(),
    st.lists(st.integers(1, 60), min_size=1),
)
def test_requests_do_not_depend_on_how_the_bytes_are_split(
    bodies: list[bytes | None], chunked: bool, sizes: list[int]
) -> None:
    """Any number of requests, in pieces of any size."""
    sent = b""
    for body in bodies:
        if body is None:
            sent += GET
        elif chunked:
            pieces = [body[i : i + 7] for i in range(0, len(body), 7)]
            framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])
            sent += post(framed, Transfer_Encoding="chunked")
        else:
            sent += post(body)
    receiver = Receiver(Limits(), COMMON_HEADERS.__contains__)
    found: list[bytes] = []
    at = turn = 0
    while at < len(sent):
        size = sizes[turn % len(sizes)]
        receiver.add(sent[at : at + size])
        at, turn = at + size, turn + 1
        while (request := receiver.next()) is not None:
            found.append(request.body)
    assert found == [body or b"" for body in bodies]
    assert receiver.unread == receiver.progress == 0
