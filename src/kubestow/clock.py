"""The clock interface: real time in a live scheduler, virtual time in simulations and tests."""

import time
from typing import Protocol


class Clock(Protocol):
    """A source of the time: `now` returns seconds since the Unix epoch."""

    def now(self) -> float: ...


class SystemClock:
    """The clock of the operating system."""

    now = staticmethod(time.time)
