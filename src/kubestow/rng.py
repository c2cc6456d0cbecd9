"""The source of random numbers. It is seeded, so that a run with the same seed makes the same decisions."""

from typing import Protocol


class Rng(Protocol):
    """A random number generator; `random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 up to, but not including, `stop`."""
        ...
