"""Times as the API writes them."""

import time
from datetime import datetime


class WallClock:
    """The time of day."""

    def now(self) -> float:
        return time.time()


WALL_CLOCK = WallClock()

_last_second = 0
_last_text = ""


def now() -> str:
    """The current second, in RFC 3339; remembered, since many objects are written within one second."""
    global _last_second, _last_text
    second = int(time.time())
    if second != _last_second:
        _last_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        _last_second = second
    return _last_text


def at(seconds: float) -> str:
    """A moment, given in seconds since 1970, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def seconds(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()
