"""The natural order of names: node-2 before node-10."""

import re
from functools import lru_cache

_NUMBER = re.compile(r"(\d+)")


@lru_cache(1 << 16)
def natural(name: str) -> list[tuple[int, str]]:
    """Return the sort key of a name: its numbers count by value."""
    return [(int(part) if part.isdecimal() else 0, part) for part in _NUMBER.split(name)]
