"""Constant defaults: values for fields that an object lacks."""

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]


def set_missing(obj: Object, defaults: Object) -> None:
    """Set the fields that an object lacks; the default of a field that holds an object applies to its fields."""
    for name, value in defaults.items():
        if isinstance(value, dict):
            set_missing(obj.setdefault(name, {}), value)
        else:
            obj.setdefault(name, value)


def fill(**defaults: Any) -> Callable[[Object], None]:
    """Return a rule that sets the fields that an object lacks."""
    return lambda obj: set_missing(obj, defaults)
