"""The client's own limit: a token bucket of `burst` tokens, filled at `qps` tokens a second.

A request takes its token at once and waits out the debt, so requests go in the order they came.
"""

import asyncio
import math


class TokenBucket:
    """Queries per second with a burst; a rate that is not positive means no limit."""

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
        """Take a token; returns the seconds to wait before acting on it."""
        if self._qps == math.inf:
            return 0.0
        now = self._loop.time()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps) - 1.0
        self._at = now
        return 0.0 if self._tokens >= 0.0 else -self._tokens / self._qps

    async def wait(self, delay: float) -> None:
        """Wait out a reservation; gives the token back when cancelled."""
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Undo a reservation that will not be used."""
        self._tokens += 1.0
