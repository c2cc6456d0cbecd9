"""Times as the API writes them."""

import time
from datetime import datetime


class WallClock:
    """The time of day."""

    def now(self) -> float:
        return time.time()


WALL_CLOCK = WallClock()


def seconds(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()
