"""A server for one user on one machine: it listens on 127.0.0.1 and requires the token in its URL.

The token is in the fragment of the URL (after #), which browsers do not send; the page sends it with every request for
data. Other users of the machine, and other pages in the same browser, do not have it.

Requests must name the server by an IP address or as localhost. A web site whose name is made to resolve to 127.0.0.1
(DNS rebinding) cannot do that, because browsers send its name.
"""

import asyncio
import hmac
import ipaddress
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from kubestow.insight.page.pages import ROOT, Site
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError
from kubestow.server.http.listening import listen
from kubestow.server.http.messages import Request, Response
from kubestow.server.http.receiving import COMMON_HEADERS
from kubestow.server.http.server import Server
from kubestow.server.pages import Answer
from kubestow.server.serving import LIMITS, respond

HOST = "127.0.0.1"
_KEPT_HEADERS = COMMON_HEADERS | {b"host"}


class LocalServer:
    """Serves a site to clients that have the token."""

    def __init__(self, site: Site, token: str = "", port_flag: str = "--port") -> None:
        """An empty token: generate one. `port_flag` is named in the error if the port is not available."""
        self._site = site
        self._token = token or secrets.token_urlsafe(16)
        self._tasks: set[asyncio.Task[None]] = set()
        self._port_flag = port_flag
        self._server = Server(self._take, LIMITS, kept_headers=_KEPT_HEADERS.__contains__)

    async def start(self, port: int) -> str:
        """Listen on a port, 0 for any free port; return the URL of the page with the token. Raises ListenError."""
        chosen = self._server.start(listen(HOST, port, self._port_flag), None)
        return f"http://{HOST}:{chosen}{ROOT}/#token={self._token}"

    async def stop(self) -> None:
        """Close all connections."""
        for task in self._tasks:
            task.cancel()
        await self._server.stop()

    def _take(self, request: Request, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(respond(self._answer(request), connection, request.method))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: Request) -> Answer:
        path, method = request.path, request.method
        if not _is_local(host := request.header(b"host")):
            raise ApiError(
                421,
                "MisdirectedRequest",
                f"the header Host is {host[:100]!r}, but must be localhost or an IP address; "
                "a reverse proxy must set it, for example to localhost",
            )
        if path == "/":
            return Response(308, b"", headers=(("Location", f"{ROOT}/"),))
        if path not in self._site.open_paths:
            scheme, _, token = request.header(b"authorization").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self._token.encode()):
                message = "the token is missing or wrong; it is part of the address that was printed at the start"
                raise ApiError(401, "Unauthorized", message)
        if method in ("GET", "HEAD"):
            return self._site.answer(request)
        post = self._site.posts.get(path) if method == "POST" else None
        if post is None:
            raise ApiError(405, "MethodNotAllowed", f"the server does not allow the method {method} on {path}")
        return post(request)


def _is_local(host: str) -> bool:
    """Return whether a header Host names localhost or an IP address, with or without a port."""
    try:
        name = urlsplit(f"//{host}").hostname
        return name == "localhost" or bool(ipaddress.ip_address(name or ""))
    except ValueError:
        return False


def load_or_create_token(path: Path) -> str:
    """Return the token in a file, which is created if it does not exist, so that the page's URL stays the same."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(16)
        path.touch(mode=0o600)
        path.write_text(token)
        return token
