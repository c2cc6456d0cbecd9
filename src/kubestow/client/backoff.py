"""Exponential backoff with jitter: 0.8 s doubling to 30 s, times a random factor between 1 and 2.

The delays are those of the watches in Kubernetes' own clients, so that many clients reconnect at the same moderate pace
after an outage of the API server. After two minutes without a retry the series starts again.
"""

import asyncio
from collections.abc import Callable

FIRST = 0.8
MAX_DELAY = 30.0
FACTOR = 2.0
RESET_AFTER = 120.0


class Backoff:
    """The delays before successive retries of one operation."""

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Callable[[], float], limit: float = MAX_DELAY) -> None:
        self._loop = loop
        self._random = random
        self._limit = limit
        self._delay = FIRST
        self._last = float("-inf")

    def next(self, at_least: float = 0.0) -> float:
        """Return the next delay in seconds; `at_least` is the server's Retry-After."""
        now = self._loop.time()
        if now - self._last > RESET_AFTER:
            self._delay = FIRST
        delay = max(self._delay * (1.0 + self._random()), at_least)
        self._delay = min(self._delay * FACTOR, self._limit)
        self._last = now + delay
        return delay

    def reset(self) -> None:
        """Start the series again, after the operation has worked for a while."""
        self._delay = FIRST
