"""Functions: their declaration in libraries, and the selection of an overload for the arguments of a call.

A function has overloads, one for each list of parameter types. If the types of all arguments are known when an
expression is compiled, the overload is called directly; otherwise, a `dispatcher` selects it by the classes of the
arguments and caches the result.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from kubestow.api.cel.errors import CostLimitError, EvaluationError
from kubestow.api.cel.types import Kind, Signature, Type
from kubestow.api.cel.values import type_name

_F = TypeVar("_F", bound=Callable[..., Any])

Cost = Callable[..., float]
"""Returns the cost of a call with these arguments."""


class Budget:
    """The remaining cost that an evaluation may spend."""

    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left: float = limit

    def spend(self, cost: float) -> None:
        self.left -= cost
        if self.left < 0:
            raise CostLimitError


class Overload(Struct, frozen=True, eq=False):
    """An implementation of a function for arguments of certain types."""

    function: str
    declared: str
    """The text of the signature, parsed on demand: there are hundreds of functions, of which an expression uses few."""
    call: Callable[..., Any]
    cost: Cost | None = None
    """None if every call costs 1."""

    @property
    def signature(self) -> Signature:
        return Signature.parse(self.declared)

    def metered(self) -> Callable[..., Any]:
        """Return a function that takes a budget as first argument, from which the call is paid."""
        call, cost = self.call, self.cost
        if cost is None:
            return lambda _budget, *args: call(*args)

        def paid(budget: Budget, *args: Any) -> Any:
            budget.spend(cost(*args))
            return call(*args)

        return paid

    def fits(self, args: Sequence[Any]) -> bool:
        params = self.signature.params
        return len(args) == len(params) and all(map(_is_of, args, params))


def _is_of(value: object, type_: Type) -> bool:
    return type_.kind in (Kind.PARAM, Kind.DYN) or type_name(value) == type_.name


class Library(dict[str, list[Overload]]):
    """Overloads by the name of their function, in the order of their declaration."""

    def define(self, function: str, *signatures: str, cost: Cost | None = None) -> Callable[[_F], _F]:
        """Declare a Python function under a name, for each of the signatures."""

        def declare(call: _F) -> _F:
            for text in signatures:
                self.setdefault(function, []).append(Overload(function, text, call, cost))
            return call

        return declare


def succeeds(call: Callable[..., Any]) -> Callable[..., bool]:
    """Return a function that returns whether another does not raise an EvaluationError."""

    def attempt(*args: Any) -> bool:
        try:
            call(*args)
        except EvaluationError:
            return False
        return True

    return attempt


def merge(libraries: Iterable[Library]) -> Mapping[str, Sequence[Overload]]:
    """Return the functions of all libraries."""
    merged: dict[str, list[Overload]] = {}
    for library in libraries:
        for function, overloads in library.items():
            merged.setdefault(function, []).extend(overloads)
    return merged


def dispatcher(function: str, overloads: Sequence[Overload], metered: bool) -> Callable[..., Any]:
    """Return a function that calls the overload for its arguments; if `metered`, its first argument is a budget."""
    known: dict[tuple[type, ...], Callable[..., Any]] = {}

    def resolve(args: Sequence[Any]) -> Callable[..., Any]:
        for overload in overloads:
            if overload.fits(args):
                call = known[tuple(arg.__class__ for arg in args)] = overload.metered() if metered else overload.call
                return call
        raise EvaluationError(_mismatch(function, args))

    def one(value: Any) -> Any:
        return (known.get((value.__class__,)) or resolve((value,)))(value)

    def two(left: Any, right: Any) -> Any:
        return (known.get((left.__class__, right.__class__)) or resolve((left, right)))(left, right)

    def several(*args: Any) -> Any:
        return (known.get(tuple(arg.__class__ for arg in args)) or resolve(args))(*args)

    def paid(budget: Budget, *args: Any) -> Any:
        return (known.get(tuple(arg.__class__ for arg in args)) or resolve(args))(budget, *args)

    quick: dict[int, Callable[..., Any]] = {1: one, 2: two}
    return paid if metered else quick.get(len(overloads[0].signature.params), several)


_NUMBERS = {"int", "uint", "double"}
_TIMES = {"google.protobuf.Duration", "google.protobuf.Timestamp"}
_OPERANDS = {
    "_+_": _NUMBERS | _TIMES | {"string", "bytes", "list"},
    "_-_": _NUMBERS | _TIMES,
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": {"int", "uint"},
    "-_": {"int", "double", "bool"},
    "size": {"string", "bytes", "list", "map"},
    "matches": {"string"},
}
"""The types for which cel-go looks up an operator at run time."""
_NAMELESS = {"!_", "contains", "startsWith", "endsWith"}


def _mismatch(function: str, args: Sequence[Any]) -> str:
    """Return the message of cel-go for arguments that no overload accepts."""
    first = type_name(args[0]) if args else ""
    if function in _NAMELESS or (function in _OPERANDS and first in _OPERANDS[function] | _TIMES | {"string"}):
        return "no such overload"
    if function in _OPERANDS:
        return f"no such overload: {function}"
    return f"no such overload: {function}({', '.join(map(type_name, args))})"
