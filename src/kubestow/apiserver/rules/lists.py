"""Checks of the items of lists."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import duplicate

T = TypeVar("T")


def each(items: Iterable[T], path: str) -> Iterator[tuple[str, T]]:
    """Yield the path and the value of each item."""
    for index, item in enumerate(items):
        yield f"{path}[{index}]", item


def check_items(items: Iterable[T], path: str, check: Callable[[T, str], Iterable[Cause]]) -> Iterator[Cause]:
    """Run a check on each item."""
    for where, item in each(items, path):
        yield from check(item, where)


def check_new(value: Hashable, seen: set[Any], path: str, shown: Any = None) -> Sequence[Cause]:
    """Check that a value is not one of those seen before, and add it; `shown` is the value in the message."""
    if value in seen:
        return (duplicate(path, value if shown is None else shown),)
    seen.add(value)
    return ()


def check_unique(texts: Sequence[str], path: str) -> Iterator[Cause]:
    """Check that the texts in a list are unique; empty ones do not count."""
    seen: set[str] = set()
    for index, text in enumerate(texts):
        if text and text in seen:
            yield duplicate(f"{path}[{index}]", text)
        seen.add(text)
