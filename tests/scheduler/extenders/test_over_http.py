"""Calls to extenders over real sockets: requests, TLS, and every kind of misbehaviour.

The clock jumps, so that waiting for a timeout takes no time.
"""

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kubestow import config
from kubestow.client.errors import CredentialsError
from kubestow.scheduler.extenders import client as extender_client
from kubestow.scheduler.extenders.client import ExtenderClient
from kubestow.scheduler.extenders.extender import Call, Extender, ExtenderError
from support.client.authority import Authority
from support.client.doubles import FixedClock
from support.client.scripted import Answer, Request, Script, ScriptedServer, serving
from support.client.virtualtime import run
from support.scenarios.extending import HEAD

Asking = Callable[[Callable[[str], Awaitable[Any]], ScriptedServer], Awaitable[None]]


async def asking(
    script: Script,
    talk: Asking,
    fields: str = "",
    *,
    tls: ssl.SSLContext | None = None,
    may_act: bool = True,
) -> None:
    """Run a test with an extender: it makes calls by their verb, and gets bytes or an ExtenderError."""
    async with serving(script, tls) as server:
        scheme = "http" if tls is None else "https"
        url = f"{scheme}://127.0.0.1:{server.port}/prefix/"
        text = f"{HEAD}extenders: [{{urlPrefix: '{url}', filterVerb: filter, bindVerb: bind, {fields}}}]"
        [configured] = config.load(text).extenders
        client = ExtenderClient([configured], FixedClock(), "kubestow/test", lambda: may_act)
        extender = Extender(0, configured)

        async def ask(verb: str) -> Any:
            [answer] = await client.ask([Call(extender, verb, (b'{"a":', b"1}"))])
            return answer

        try:
            await talk(ask, server)
        finally:
            client.close()


async def accept(request: Request, answer: Answer) -> None:
    answer.reply(200, {"path": request.path})


def message(answer: Any, server: ScriptedServer) -> str:
    """Return the message of an error, without the port."""
    assert isinstance(answer, ExtenderError)
    return str(answer).replace(f"127.0.0.1:{server.port}", "X")


def test_a_call() -> None:
    """A POST of JSON below the prefix, on a connection that is kept."""

    async def talk(ask: Any, server: ScriptedServer) -> None:
        assert await ask("filter") == b'{"path": "/prefix/filter"}'
        assert await ask("bind") == b'{"path": "/prefix/bind"}'
        first = server.requests[0]
        assert (first.method, first.body) == ("POST", b'{"a":1}')
        assert first.headers["content-type"] == "application/json"
        assert first.headers["user-agent"] == "kubestow/test"
        assert server.connections == 1

    run(asking(accept, talk))


def test_concurrent_calls() -> None:
    """All calls are sent before the first one is answered."""

    async def talk(ask: Any, server: ScriptedServer) -> None:
        assert await asyncio.gather(*(ask("filter") for _ in range(5))) == [b"{}"] * 5
        assert server.connections == 5

    all_are_there = asyncio.Barrier(5)

    async def script(_: Request, answer: Answer) -> None:
        await all_are_there.wait()
        answer.reply(200)

    run(asking(script, talk))


async def error_500(_: Request, answer: Answer) -> None:
    answer.reply(500, b"boom")


async def hangs(_: Request, answer: Answer) -> None:
    await answer.client_left()


async def trickles(_: Request, answer: Answer) -> None:
    answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not answer.gone.done():
        answer.raw(b"x")
        await asyncio.sleep(1.0)


async def closes(_: Request, answer: Answer) -> None:
    answer.drop()


