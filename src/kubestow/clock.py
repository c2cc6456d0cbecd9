"""The clock interface: real time in a live scheduler, virtual time in simulations and tests."""

import time
from typing import Protocol


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> float:
        """Return the time in seconds since the Unix epoch."""
        ...


class SystemClock:
    """The clock of the operating system."""

    now = staticmethod(time.time)
