"""Where the time comes from: the wall clock live, a virtual one in simulation and tests."""

from typing import Protocol


class Clock(Protocol):
    """Tells the time in seconds since the Unix epoch."""

    def now(self) -> float: ...