async def closes_midway(_: Request, answer: Answer) -> None:
    answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[")
    answer.drop()


async def speaks_no_http(_: Request, answer: Answer) -> None:
    answer.raw(b"SSH-2.0-OpenSSH_9.6\r\n")


async def huge(_: Request, answer: Answer) -> None:
    answer.reply(200, b"x" * 2000)


async def redirects_elsewhere(_: Request, answer: Answer) -> None:
    answer.reply(308, Location="http://elsewhere.example/filter")


async def redirects_for_ever(_: Request, answer: Answer) -> None:
    answer.reply(307, Location="/prefix/filter")


async def moved(_: Request, answer: Answer) -> None:
    answer.reply(302, Location="/prefix/other")


URL = "http://X/prefix/filter"
TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (error_500, f"failed filter with extender at URL {URL}, code 500"),
        (hangs, f'Post "{URL}": {TIMED_OUT}'),
        (trickles, f'Post "{URL}": {TIMED_OUT}'),
        (closes, f'Post "{URL}": the server closed the connection before an answer came'),
        (closes_midway, f'Post "{URL}": the server closed the connection in the middle of the answer'),
        (speaks_no_http, f'Post "{URL}": the answer is not HTTP/1.1: '),
        (huge, f'Post "{URL}": the answer is larger than 1000 bytes'),
        (
            redirects_elsewhere,
            f"failed filter with extender at URL {URL}, code 308: it redirects to http://elsewhere.example/filter",
        ),
        (
            redirects_for_ever,
            f"failed filter with extender at URL {URL}, code 307: it redirects more than 10 times",
        ),
        (moved, f"failed filter with extender at URL {URL}, code 302"),
    ],
)
def test_misbehaviour(script: Script, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call ends within httpTimeout with a message that names the extender."""
    monkeypatch.setattr(extender_client, "MAX_ANSWER_BYTES", 1000)

    async def talk(ask: Any, server: ScriptedServer) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        assert message(await ask("filter"), server).startswith(expected)
        assert int(loop.time() - started) <= 3

    run(asking(script, talk, "httpTimeout: 3s"))


def test_a_refused_connection() -> None:
    """The error names the address."""

    async def talk() -> None:
        configured = config.load(f"{HEAD}extenders: [{{urlPrefix: 'http://127.0.0.1:1', filterVerb: f}}]").extenders
        client = ExtenderClient(configured, FixedClock(), "kubestow/test", lambda: True)
        [answer] = await client.ask([Call(Extender(0, configured[0]), "f", (b"{}",))])
        client.close()
        assert str(answer).startswith('Post "http://127.0.0.1:1/f": cannot connect to 127.0.0.1:1: ')

    run(talk())


def test_a_redirect_at_the_same_server_is_followed() -> None:
    """The body is sent again, as by Go's client for 307 and 308."""

    async def script(request: Request, answer: Answer) -> None:
        if request.path.endswith("/"):
            answer.reply(200, request.body)
        else:
            answer.reply(307, Location=f"{request.path}/?x=1")

    async def talk(ask: Any, server: ScriptedServer) -> None:
        assert await ask("filter") == b'{"a":1}'
        assert server.requests[-1].target == "/prefix/filter/?x=1"

    run(asking(script, talk))


@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_a_closed_idle_connection(verb: str) -> None:
    """A query is repeated once; a binding is not, since it may have been carried out."""

    async def script(request: Request, answer: Answer) -> None:
        if len(server_of) and server_of[0].connections == 1 and len(server_of[0].requests) == 2:
            answer.drop()
        else:
            answer.reply(200)

    server_of: list[ScriptedServer] = []

    async def talk(ask: Any, server: ScriptedServer) -> None:
        server_of.append(server)
        assert await ask("filter") == b"{}"
        answer = await ask(verb)
        if verb == "filter":
            assert answer == b"{}"
            assert server.connections == 2
        else:
            assert "closed the connection" in message(answer, server)
            assert len(server.requests) == 2

    run(asking(script, talk))


def test_without_leadership_no_extender_is_called() -> None:
    """An extender must not bind for two schedulers."""

    async def talk(ask: Any, server: ScriptedServer) -> None:
        assert "not the leader" in message(await ask("bind"), server)
        assert server.requests == []

    run(asking(accept, talk, may_act=False))


def test_a_retired_connection() -> None:
    """The call in progress is answered, then the connections are closed; a late call is answered as well."""

    async def script(request: Request, answer: Answer) -> None:
        await asyncio.sleep(1.0)
        answer.reply(200)

    async def main() -> None:
        async with serving(script) as server:
            url = f"http://127.0.0.1:{server.port}"
            [configured] = config.load(f"{HEAD}extenders: [{{urlPrefix: '{url}', filterVerb: f}}]").extenders
            client = ExtenderClient([configured], FixedClock(), "kubestow/test", lambda: True)
            call = Call(Extender(0, configured), "f", (b"{}",))
            asking = asyncio.ensure_future(client.ask([call]))
            await asyncio.sleep(0.5)
            client.keep_only([])
            assert await asking == [b"{}"]
            assert await client.ask([call]) == [b"{}"]
            await asyncio.sleep(0.1)
            assert (server.connections, len(server.transports)) == (2, 0)
            client.close()

    run(main())


# TLS


def tls_fields(**fields: str) -> str:
    return f"tlsConfig: {{{', '.join(f'{name}: {value}' for name, value in fields.items())}}}"


def test_https_with_an_authority(tmp_path: Path) -> None:
    """It is given by file or by data; the certificate must be for the host, or for serverName."""
    authority = Authority()
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.pem)
    data = base64.b64encode(authority.pem).decode()

    async def talk(ask: Any, _: ScriptedServer) -> None:
        assert await ask("filter") == b'{"path": "/prefix/filter"}'

    for fields in (tls_fields(caFile=str(file)), f"enableHTTPS: true, {tls_fields(caData=data)}"):
        run(asking(accept, talk, fields, tls=authority.server_context(tmp_path, "127.0.0.1")))
    named = tls_fields(caData=data, serverName="extender.example")
    run(asking(accept, talk, named, tls=authority.server_context(tmp_path, "extender.example")))


