"""Proxies: their selection, and the tunnels through them."""

import socket
from pathlib import Path

import pytest

from kubestow.api.failures import ConnectError
from kubestow.client.access import Access, open_channel
from kubestow.client.errors import CredentialsError
from kubestow.client.proxies import parse_proxy, proxy_from_environment
from kubestow.client.tls import TlsSettings
from support.client.authority import Authority
from support.client.doubles import FixedClock
from support.client.scripted import Answer, Request, client_of, serving
from support.client.tunnels import CONNECTED, RELAYED, proxying
from support.client.virtualtime import run


async def accept(request: Request, answer: Answer) -> None:
    answer.reply(200)


@pytest.mark.parametrize(
    ("scheme", "verdict", "first"),
    [
        ("http://me:p%40ss@", CONNECTED, b"CONNECT kube.example:6443 HTTP/1.1"),
        ("socks5://", RELAYED, b"\x05\x01\x00"),
        ("socks5://me:pass@", RELAYED, b"\x05\x02\x00\x02"),
    ],
)
@pytest.mark.parametrize("tls", [True, False])
def test_requests_through_a_proxy(tmp_path: Path, scheme: str, verdict: bytes, first: bytes, tls: bool) -> None:
    """The server is reached through the proxy of the kubeconfig, by name, with TLS inside the tunnel."""
    authority = Authority()
    context = authority.server_context(tmp_path, "kube.example") if tls else None

    async def main() -> None:
        async with serving(accept, context) as server, proxying(server.port, verdict) as (port, seen):
            access = Access(
                "kc",
                f"http{'s' if tls else ''}://kube.example:6443",
                tls=TlsSettings(ca_data=authority.pem),
                proxy_url=f"{scheme}127.0.0.1:{port}",
            )
            channel = open_channel(access, environ={}, clock=FixedClock())
            client = client_of(channel)
            await client.request("GET", "/a")
            await client.request("GET", "/b")
            assert [request.path for request in server.requests] == ["/a", "/b"]
            assert server.connections == 1
            assert seen[0].startswith(first)
            if scheme.startswith("http:"):
                assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in seen[0]
            else:
                assert seen[-1] == b"\x05\x01\x00\x03\x0ckube.example" + (6443).to_bytes(2, "big")
            channel.close()

    run(main())


def test_unreachable_proxy() -> None:
    """The error names the proxy, not only the server."""

    async def main() -> None:
        access = Access("kc", "http://kube.example:6443", proxy_url=f"http://127.0.0.1:{unused}")
        channel = open_channel(access, environ={}, clock=FixedClock())
        with pytest.raises(ConnectError, match=f"kube.example:6443 through the proxy 127.0.0.1:{unused}: "):
            await client_of(channel).request("GET", "/a")
        channel.close()

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        unused = taken.getsockname()[1]
        run(main())


@pytest.mark.parametrize(
    ("scheme", "verdict", "message"),
    [
        ("http", b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "refuses to connect to .*: HTTP/1.1 407"),
        ("socks5", b"\x05\x05\x00\x01", "cannot reach .*: code 5"),
    ],
)
def test_proxy_that_refuses(scheme: str, verdict: bytes, message: str) -> None:
    """The error contains the message of the proxy."""

    async def main() -> None:
        async with serving(accept) as server, proxying(server.port, verdict) as (port, _):
            access = Access("kc", "http://kube.example:6443", proxy_url=f"{scheme}://127.0.0.1:{port}")
            channel = open_channel(access, environ={}, clock=FixedClock())
            with pytest.raises(ConnectError, match=message):
                await client_of(channel).request("GET", "/a")

    run(main())


@pytest.mark.parametrize(
    ("host", "excluded", "proxied"),
    [
        ("kube.example", "", True),
        ("localhost", "", False),
        ("127.0.0.5", "", False),
        ("kube.example", "*", False),
        ("kube.example", "example", False),
        ("kube.example", ".example", False),
        ("example", ".example", True),
        ("kube.example", "notexample,*.example", False),
        ("kube.example", "kube.example:443", True),
        ("kube.example", "kube.example:6443", False),
        ("10.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.4, 192.168.0.0/16", True),
    ],
)
def test_proxy_of_the_environment(host: str, excluded: str, proxied: bool) -> None:
    """HTTPS_PROXY applies unless NO_PROXY excludes the host or it is this machine."""
    environ = {"https_proxy": "proxy:3128", "NO_PROXY": excluded}
    assert (proxy_from_environment("https", host, 6443, environ) is not None) is proxied
    assert proxy_from_environment("http", host, 6443, environ) is None


@pytest.mark.parametrize("url", ["ftp://me:SECRET@x", "http://", "http://me:SECRET@x:port"])
def test_invalid_proxies(url: str) -> None:
    """The error names the field and does not contain a password of the URL."""
    with pytest.raises(CredentialsError, match="proxy-url") as caught:
        parse_proxy(url, "kc", "proxy-url")
    assert "SECRET" not in str(caught.value)
