"""One request: what is sent and returned, and the handling of server and network errors."""

import asyncio
import socket

import pytest

from kubestow.api.failures import (
    AlreadyExistsError,
    ApiError,
    BadAnswerError,
    ConflictError,
    ConnectError,
    ConnectionLostError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    ServerFailedError,
    TimedOutError,
    TooManyRequestsError,
)
from kubestow.client.api import ApiClient
from kubestow.client.errors import api_error
from kubestow.client.ratelimit import TokenBucket
from kubestow.telemetry.metrics.client import ClientMetrics
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.virtualtime import run


async def echo(request: Request, answer: Answer) -> None:
    answer.reply(200, {"method": request.method, "target": request.target, "body": request.body.decode()})


def test_sends_method_path_headers_and_body() -> None:
    """A request arrives with the given path, query, content type, user agent and body."""

    async def main() -> None:
        async with serving(echo) as server:
            with opened(server) as channel:
                await client_of(channel).request("POST", "/api/v1/x?timeout=5s", b"{}", "application/y+json")
            [request] = server.requests
            assert (request.method, request.target, request.body) == ("POST", "/api/v1/x?timeout=5s", b"{}")
            assert request.headers["content-type"] == "application/y+json"
            assert request.headers["user-agent"] == "test/1"
            assert request.headers["accept"] == "application/json"
            assert request.headers["host"] == f"127.0.0.1:{server.port}"

    run(main())


def test_keeps_one_connection_for_successive_requests() -> None:
    """Successive requests share a connection."""

    async def main() -> None:
        async with serving(echo) as server:
            with opened(server) as channel:
                client = client_of(channel)
                for _ in range(5):
                    await client.request("GET", "/a")
            assert server.connections == 1

    run(main())


def test_limits_concurrent_requests() -> None:
    """With a limit of two, ten requests use two connections, and all are answered."""
    most = 0
    under_way = 0

    async def slow(request: Request, answer: Answer) -> None:
        nonlocal most, under_way
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        answer.reply(200)

    async def main() -> None:
        async with serving(slow) as server:
            with opened(server, most_requests=2) as channel:
                client = client_of(channel)
                await asyncio.gather(*(client.request("GET", f"/{n}") for n in range(10)))
            assert (most, server.connections, len(server.requests)) == (2, 2, 10)

    run(main())


def test_a_request_without_a_slot_times_out() -> None:
    """A request that waits too long for a slot fails with TimedOutError; the slot is not lost."""

    async def hang_first(request: Request, answer: Answer) -> None:
        if request.path != "/hang":
            answer.reply(200)

    async def main() -> None:
        async with serving(hang_first) as server:
            with opened(server, most_requests=1) as channel:
                client = client_of(channel)
                hanging = asyncio.create_task(client.request("GET", "/hang", seconds=50))
                await asyncio.sleep(0.01)
                with pytest.raises(TimedOutError, match="no slot became free"):
                    await client.request("GET", "/a", seconds=5)
                with pytest.raises(TimedOutError):
                    await hanging
                assert (await client.request("GET", "/b", seconds=5)).status == 200

    run(main())


def test_no_answer_in_time() -> None:
    """A request without a response ends at its time limit, and so does its connection."""

    async def silent(request: Request, answer: Answer) -> None:
        await answer.client_left()

    async def main() -> None:
        async with serving(silent) as server:
            with opened(server) as channel:
                started = asyncio.get_running_loop().time()
                with pytest.raises(TimedOutError):
                    await client_of(channel).request("POST", "/a", b"{}", seconds=7)
                assert asyncio.get_running_loop().time() - started == pytest.approx(7, abs=0.5)

    run(main())


def test_lost_post_is_not_sent_again() -> None:
    """A POST whose connection is lost may have been executed: the caller gets an error, and it is not repeated."""

    async def drop(request: Request, answer: Answer) -> None:
        answer.drop()

    async def main() -> None:
        async with serving(drop) as server:
            with opened(server) as channel, pytest.raises(ConnectionLostError, match="before an answer"):
                await client_of(channel).request("POST", "/a", b"{}")
            assert len(server.requests) == 1

    run(main())


