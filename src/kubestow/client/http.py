"""GET requests of plugins to any server: kept-alive connections, the proxy of the environment, limited answers."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from kubestow.api.failures import BadAnswerError, CallError, ConnectionLostError
from kubestow.client.access import Access, open_channel
from kubestow.client.api import Channel
from kubestow.client.tls import TlsSettings
from kubestow.clock import Clock

MAX_REQUESTS = 8
"""Maximum number of concurrent requests to one server."""
MAX_ANSWER_BYTES = 64 << 20
SECONDS = 60.0
"""Time limit of a request; that of a poll also applies."""
_SHOWN = 200
"""Number of characters of an error page that are shown."""


class HttpClient:
    """The connections to all servers; used inside a running loop."""

    def __init__(self, user_agent: str, clock: Clock) -> None:
        self._user_agent = user_agent
        self._clock = clock
        self._channels: dict[tuple[str, str], Channel] = {}

    async def get_json(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        ca_file: str = "",
    ) -> Any:
        """Return the decoded JSON of a GET. Raises CallError, or ValueError for an invalid URL or header."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError("a URL is like http://prometheus.monitoring:9090/api/v1/query; credentials are headers")
        query = "&".join(part for part in (parts.query, urlencode(params or {})) if part)
        path = f"{parts.path or '/'}?{query}" if query else parts.path or "/"
        channel = self._channel(f"{parts.scheme}://{parts.netloc}", ca_file)
        sent = {"Host": channel.endpoint.authority, "User-Agent": self._user_agent, "Accept": "application/json"}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in {**sent, **(headers or {})}.items())]
        if any("\n" in line or "\r" in line for line in lines):
            raise ValueError(f"GET {url}: a header or the URL has a line break")
        message = "\r\n".join((*lines, "\r\n")).encode()
        deadline = asyncio.get_running_loop().time() + SECONDS
        try:
            response = await channel.pool.exchange((message,), deadline)
        except ConnectionLostError:
            # Servers close idle connections.
            channel.pool.close_idle()
            response = await channel.pool.exchange((message,), deadline)
        if response.status != 200:
            shown = response.body[:_SHOWN].decode(errors="replace").strip()
            raise CallError(f"GET {url}: status {response.status}{f': {shown}' if shown else ''}")
        try:
            return msgspec.json.decode(response.body)
        except msgspec.DecodeError as error:
            raise BadAnswerError(f"GET {url}: the answer is not JSON: {error}") from None

    def _channel(self, origin: str, ca_file: str) -> Channel:
        found = self._channels.get((origin, ca_file))
        if found is None:
            access = Access("plugin", origin, tls=TlsSettings(source="plugin", ca_file=ca_file), server_field="url")
            found = self._channels[origin, ca_file] = open_channel(
                access, most_requests=MAX_REQUESTS, largest_answer=MAX_ANSWER_BYTES, clock=self._clock
            )
        return found

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
