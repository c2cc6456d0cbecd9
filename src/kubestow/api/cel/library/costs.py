"""What calls cost that do more the longer their arguments are, in cel-go's units: a tenth for each character.

A call is paid before it is done, so the cost follows from the arguments alone. Where cel-go counts less than Python has
to do (it joins lists without copying them, and counts a list in a list as one), the work is what counts here.
"""

from math import ceil, inf
from typing import Any

from kubestow.api.cel.values import Optional

_NESTED = (list, dict, Optional)
TRAVERSAL = 0.1
LIST = 11
"""Calling a function that makes a list."""
_MOST = 200_000


def size_of(value: Any) -> float:
    """How many characters there are in a text, or elements and entries in a list or map, where ten characters are one.

    A list can be in lists many times over. Counting ends where going through the value would take too long.
    """
    if not isinstance(value, _NESTED):
        return len(value) if isinstance(value, str | bytes) else 1
    size, waiting = 0, [value]
    while waiting and size <= _MOST:
        nested = waiting.pop()
        items: list[Any] = [nested.value] if isinstance(nested, Optional) else list(nested)
        if isinstance(nested, dict):
            items.extend(nested.values())
        size += len(items) + 1 + sum(len(item) // 10 for item in items if isinstance(item, str | bytes))
        waiting.extend(item for item in items if isinstance(item, _NESTED))
    return size - 1 if size <= _MOST else inf


def reading(text: Any, *_args: Any) -> float:
    """Going once through the first argument."""
    return ceil(len(text) * TRAVERSAL)


def copying(text: Any, *_args: Any) -> float:
    """Going through the first argument and writing as much."""
    return ceil(len(text) * 2 * TRAVERSAL)


def joining(left: Any, right: Any) -> float:
    return 1 + ceil((len(left) + len(right)) * TRAVERSAL)


def comparing(left: Any, right: Any) -> float:
    """Going through two values up to the end of the smaller."""
    return 1 + min(traversing(left), traversing(right))


def traversing(value: Any, *_args: Any) -> float:
    """Going through everything in the first argument."""
    return size_of(value) * (TRAVERSAL if isinstance(value, str | bytes) else 1)


def listing(items: Any, *_args: Any) -> float:
    """Making a list out of the first argument."""
    return len(items) + LIST


def pairing(left: Any, right: Any = None) -> float:
    """Comparing each element with each."""
    right = left if right is None else right
    return LIST + 2 * max(size_of(left) * len(right), size_of(right) * len(left))
