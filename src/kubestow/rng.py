"""Where chance comes from: seeded, so that the same run with the same seed decides the same."""

from typing import Protocol


class Rng(Protocol):
    """Draws numbers; `random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 up to, but not including, `stop`."""
        ...
