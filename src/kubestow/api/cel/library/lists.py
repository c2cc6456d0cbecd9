"""Lists and sets: Kubernetes' functions for lists, and CEL's extensions."""

from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library.costs import LIST, listing, pairing, size_of, traversing
from kubestow.api.cel.library.operators import checked_int, checked_uint
from kubestow.api.cel.library.times import Duration
from kubestow.api.cel.types import parse_type
from kubestow.api.cel.values import Uint, compare, contains, equals, no_such_overload, type_name

LIBRARY = Library()
ATTRIBUTES = Library()
"""Additional functions for device attributes that are lists, behind a feature gate."""
define = LIBRARY.define

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SORTABLE = {parse_type(name).name for name in _COMPARABLE}
MAX_INCLUDED = 48


@define("isSorted", *(f"list({name}).() -> bool" for name in _COMPARABLE), cost=traversing)
def is_sorted(items: list[Any]) -> bool:
    return all(compare("isSorted", left, right) <= 0 for left, right in pairwise(items))


_TOTALS: dict[type, Callable[[list[Any]], Any]] = {
    int: lambda items: reduce(lambda left, right: checked_int(left + right), items),
    Uint: lambda items: checked_uint(sum(items)),
    float: sum,
    Duration: lambda items: Duration(sum(item.nanoseconds for item in items)),
}


def _sum(zero: Any, items: list[Any]) -> Any:
    """Return the sum of the elements; if there are none, the zero of the declared type."""
    kinds = {item.__class__ for item in items}
    if not kinds:
        return zero
    if len(kinds) > 1 or not kinds <= _TOTALS.keys():
        raise no_such_overload()
    return _TOTALS[kinds.pop()](items)


for _name, _zero in {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}.items():
    define("sum", f"list({_name}).() -> {_name}", cost=traversing)(partial(_sum, _zero))


def _extreme(function: str, sign: int, items: list[Any]) -> Any:
    if not items:
        raise EvaluationError(f"{function} called on empty list")
    extreme = items[0]
    for item in items[1:]:
        if sign * compare(function, item, extreme) > 0:
            extreme = item
    return extreme


for _function, _sign in (("max", 1), ("min", -1)):
    define(_function, *(f"list({name}).() -> {name}" for name in _COMPARABLE), cost=traversing)(
        partial(_extreme, _function, _sign)
    )


@define("indexOf", "list(A).(A) -> int", cost=traversing)
def index_of(items: list[Any], wanted: Any) -> int:
    return next((place for place, item in enumerate(items) if equals(item, wanted)), -1)


@define("lastIndexOf", "list(A).(A) -> int", cost=traversing)
def last_index_of(items: list[Any], wanted: Any) -> int:
    return next((place for place in reversed(range(len(items))) if equals(items[place], wanted)), -1)


@ATTRIBUTES.define("includes", "dyn.(dyn) -> bool")
def includes(value: Any, wanted: Any) -> bool:
    """Return whether a list contains a value, or, for any other value, whether it equals that value."""
    if value.__class__ is not list:
        return equals(value, wanted)
    if any(equals(item, wanted) for item in value[:MAX_INCLUDED]):
        return True
    if len(value) > MAX_INCLUDED:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {MAX_INCLUDED} values")
    return False


define("lists.range", "(int) -> list(int)", cost=lambda length: LIST + max(length, 0))(
    lambda length: list(range(length))
)
define("reverse", "list(T).() -> list(T)", cost=listing)(lambda items: items[::-1])


@define("slice", "list(T).(int, int) -> list(T)", cost=listing)
def slice_list(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        problem = "negative indexes not supported"
    elif start > end:
        problem = "start index must be less than or equal to end index"
    elif end > len(items):
        problem = f"list is length {len(items)}"
    else:
        return items[start:end]
    raise EvaluationError(f"cannot slice({start}, {end}), {problem}")


def _flattening(items: list[Any], *_args: Any) -> float:
    return LIST + size_of(items)


@define("flatten", "list(list(T)).() -> list(T)", "list(dyn).(int) -> list(dyn)", cost=_flattening)
def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if item.__class__ is list and depth:
            flat.extend(flatten(item, depth - 1))
        else:
            flat.append(item)
    return flat


@define("sort", *(f"list({name}).() -> list({name})" for name in _COMPARABLE), cost=pairing)
def sort(items: list[Any]) -> list[Any]:
    return sort_by_keys(items, items)


@define(
    "@sortByAssociatedKeys",
    *(f"list(T).(list({name})) -> list(T)" for name in _COMPARABLE),
    cost=lambda _items, keys: pairing(keys),
)
def sort_by_keys(items: list[Any], keys: list[Any]) -> list[Any]:
    if len({key.__class__ for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    if keys and type_name(keys[0]) not in _SORTABLE:
        raise EvaluationError("list elements must be comparable")
    return [items[place] for place in sorted(range(len(items)), key=keys.__getitem__)]


@define("distinct", "list(T).() -> list(T)", cost=pairing)
def distinct(items: list[Any]) -> list[Any]:
    """Return the elements without those that equal an earlier one."""
    kept: list[Any] = []
    for item in items:
        if not contains(kept, item):
            kept.append(item)
    return kept


@define("sets.contains", "(list(T), list(T)) -> bool", cost=pairing)
def sets_contain(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item) for item in wanted)


@define("sets.equivalent", "(list(T), list(T)) -> bool", cost=pairing)
def sets_are_equivalent(left: list[Any], right: list[Any]) -> bool:
    return sets_contain(left, right) and sets_contain(right, left)


@define("sets.intersects", "(list(T), list(T)) -> bool", cost=pairing)
def sets_intersect(left: list[Any], right: list[Any]) -> bool:
    return any(contains(right, item) for item in left)