def test_lost_get_is_sent_once_more() -> None:
    """A GET on a connection that the server closes meanwhile is repeated on another."""

    answered: list[str] = []

    async def drop_first(request: Request, answer: Answer) -> None:
        answered.append(request.path)
        if len(answered) == 1:
            answer.drop()
        else:
            answer.reply(200, {"ok": True})

    async def main() -> None:
        async with serving(drop_first) as server:
            with opened(server) as channel:
                assert (await client_of(channel).request("GET", "/a")).body == b'{"ok": true}'

    run(main())
    assert answered == ["/a", "/a"]


def test_refused_connection() -> None:
    """If there is no server, the error is a ConnectError that names the address."""

    async def main() -> None:
        with opened(port) as channel, pytest.raises(ConnectError, match=f"127.0.0.1:{port}: connection refused$"):
            await client_of(channel).request("GET", "/a")

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        run(main())


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 banana\r\n\r\n", b"\x16\x03\x01\x00\x01", b"{}\n"]
)
def test_what_is_not_http(garbage: bytes) -> None:
    """If the peer does not use HTTP, the error is a BadAnswerError."""

    async def speak(request: Request, answer: Answer) -> None:
        answer.raw(garbage)

    async def main() -> None:
        async with serving(speak) as server:
            with opened(server) as channel, pytest.raises(BadAnswerError):
                await client_of(channel).request("POST", "/a", b"{}")

    run(main())


def test_headers_without_end() -> None:
    """Endless headers do not exhaust the memory."""

    async def babble(request: Request, answer: Answer) -> None:
        answer.raw(b"HTTP/1.1 200 OK\r\n")
        for _ in range(40):
            answer.raw(b"X-More: yes\r\n" * 4_096)
            await asyncio.sleep(0.001)

    async def main() -> None:
        async with serving(babble) as server:
            with opened(server) as channel, pytest.raises(BadAnswerError, match="headers of the answer are larger"):
                await client_of(channel).request("POST", "/a", b"{}")

    run(main())


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_answer_cut_into_pieces(cut: int) -> None:
    """A response is the same wherever the network splits it."""

    async def pieces(request: Request, answer: Answer) -> None:
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\nLOCATION: /b\r\n\r\n" + b'{"some":"json"}'[:14]
        answer.raw(whole[:cut])
        await asyncio.sleep(0.001)
        answer.raw(whole[cut:])

    async def main() -> None:
        async with serving(pieces) as server:
            with opened(server) as channel:
                response = await client_of(channel).request("GET", "/a")
                assert response.body == b'{"some":"json"'
                assert (response.header("location"), response.header("retry-after")) == ("/b", "")

    run(main())


def test_body_until_the_connection_closes() -> None:
    """Without a length the body ends with the connection, which is not used again."""

    async def old(request: Request, answer: Answer) -> None:
        answer.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf")
        answer.raw(b"half")
        answer.drop()

    async def main() -> None:
        async with serving(old) as server:
            with opened(server) as channel:
                client = client_of(channel)
                assert (await client.request("GET", "/a")).body == b"halfhalf"
                await client.request("GET", "/b")
            assert server.connections == 2

    run(main())


def test_a_connection_for_one_request_is_closed_on_this_side() -> None:
    """The client closes the connection itself if the server accepts no further request."""
    left = asyncio.Event()

    async def last(request: Request, answer: Answer) -> None:
        answer.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        await answer.client_left()
        left.set()

    async def main() -> None:
        async with serving(last) as server:
            with opened(server) as channel:
                await client_of(channel).request("GET", "/a")
                await asyncio.wait_for(left.wait(), 10)

    run(main())


