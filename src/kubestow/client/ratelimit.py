"""The client's own rate limit: a token bucket of `burst` tokens, filled at `qps` tokens per second.

A request takes its token at once and waits until it is available, so requests are sent in the order of their arrival.
"""

import asyncio
import math


class TokenBucket:
    """A limit of requests per second with a burst; `qps` of 0 or less means no limit."""

    __slots__ = ("_at", "_burst", "_loop", "_qps", "_tokens")

    def __init__(self, qps: float, burst: int, loop: asyncio.AbstractEventLoop) -> None:
        if qps > 0 and burst < 1:
            raise ValueError(f"burst must be at least 1 when qps is limited, got {burst}")
        self._qps = qps if qps > 0 else math.inf
        self._burst = float(burst)
        self._tokens = float(burst)
        self._loop = loop
        self._at = loop.time()

    def reserve(self) -> float:
        """Take a token; return the seconds to wait before the request is sent."""
        if self._qps == math.inf:
            return 0.0
        now = self._loop.time()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps) - 1.0
        self._at = now
        return 0.0 if self._tokens >= 0.0 else -self._tokens / self._qps

    async def wait(self, delay: float) -> None:
        """Wait for the delay of a reservation; give the token back if cancelled."""
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Undo a reservation that will not be used."""
        self._tokens += 1.0