@pytest.mark.parametrize("fields", ["enableHTTPS: true", "tlsConfig: {insecure: true}"])
def test_https_without_an_authority(tmp_path: Path, fields: str) -> None:
    """As in kube-scheduler, enableHTTPS without an authority accepts every certificate."""

    async def talk(ask: Any, _: ScriptedServer) -> None:
        assert await ask("filter") == b'{"path": "/prefix/filter"}'

    run(asking(accept, talk, fields, tls=Authority().server_context(tmp_path, "elsewhere")))


def test_https_with_an_unknown_authority(tmp_path: Path) -> None:
    """A certificate of another authority is rejected."""

    async def talk(ask: Any, server: ScriptedServer) -> None:
        assert "certificate verify failed" in message(await ask("filter"), server)

    data = base64.b64encode(Authority().pem).decode()
    run(asking(accept, talk, tls_fields(caData=data), tls=Authority().server_context(tmp_path, "127.0.0.1")))


def test_https_with_a_client_certificate(tmp_path: Path) -> None:
    """It is presented to extenders that request one."""
    authority = Authority()
    certificate, key = authority.issue("scheduler")
    (tmp_path / "cert.pem").write_bytes(certificate)
    (tmp_path / "key.pem").write_bytes(key)
    data = base64.b64encode(authority.pem).decode()
    files = {"certFile": str(tmp_path / "cert.pem"), "keyFile": str(tmp_path / "key.pem")}

    async def talk(ask: Any, _: ScriptedServer) -> None:
        assert await ask("filter") == b'{"path": "/prefix/filter"}'

    context = authority.server_context(tmp_path, "127.0.0.1", ask_clients=True)
    run(asking(accept, talk, tls_fields(caData=data, **files), tls=context))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("urlPrefix: ''", r"extenders\[0\]: urlPrefix: '' is not a server"),
        ("urlPrefix: 'ftp://a'", r"extenders\[0\]: urlPrefix: 'ftp://a' is not a server"),
        ("urlPrefix: 'https://a', tlsConfig: {caFile: /nowhere}", r"extenders\[0\]\.tlsConfig: .*cannot read /nowhere"),
    ],
)
def test_invalid_settings_are_reported_at_the_start(fields: str, problem: str) -> None:
    """The error has the number of the extender and the field."""

    async def make() -> None:
        configured = config.load(f"{HEAD}extenders: [{{{fields}}}]").extenders
        with pytest.raises(CredentialsError, match=problem):
            ExtenderClient(configured, FixedClock(), "t", lambda: True)

    run(make())
