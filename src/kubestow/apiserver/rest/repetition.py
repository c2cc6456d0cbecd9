"""Fields that a JSON body gives twice: readers keep the last, and strict clients want to be told.

Finding them takes a slower reader than the one bodies are read with, so it is done for clients that ask.
"""

import json
from collections.abc import Iterator
from typing import Any


class _Repeating(dict[str, Any]):
    """An object some of whose fields were given more than once."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.repeated = [name for name in self if names.count(name) > 1]


def repeated_fields(body: bytes) -> list[str]:
    """The paths of fields that a valid JSON document gives more than once."""
    found = False

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        found = True
        return _Repeating(pairs)

    document = json.loads(body, object_pairs_hook=read)
    return list(_paths(document, "")) if found else []


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        prefix = f"{path}." if path else ""
        if isinstance(value, _Repeating):
            yield from (prefix + name for name in value.repeated)
        for name, inner in value.items():
            yield from _paths(inner, prefix + name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, f"{path}[{index}]")