def test_interim_responses_are_ignored() -> None:
    """A 1xx response is not the final one."""

    async def interim(request: Request, answer: Answer) -> None:
        answer.raw(b"HTTP/1.1 103 Early Hints\r\nLocation: x\r\n\r\n")
        answer.reply(201, {"a": 1}, Location="y")

    async def main() -> None:
        async with serving(interim) as server:
            with opened(server) as channel:
                client = client_of(channel)
                assert (await client.request("POST", "/a", b"{}")).header("location") == "y"
                assert (await client.request("POST", "/a", b"{}")).status == 201
            assert server.connections == 1

    run(main())


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "AlreadyExists", AlreadyExistsError),
        (409, "Conflict", ConflictError),
        (410, "Expired", GoneError),
        (429, "", TooManyRequestsError),
        (500, "InternalError", ServerFailedError),
        (503, "", ServerFailedError),
        (418, "", ApiError),
    ],
)
def test_errors_are_typed_and_carry_the_status(code: int, reason: str, kind: type[ApiError]) -> None:
    """An error response becomes the exception of its reason, with the server's message."""

    async def refuse(request: Request, answer: Answer) -> None:
        answer.error(code, reason, "because")

    async def main() -> None:
        async with serving(refuse) as server:
            with opened(server) as channel:
                with pytest.raises(kind, match="because") as caught:
                    await client_of(channel).request("PUT", "/a/b", b"{}")
                assert type(caught.value) is kind
                assert (caught.value.code, caught.value.status.reason) == (code, reason)
                assert caught.value.status.message == "because"

    run(main())


def test_an_error_of_the_api_server_has_no_prefix() -> None:
    """Its message goes into a pod's condition and event without a prefix."""
    body = b'{"kind":"Status","reason":"Forbidden","code":403,"message":"pods \\"a\\" is forbidden: not today"}'
    assert str(api_error("POST /a/binding", 403, body)) == 'pods "a" is forbidden: not today'


def test_an_error_without_a_message_names_the_request() -> None:
    """If the server sends no message, the error consists of the request and the code."""
    body = b'{"kind":"Status","reason":"Forbidden","code":403}'
    assert str(api_error("POST /a/binding", 403, body)) == "POST /a/binding: 403 Forbidden"
    assert str(api_error("GET /a", 500, b"")) == "GET /a: 500 without a message"
    assert str(api_error("GET /a", 404, b"404 page not found\n")) == "GET /a: 404 page not found"


def test_error_of_something_in_between() -> None:
    """The beginning of a proxy's error page is quoted, with the request."""
    error = api_error("GET /a", 502, b"<html>" + b"bad gateway " * 1000)
    assert str(error).startswith("GET /a: 502 <html>")
    assert type(error) is ServerFailedError
    assert "bad gateway" in str(error)
    assert len(str(error)) < 400


def test_retry_after_is_honoured() -> None:
    """429 with Retry-After is retried after that time, and so is 503."""

    async def busy(request: Request, answer: Answer) -> None:
        if len(seen) == 0:
            answer.error(429, "TooManyRequests", Retry_After="3")
        elif len(seen) == 1:
            answer.error(503, Retry_After="4")
        else:
            answer.reply(201)
        seen.append(asyncio.get_running_loop().time())

    async def main() -> None:
        async with serving(busy) as server:
            with opened(server) as channel:
                assert (await client_of(channel).request("POST", "/a", b"{}")).status == 201
        assert seen[1] - seen[0] == pytest.approx(3, abs=0.5)
        assert seen[2] - seen[1] == pytest.approx(4, abs=0.5)

    seen: list[float] = []
    run(main())


@pytest.mark.parametrize("header", [{}, {"Retry_After": "soon"}, {"Retry_After": "600"}])
def test_no_retry_without_a_usable_retry_after(header: dict[str, str]) -> None:
    """Without Retry-After, or with one beyond the time limit, the error is raised at once."""

    async def busy(request: Request, answer: Answer) -> None:
        answer.error(429, "TooManyRequests", "slow down", **header)

    async def main() -> None:
        async with serving(busy) as server:
            with opened(server) as channel, pytest.raises(TooManyRequestsError):
                await client_of(channel).request("GET", "/a")
            assert len(server.requests) == 1

    run(main())


