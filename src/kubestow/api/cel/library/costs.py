"""Costs of calls that depend on the sizes of the arguments, in the units of cel-go: a tenth for each character.

A call is paid before it runs, so that its cost depends only on the arguments. If the cost in cel-go is lower than the
work in Python (cel-go joins lists without copying them, and counts a nested list as one), the work is the cost here.
"""

from math import ceil, inf
from typing import Any

from kubestow.api.cel.values import Optional

_NESTED = (list, dict, Optional)
TRAVERSAL = 0.1
LIST = 11
"""The cost of calling a function that creates a list."""
_MAX_SIZE = 200_000


def size_of(value: Any) -> float:
    """Return the number of characters of a text, or of elements of a list or map; ten characters count as an element.

    Returns infinity for a value that would take too long to traverse, as a list can be contained many times.
    """
    if not isinstance(value, _NESTED):
        return len(value) if isinstance(value, str | bytes) else 1
    size, pending = 0, [value]
    while pending and size <= _MAX_SIZE:
        nested = pending.pop()
        items: list[Any] = [nested.value] if isinstance(nested, Optional) else list(nested)
        if isinstance(nested, dict):
            items.extend(nested.values())
        size += len(items) + 1 + sum(len(item) // 10 for item in items if isinstance(item, str | bytes))
        pending.extend(item for item in items if isinstance(item, _NESTED))
    return size - 1 if size <= _MAX_SIZE else inf


def reading(text: Any, *_args: Any) -> float:
    """Return the cost of reading the first argument once."""
    return ceil(len(text) * TRAVERSAL)


def copying(text: Any, *_args: Any) -> float:
    """Return the cost of reading the first argument and writing as much."""
    return ceil(len(text) * 2 * TRAVERSAL)


def joining(left: Any, right: Any) -> float:
    return 1 + ceil((len(left) + len(right)) * TRAVERSAL)


def comparing(left: Any, right: Any) -> float:
    """Return the cost of reading two values up to the end of the smaller."""
    return 1 + min(traversing(left), traversing(right))


def traversing(value: Any, *_args: Any) -> float:
    """Return the cost of traversing the first argument completely."""
    return size_of(value) * (TRAVERSAL if isinstance(value, str | bytes) else 1)


def listing(items: Any, *_args: Any) -> float:
    """Return the cost of creating a list from the first argument."""
    return len(items) + LIST


def pairing(left: Any, right: Any = None) -> float:
    """Return the cost of comparing each element of a list with each of another, or of the same list."""
    right = left if right is None else right
    return LIST + 2 * max(size_of(left) * len(right), size_of(right) * len(left))
