"""Exponential backoff with jitter: 0.8 s doubling to 30 s, times a random factor between 1 and 2.

The delays are those of the watch machinery of Kubernetes' own clients, so that a cluster full of clients comes back
in the same gentle way after its API server was down. Two quiet minutes start the series again.
"""

import asyncio
from collections.abc import Callable

FIRST = 0.8
LONGEST = 30.0
FACTOR = 2.0
QUIET = 120.0


class Backoff:
    """The delays before successive retries of one thing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Callable[[], float], longest: float = LONGEST) -> None:
        self._loop = loop
        self._random = random
        self._longest = longest
        self._delay = FIRST
        self._last = float("-inf")

    def next(self, at_least: float = 0.0) -> float:
        """The next delay in seconds; a server's Retry-After comes in as `at_least`."""
        now = self._loop.time()
        if now - self._last > QUIET:
            self._delay = FIRST
        delay = max(self._delay * (1.0 + self._random()), at_least)
        self._delay = min(self._delay * FACTOR, self._longest)
        self._last = now + delay
        return delay

    def reset(self) -> None:
        """Begin anew: what failed has worked for a while."""
        self._delay = FIRST