def test_cancelled_request_frees_its_slot() -> None:
    """Cancelling a request closes its connection and frees the slot for the next."""

    async def hang(request: Request, answer: Answer) -> None:
        if request.path == "/hang":
            await answer.client_left()
        else:
            answer.reply(200)

    async def main() -> None:
        async with serving(hang) as server:
            with opened(server, most_requests=1) as channel:
                client = client_of(channel)
                task = asyncio.create_task(client.request("GET", "/hang"))
                await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert (await client.request("GET", "/a")).status == 200
            assert server.connections == 2

    run(main())


def test_rate_limit_paces_requests() -> None:
    """After the burst, requests are sent at the configured rate, in order."""
    times: list[float] = []

    async def note(request: Request, answer: Answer) -> None:
        times.append(asyncio.get_running_loop().time())
        answer.reply(200)

    async def main() -> None:
        async with serving(note) as server:
            with opened(server) as channel:
                limiter = TokenBucket(2.0, 3, asyncio.get_running_loop())
                client = client_of(channel, limiter)
                await asyncio.gather(*(client.request("GET", f"/{n}") for n in range(7)))
            assert [request.path for request in server.requests] == [f"/{n}" for n in range(7)]
        assert times[2] - times[0] == pytest.approx(0, abs=0.2)
        assert [round(2 * (time - times[0])) for time in times[3:]] == [1, 2, 3, 4]

    run(main())


def test_rate_limit_beyond_the_time_limit_fails_at_once() -> None:
    """A request that its own rate limit would delay too long fails at once and gives its token back."""

    async def main() -> None:
        async with serving(echo) as server:
            with opened(server) as channel:
                limiter = TokenBucket(0.1, 1, asyncio.get_running_loop())
                client = client_of(channel, limiter, seconds=5)
                await client.request("GET", "/a")
                with pytest.raises(TimedOutError, match="rate limit"):
                    await client.request("GET", "/b")
                await asyncio.sleep(9.9)
                await client.request("GET", "/c")

    run(main())


def test_wait_for_the_rate_limit_can_be_unlimited() -> None:
    """With `unlimited_wait` a request's time starts when the rate limit lets it go."""

    async def main() -> None:
        async with serving(echo) as server:
            with opened(server) as channel:
                limiter = TokenBucket(0.1, 1, asyncio.get_running_loop())
                client = ApiClient(channel, user_agent="test", limiter=limiter, seconds=5, unlimited_wait=True)
                await client.request("GET", "/a")
                await client.request("GET", "/b")

    run(main())


def test_every_attempt_is_counted() -> None:
    """Requests are counted by code, host and verb, with time and sizes; retries are also counted separately."""
    metrics = ClientMetrics()

    async def flaky(request: Request, answer: Answer) -> None:
        if request.path == "/drop":
            answer.drop()
        elif not metrics.request_retries.read():
            answer.error(503, Retry_After="1")
        else:
            answer.reply(200)

    async def main() -> None:
        async with serving(flaky) as server:
            with opened(server) as channel:
                client = client_of(channel, metrics=metrics)
                await client.request("PUT", "/a", b"{}")
                with pytest.raises(ConnectionLostError):
                    await client.request("POST", "/drop", b"{}")

    run(main())
    assert [(code, verb) for code, _, verb in metrics.requests.read()] == [
        ("503", "PUT"),
        ("200", "PUT"),
        ("<error>", "POST"),
    ]
    assert [code for code, _, _ in metrics.request_retries.read()] == ["503"]
    for sizes in (metrics.request_bytes, metrics.request_seconds, metrics.response_bytes):
        assert [(verb, sum(seen.counts)) for (_, verb), seen in sizes.read().items()] == [("PUT", 2), ("POST", 1)]
    assert all(seen.total > 20 for seen in metrics.request_bytes.read().values())
    assert metrics.rate_limiter_seconds.read() == {}
