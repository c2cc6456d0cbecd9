"""Attributes that are computed at first access.

Like functools.cached_property, without its lock in Python 3.11, which costs more than computing most of the values.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - used as a decorator
    """Decorator that turns a method into an attribute, whose value is stored in the object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        # Only called while the object has no attribute of that name.
        value = self._compute(instance)
        setattr(instance, self._name, value)
        return value
