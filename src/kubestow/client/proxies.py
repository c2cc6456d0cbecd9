"""Proxies for the API server: their selection, and the handshake that opens a tunnel.

`proxy-url` of the kubeconfig has precedence; else HTTPS_PROXY, HTTP_PROXY and NO_PROXY apply as for kubectl.
http and https proxies receive a CONNECT, socks5 proxies a connect command; the proxy resolves host names.
"""

import asyncio
import ipaddress
from collections.abc import Mapping
from typing import cast
from urllib.parse import unquote, urlsplit

from kubestow.api.failures import ConnectError
from kubestow.client.auth import basic
from kubestow.client.errors import CredentialsError
from kubestow.client.secretive import Secretive

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_MAX_RESPONSE = 65536


class Proxy(Secretive, frozen=True):
    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""


def parse_proxy(url: str, source: str, named: str) -> Proxy:
    """Parse the URL of a proxy. Raises CredentialsError, without the URL, which may contain a password."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise CredentialsError(source, named, "not a URL such as http://proxy.example:3128") from None
    if parts.scheme not in _DEFAULT_PORTS:
        known = ", ".join(sorted(_DEFAULT_PORTS))
        raise CredentialsError(source, named, f"unknown kind of proxy {parts.scheme!r}; use one of {known}")
    if not host:
        raise CredentialsError(source, named, "names no host; write it as http://proxy.example:3128")
    return Proxy(
        parts.scheme,
        host,
        port or _DEFAULT_PORTS[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def proxy_from_environment(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that the environment sets for a host; None for loopback hosts."""
    variable = f"{scheme}_proxy"
    for named in (variable.upper(), variable):
        if url := environ.get(named):
            excluded = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
            if _is_local(host) or _is_excluded(host, port, excluded):
                return None
            return parse_proxy(url, "environment", named)
    return None


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_excluded(host: str, port: int, excluded: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    for raw in excluded.lower().split(","):
        entry = raw.strip()
        if entry == "*":
            return True
        if not entry:
            continue
        if address is not None:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
                continue
            except ValueError:
                pass
        name, _, wanted_port = entry.partition(":")
        if wanted_port and wanted_port != str(port):
            continue
        name = name.removeprefix("*")
        bare = name.removeprefix(".")
        if host.lower().endswith(f".{bare}") or host.lower() == name:
            return True
    return False


class Handshake(asyncio.Protocol):
    """The protocol of a proxy connection until the tunnel is open; then another protocol takes over the transport."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._closed = False
        self._more: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of uvloop have the methods of asyncio's but not its base classes.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._wake()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._closed = True
        self._wake()

    async def open_tunnel(self, proxy: Proxy, host: str, port: int) -> asyncio.Transport:
        """Open a tunnel to a host and return its transport. Raises ConnectError if the proxy refuses."""
        assert self.transport is not None
        if proxy.scheme in ("http", "https"):
            await self._connect(proxy, host, port)
        else:
            await self._connect_socks(proxy, host, port)
        return self.transport

    async def _connect(self, proxy: Proxy, host: str, port: int) -> None:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if proxy.user:
            request += f"Proxy-{basic(proxy.user, proxy.password).decode()}"
        self._send(f"{request}\r\n".encode())
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            if len(self._received) > _MAX_RESPONSE:
                raise ConnectError(f"proxy {proxy.host}:{proxy.port} sent no valid answer to CONNECT")
            await self._read()
        first = bytes(self._received[:end]).split(b"\r\n")[0].decode("latin-1")
        if first.split(" ")[1:2] != ["200"]:
            raise ConnectError(f"proxy {proxy.host}:{proxy.port} refuses to connect to {target}: {first}")

    async def _connect_socks(self, proxy: Proxy, host: str, port: int) -> None:
        self._send(b"\x05\x02\x00\x02" if proxy.user else b"\x05\x01\x00")
        method = (await self._take(2))[1]
        if method == 2 and proxy.user:
            user, password = proxy.user.encode(), proxy.password.encode()
            self._send(b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
            if (await self._take(2))[1] != 0:
                raise ConnectError(f"proxy {proxy.host}:{proxy.port} refuses the user name and password")
        elif method != 0:
            raise ConnectError(f"proxy {proxy.host}:{proxy.port} requires an unsupported authentication method")
        name = host.encode("idna")
        self._send(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
        _, code, _, kind = await self._take(4)
        if code != 0:
            raise ConnectError(f"proxy {proxy.host}:{proxy.port} cannot reach {host}:{port}: code {code}")
        length = {1: 4, 4: 16}.get(kind)
        await self._take((length if length is not None else (await self._take(1))[0]) + 2)

    def _send(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    async def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            await self._read()
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    async def _read(self) -> None:
        if self._closed:
            raise ConnectError("the proxy closed the connection")
        self._more = asyncio.get_running_loop().create_future()
        await self._more

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
