"""Attributes that are computed when first asked for.

Like functools.cached_property, without the lock it takes in Python 3.11, which costs more than most of the values.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - used as a decorator
    """Turns a method into an attribute; its value is kept in the object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        # Only reached while the object has no attribute of that name.
        value = self._compute(instance)
        setattr(instance, self._name, value)
        return value
