"""Conversion between the API's timestamps, RFC 3339 texts, and seconds since the epoch."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=65_536)
def parse_time(text: str) -> float:
    """Return seconds since the epoch. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write Z for UTC")
    return moment.timestamp()


def format_time(seconds: float) -> str:
    """Format a time to the second, as in creationTimestamp and conditions."""
    return f"{_to_the_second(int(seconds))}Z"


def format_micro_time(seconds: float) -> str:
    """Format a time to the microsecond, as in leases and events."""
    whole, micros = divmod(round(seconds * 1e6), 1_000_000)
    return f"{_to_the_second(whole)}.{micros:06d}Z"


@lru_cache(maxsize=16)
def _to_the_second(seconds: int) -> str:
    # Cached: thousands of events and conditions may be written within a second.
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
