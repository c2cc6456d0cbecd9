"""GET requests of plugins to servers such as Prometheus."""

import asyncio

import pytest

from kubestow.api.failures import BadAnswerError, CallError
from kubestow.client.http import HttpClient
from kubestow.clock import SystemClock
from support.client.scripted import Answer, Request, serving


async def _script(request: Request, answer: Answer) -> None:
    match request.path:
        case "/prefix/query":
            answer.reply(200, {"query": request.query, "token": request.headers.get("authorization")})
        case "/page":
            answer.reply(200, b"<html>")
        case _:
            answer.reply(503, b"the store is not ready")


def test_json_is_fetched_and_problems_are_named() -> None:
    """The connection is kept; a status, and an answer that is not JSON, are errors with the URL."""

    async def scenario() -> None:
        client = HttpClient("test/1", SystemClock())
        async with serving(_script) as server:
            root = f"http://127.0.0.1:{server.port}"
            found = await client.get_json(
                f"{root}/prefix/query?step=30", params={"query": "avg(a b)"}, headers={"Authorization": "Bearer t"}
            )
            assert found == {"query": {"step": "30", "query": "avg(a b)"}, "token": "Bearer t"}
            with pytest.raises(CallError, match=f"^GET {root}: status 503: the store is not ready$"):
                await client.get_json(root)
            with pytest.raises(BadAnswerError, match="the answer is not JSON"):
                await client.get_json(f"{root}/page")
            assert server.connections == 1
            assert {request.headers["user-agent"] for request in server.requests} == {"test/1"}
        client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("prometheus:9090", "a URL is like http://"),
        ("http://user:password@host/", "credentials are headers"),
        ("http://host/\r\nX: y", "line break"),
    ],
)
def test_an_invalid_url_is_refused(url: str, message: str) -> None:
    """The message does not repeat a URL with a password."""

    async def scenario() -> None:
        await HttpClient("test/1", SystemClock()).get_json(url, headers={"A": "b\r\n"})

    with pytest.raises(ValueError, match=message) as raised:
        asyncio.run(scenario())
    assert "password" not in str(raised.value)
