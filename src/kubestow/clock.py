"""The clock: real time in a live scheduler, virtual time in simulations and tests."""

import time
from typing import Protocol


class Clock(Protocol):
    """Returns the time in seconds since the Unix epoch."""

    def now(self) -> float: ...


class SystemClock:
    """The real time."""

    now = staticmethod(time.time)
