"""The operators, `size`, and CEL's standard functions for strings.

Integers never wrap around: an overflow of 64 bits is an error. Operators for which the generator creates special code
(logic, `?:`, `==`, `in`, indexes, order) are declared here for checking and constant folding.
"""

import math
import operator
from functools import partial
from typing import Any

from kubestow.api.cel import values
from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library import regex
from kubestow.api.cel.library.costs import comparing, joining, reading, size_of
from kubestow.api.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

LIBRARY = Library()
define = LIBRARY.define


def checked_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


@define("_/_", "(int, int) -> int")
def divide_int(left: int, right: int) -> int:
    """Divide and round towards zero."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) is (right < 0) else -quotient)


@define("_%_", "(int, int) -> int")
def modulo_int(left: int, right: int) -> int:
    """Return the remainder, which has the sign of the dividend."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


@define("_/_", "(uint, uint) -> uint")
def divide_uint(left: Uint, right: Uint) -> Uint:
    if right == 0:
        raise EvaluationError("division by zero")
    return Uint(left // right)


@define("_/_", "(double, double) -> double")
def divide_double(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


for _function, _operator in {"_+_": operator.add, "_-_": operator.sub, "_*_": operator.mul}.items():
    define(_function, "(int, int) -> int")(lambda left, right, apply=_operator: checked_int(apply(left, right)))
    define(_function, "(uint, uint) -> uint")(lambda left, right, apply=_operator: checked_uint(apply(left, right)))
    define(_function, "(double, double) -> double")(_operator)
for _signature in ("(string, string) -> string", "(bytes, bytes) -> bytes", "(list(A), list(A)) -> list(A)"):
    define("_+_", _signature, cost=joining)(operator.add)
define("_%_", "(uint, uint) -> uint")(lambda left, right: Uint(modulo_int(left, right)))
define("-_", "(int) -> int")(lambda value: checked_int(-value))
define("-_", "(double) -> double")(operator.neg)
define("!_", "(bool) -> bool")(operator.not_)
define("_?_:_", "(bool, A, A) -> A")(lambda condition, then, otherwise: then if condition else otherwise)
define("_==_", "(A, A) -> bool", cost=comparing)(values.equal)
define("_!=_", "(A, A) -> bool", cost=comparing)(values.unequal)


@define("@in", "(A, list(A)) -> bool", "(A, map(A, B)) -> bool", cost=lambda _, container: size_of(container))
def is_in(value: Any, container: Any) -> bool:
    return values.contains(container, value)


_INDEXED = {"list(A)": ("int", "A"), "map(A, B)": ("A", "B")}
for _container, (_key, _value) in _INDEXED.items():
    define("_[_]", f"({_container}, {_key}) -> {_value}")(values.index)
    define("_[_]", f"(optional({_container}), {_key}) -> optional({_value})")(values.index)
    for _operand in (_container, f"optional({_container})"):
        define("_[?_]", f"({_operand}, {_key}) -> optional({_value})")(values.index_optional)

_NUMBERS = ("int", "uint", "double")
_ORDERED = [f"({left}, {right}) -> bool" for left in _NUMBERS for right in _NUMBERS] + [
    f"({name}, {name}) -> bool" for name in ("bool", "string", "bytes", "timestamp", "duration")
]


def _ordered(function: str, holds: Any, left: Any, right: Any) -> bool:
    return bool(holds(values.compare(function, left, right), 0))


_COMPARISONS = {"_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge}
ORDER = {function: partial(_ordered, function, holds) for function, holds in _COMPARISONS.items()}
for _function, _compare in ORDER.items():
    define(_function, *_ORDERED, cost=comparing)(_compare)

for _sized in ("string", "bytes", "list(A)", "map(A, B)"):
    define("size", f"({_sized}) -> int", f"{_sized}.() -> int")(len)
define("contains", "string.(string) -> bool", cost=lambda text, part: reading(text) * reading(part))(operator.contains)
define("startsWith", "string.(string) -> bool", cost=reading)(str.startswith)
define("endsWith", "string.(string) -> bool", cost=reading)(str.endswith)
define("matches", "(string, string) -> bool", "string.(string) -> bool", cost=regex.cost)(regex.matches)
