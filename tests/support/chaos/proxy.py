"""A proxy between one scheduler and the API server that injects faults of networks and servers.

It speaks plain HTTP to the scheduler and HTTPS to the server, and uses another HTTP library than the scheduler. Faults
are drawn with a seed; `likelihood` is their probability. `hook` is called for every request (before it is forwarded,
and after the response has arrived), so that a scheduler can be killed at a chosen stage.
"""

import asyncio
import json
import logging
import random
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

from support.chaos.planes import Plane
from support.polling import PATIENCE

BEFORE, AFTER = "before", "after"
Hook = Callable[[str, str, str], None]
"""`(when, method, path)`; `when` is BEFORE or AFTER."""
_STATUSES = {
    401: "Unauthorized",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
_HOP = frozenset(("connection", "transfer-encoding", "content-length", "keep-alive", "host"))


class CutError(Exception):
    """The connection is to be cut."""


class Proxy:
    """Runs in a thread of its own from `start` to `close`."""

    def __init__(self, plane: Plane, seed: int) -> None:
        self._plane = plane
        self._chance = random.Random(seed)
        self.likelihood = 0.0
        self.unreachable = False
        """Whether no request is forwarded."""
        self.storm = 0
        """The status of the response to every request, for 410 to every watch; 0 forwards requests."""
        self.hook: Hook | None = None
        self.happened: Counter[str] = Counter()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._connections: set[Any] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> "Proxy":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(PATIENCE)
        return self

    async def _open(self) -> None:
        context = ssl.create_default_context(cafile=str(self._plane.ca))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        self._session = aiohttp.ClientSession(
            f"https://127.0.0.1:{self._plane.port}",
            connector=connector,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(None),
            read_bufsize=1 << 22,
        )
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", self._handle)
        quiet = logging.getLogger("chaos.proxy")
        quiet.setLevel(logging.CRITICAL)
        self._runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1, logger=quiet
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    def close(self) -> None:
        async def shut() -> None:
            await self._session.close()
            await self._runner.cleanup()

        asyncio.run_coroutine_threadsafe(shut(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def cut_all(self) -> int:
        """Cut all connections, and return their number."""

        async def cut() -> int:
            transports = [transport for transport in self._connections if not transport.is_closing()]
            for transport in transports:
                transport.abort()
            self._connections.clear()
            return len(transports)

        count = asyncio.run_coroutine_threadsafe(cut(), self._loop).result(PATIENCE)
        self.happened["cut"] += count
        return count

    # Requests

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._connections.add(request.transport)
        watches = "watch" in request.query
        try:
            if self.unreachable:
                self.happened["unreachable"] += 1
                raise CutError
            if self.storm and (watches or self.storm != 410):
                self.happened[f"storm of {self.storm}"] += 1
                return _error_response(self.storm)
            if fault := self._draw(_OF_WATCHES if watches else _OF_REQUESTS):
                self.happened[fault.__name__.strip("_")] += 1
                return await fault(self, request)
            return await (self._stream(request) if watches else self._forward(request))
        except (CutError, aiohttp.ClientError, OSError):
            if request.transport is not None:
                request.transport.abort()
            raise

    def _draw(self, faults: tuple["Fault", ...]) -> "Fault | None":
        return self._chance.choice(faults) if self._chance.random() < self.likelihood else None

    async def _fetch(self, request: web.Request) -> tuple[aiohttp.ClientResponse, bytes]:
        self._call_hook(BEFORE, request)
        async with self._send(request, await request.read()) as response:
            body = await response.read()
        self._call_hook(AFTER, request)
        return response, body

    def _call_hook(self, when: str, request: web.Request) -> None:
        if self.hook is not None:
            self.hook(when, request.method, request.path)

    def _send(self, request: web.Request, body: bytes) -> Any:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
        headers["Accept-Encoding"] = "identity"
        return self._session.request(request.method, request.raw_path, data=body or None, headers=headers)

    async def _forward(self, request: web.Request) -> web.Response:
        response, body = await self._fetch(request)
        return web.Response(status=response.status, body=body, headers=_headers(response))

    async def _stream(self, request: web.Request, change: "Change | None" = None) -> web.StreamResponse:
        """Forward a watch line by line; `change` returns the lines that replace a line."""
        self._call_hook(BEFORE, request)
        async with self._send(request, b"") as response:
            answer = web.StreamResponse(status=response.status, headers=_headers(response))
            await answer.prepare(request)
            async for line in response.content:
                for out in (line,) if change is None else change(line):
                    await answer.write(out)
            await answer.write_eof()
        return answer


Fault = Callable[[Proxy, web.Request], Awaitable[web.StreamResponse]]
Change = Callable[[bytes], list[bytes]]


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {key: value for key, value in response.headers.items() if key.lower() not in _HOP}


def _error_response(code: int) -> web.Response:
    reason = _STATUSES[code]
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "injected"}
    headers = {"Retry-After": "1"} if code in (429, 503) else {}
    text = json.dumps(body | {"reason": reason, "code": code})
    return web.Response(status=code, text=text, content_type="application/json", headers=headers)


# Faults of requests


async def _delay(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Responses overtake one another."""
    await asyncio.sleep(proxy._chance.random())
    return await proxy._forward(request)


async def _cut_before(_: Proxy, __: web.Request) -> web.StreamResponse:
    raise CutError


async def _lose_response(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    await proxy._fetch(request)
    raise CutError


async def _truncate(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    response, body = await proxy._fetch(request)
    answer = web.StreamResponse(status=response.status, headers=_headers(response) | {"Content-Length": str(len(body))})
    await answer.prepare(request)
    await answer.write(body[: len(body) // 2])
    raise CutError


async def _send_twice(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """The request arrives twice; the second response counts."""
    await proxy._fetch(request)
    return await proxy._forward(request)


async def _refuse(proxy: Proxy, _: web.Request) -> web.StreamResponse:
    code = proxy._chance.choice((401, 409, 429, 500, 503))
    proxy.happened[f"answer {code}"] += 1
    return _error_response(code)


async def _corrupt(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    response, body = await proxy._fetch(request)
    spoiled = bytearray(body)
    for _ in range(3):
        if spoiled:
            spoiled[proxy._chance.randrange(len(spoiled))] = 0
    return web.Response(status=response.status, body=bytes(spoiled), headers=_headers(response))


async def _empty(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    response, _ = await proxy._fetch(request)
    return web.Response(status=response.status, body=b"")


# Faults of watches


async def _stall(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """No more events for a while; then the connection breaks."""
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    await asyncio.sleep(2.0 + 2.0 * proxy._chance.random())
    raise CutError


async def _expire(_: Proxy, __: web.Request) -> web.StreamResponse:
    return _error_response(410)


async def _expire_midway(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    status = json.loads(_error_response(410).text or "")
    gone = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    left = proxy._chance.randrange(20)

    def change(line: bytes) -> list[bytes]:
        nonlocal left
        left -= 1
        return [line] if left > 0 else [gone]

    return await proxy._stream(request, change)


async def _repeat_events(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    def change(line: bytes) -> list[bytes]:
        return [line, line] if proxy._chance.random() < 0.5 else [line]

    return await proxy._stream(request, change)


async def _tear(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    left = proxy._chance.randrange(30)

    def change(line: bytes) -> list[bytes]:
        nonlocal left
        left -= 1
        if left < -1:
            raise CutError
        return [line] if left > 0 else [line[: len(line) // 2]]

    return await proxy._stream(request, change)


async def _invalid_lines(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    def change(line: bytes) -> list[bytes]:
        return [line, b"<html>gateway</html>\n"] if proxy._chance.random() < 0.1 else [line]

    return await proxy._stream(request, change)


async def _bookmarks_only(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Withhold events from some time on, and repeat the position before them in bookmarks, until the watch breaks."""
    left, bookmark = proxy._chance.randrange(30), b""

    def change(line: bytes) -> list[bytes]:
        nonlocal left, bookmark
        left -= 1
        if left > 0 or not bookmark:
            bookmark = _bookmark(line)
            return [line]
        if left < -10:
            raise CutError
        return [bookmark]

    return await proxy._stream(request, change)


def _bookmark(line: bytes) -> bytes:
    """Return a bookmark with the position of an event."""
    event = json.loads(line)
    metadata = event["object"].get("metadata", {})
    if "initial-events-end" in json.dumps(metadata) or event["type"] == "ERROR":
        return b""
    about = {key: event["object"][key] for key in ("kind", "apiVersion") if key in event["object"]}
    body = {"type": "BOOKMARK", "object": about | {"metadata": {"resourceVersion": metadata["resourceVersion"]}}}
    return json.dumps(body).encode() + b"\n"


async def _close_at_once(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    await answer.write_eof()
    return answer


_OF_REQUESTS: tuple[Fault, ...] = (
    _delay,
    _cut_before,
    _lose_response,
    _truncate,
    _send_twice,
    _refuse,
    _corrupt,
    _empty,
)
_OF_WATCHES: tuple[Fault, ...] = (
    _cut_before,
    _stall,
    _expire,
    _expire_midway,
    _repeat_events,
    _tear,
    _invalid_lines,
    _bookmarks_only,
    _close_at_once,
)
