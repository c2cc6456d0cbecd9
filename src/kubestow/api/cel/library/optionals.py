"""Functions for optional values."""

from collections.abc import Callable
from typing import Any

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library.costs import listing
from kubestow.api.cel.library.times import Duration
from kubestow.api.cel.values import NONE, Optional, text_of

LIBRARY = Library()
define = LIBRARY.define


define("optional.of", "(V) -> optional(V)")(lambda value: Optional(True, value))
define("optional.none", "() -> optional(V)")(lambda: NONE)
define("hasValue", "optional(V).() -> bool")(lambda optional: optional.present)
define("first", "list(V).() -> optional(V)")(lambda items: Optional(True, items[0]) if items else NONE)
define("last", "list(V).() -> optional(V)")(lambda items: Optional(True, items[-1]) if items else NONE)


@define("optional.ofNonZeroValue", "(V) -> optional(V)")
def of_non_zero_value(value: Any) -> Optional:
    zero = value.nanoseconds == 0 if isinstance(value, Duration) else value in (None, False, 0, 0.0, "", b"", [], {})
    return NONE if zero or value is NONE else Optional(True, value)


@define("value", "optional(V).() -> V")
def value_of(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


@define("or", "optional(V).(optional(V)) -> optional(V)")
def or_optional(optional: Any, other: Callable[[], Any]) -> Any:
    """Return the optional, or, if it has no value, the result of the function; a value of another type is returned."""
    return other() if optional.__class__ is Optional and not optional.present else optional


@define("orValue", "optional(V).(V) -> V")
def or_value(optional: Any, other: Callable[[], Any]) -> Any:
    """Return the value of the optional, or, if it has none, the result of the function."""
    if optional.__class__ is not Optional:
        return optional
    return optional.value if optional.present else other()


@define("optional.unwrap", "(list(optional(V))) -> list(V)", cost=listing)
@define("unwrapOpt", "list(optional(V)).() -> list(V)", cost=listing)
def unwrap(items: list[Any]) -> list[Any]:
    """Return the values of the optionals that have one."""
    for item in items:
        if item.__class__ is not Optional:
            raise EvaluationError(f"value {text_of(item)} is not optional")
    return [item.value for item in items if item.present]
