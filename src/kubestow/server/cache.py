"""A cache of responses of the API server."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_ENTRIES = 4096


class ResponseCache(Generic[K, V]):
    """Responses by key; `seconds` returns how long a response is valid. Concurrent requests for a key are merged."""

    def __init__(self, fetch: Callable[[K], Awaitable[V]], seconds: Callable[[V], float]) -> None:
        self._fetch = fetch
        self._seconds = seconds
        self._entries: dict[K, tuple[V, float]] = {}
        """The responses, each with the time at which it expires."""
        self._tasks: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K) -> V:
        """Return the response for a key. Raises the exceptions of `fetch`, which are not cached."""
        entry = self._entries.get(key)
        if entry is not None:
            response, expires = entry
            if asyncio.get_running_loop().time() < expires:
                return response
            del self._entries[key]
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.ensure_future(self._load(key))
            task.add_done_callback(lambda _: self._tasks.pop(key))
        # A caller that is cancelled must not cancel the request of the others.
        return await asyncio.shield(task)

    async def _load(self, key: K) -> V:
        response = await self._fetch(key)
        seconds = self._seconds(response)
        if seconds > 0:
            while len(self._entries) >= MAX_ENTRIES:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = (response, asyncio.get_running_loop().time() + seconds)
        return response
