"""The client on uvloop, whose transports are not asyncio's: plain, TLS, through proxies, watches."""

import asyncio
import ssl
from pathlib import Path

import pytest
import uvloop

from kubestow.api.failures import ConnectionLostError, TimedOutError
from kubestow.client.access import Access, open_channel
from kubestow.client.informer import Informer
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.resources import PODS
from kubestow.client.tls import TlsSettings
from support.client.authority import Authority
from support.client.doubles import FixedClock, Noted, middle, pod
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.tunnels import CONNECTED, proxying


async def script(request: Request, answer: Answer) -> None:
    if request.path == "/drop":
        answer.drop()
    elif request.path == "/stall":
        await answer.client_left()
    elif request.path == "/api/v1/pods":
        answer.begin_stream()
        answer.event("ADDED", pod("a", 1))
        answer.bookmark("2", ends_initial=True)
    else:
        answer.reply(201, {"got": len(request.body)})


@pytest.mark.parametrize("tls", [True, False])
def test_requests_and_watches(tmp_path: Path, tls: bool) -> None:
    """Responses, drops, time limits and watches work as on asyncio."""
    authority = Authority()
    context = authority.server_context(tmp_path, "127.0.0.1") if tls else None

    async def main() -> None:
        async with serving(script, context) as server:
            url = f"http{'s' if tls else ''}://127.0.0.1:{server.port}"
            with opened(server, Access("kc", url, tls=TlsSettings(ca_data=authority.pem))) as channel:
                client = client_of(channel)
                assert (await client.request("POST", "/a", b"x" * 300_000)).body == b'{"got": 300000}'
                with pytest.raises(ConnectionLostError):
                    await client.request("POST", "/drop", b"{}")
                await client.request("POST", "/b", b"{}")  # so that the next need not wait for a handshake
                with pytest.raises(TimedOutError):
                    await client.request("POST", "/stall", b"{}", seconds=0.005)
                noted = Noted()
                informer = Informer(PODS, noted)
                task = asyncio.create_task(Reflector(client, informer, middle, Refusals()).run())
                await informer.synced.wait()
                task.cancel()
                await asyncio.wait({task})
                assert noted.seen == ["+a@1", "synced"]

    uvloop.run(main())


@pytest.mark.parametrize("outer_tls", [True, False])
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_tunnels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outer_tls: bool, loop: str) -> None:
    """TLS to the server inside a tunnel, which may itself be inside TLS to the proxy."""
    authority = Authority()
    (tmp_path / "ca").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca"))
    context = authority.server_context(tmp_path, "kube.example")
    outer: ssl.SSLContext | None = authority.server_context(tmp_path, "127.0.0.1") if outer_tls else None

    async def main() -> None:
        async with serving(script, context) as server, proxying(server.port, CONNECTED, outer) as (port, _):
            access = Access(
                "kc",
                "https://kube.example:6443",
                tls=TlsSettings(ca_data=authority.pem),
                proxy_url=f"http{'s' if outer_tls else ''}://127.0.0.1:{port}",
            )
            channel = open_channel(access, environ={}, clock=FixedClock())
            client = client_of(channel)
            assert (await client.request("POST", "/a", b"{}")).status == 201
            assert (await client.request("POST", "/b", b"{}")).status == 201
            assert server.connections == 1
            channel.close()

    if loop == "uvloop":
        uvloop.run(main())
    else:
        asyncio.run(main())
