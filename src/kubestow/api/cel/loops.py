"""Macros, logical operators and literals at run time; generated code calls these functions.

Conditions and bodies are functions of the variable. Each round is paid before it runs, so that nested loops end when
the budget is spent. `cost` is the cost of a round.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kubestow.api.cel.errors import CostLimitError, EvaluationError
from kubestow.api.cel.functions import Budget
from kubestow.api.cel.values import Optional, boolean, find, no_such_overload, text_of

Body = Callable[[Any], Any]

_FREE = Budget(0)


def _any_is(items: Iterable[Any], evaluate: Body, expected: bool, budget: Budget, cost: int) -> bool:
    """Return whether an item evaluates to `expected`. If none does, raise the first error, if any."""
    error: EvaluationError | None = None
    for item in items:
        budget.spend(cost)
        try:
            result = evaluate(item)
            if result is expected:
                return True
            if result.__class__ is not bool:
                raise no_such_overload()
        except CostLimitError:
            raise
        except EvaluationError as failure:
            error = error or failure
    if error:
        raise error
    return False


def all_of(*terms: Callable[[], Any]) -> bool:
    """Evaluate the `&&` operator."""
    return not _any_is(terms, _evaluate, False, _FREE, 0)


def any_of(*terms: Callable[[], Any]) -> bool:
    """Evaluate the `||` operator."""
    return _any_is(terms, _evaluate, True, _FREE, 0)


def _evaluate(term: Callable[[], Any]) -> Any:
    return term()


def all_items(budget: Budget, cost: int, items: Iterable[Any], predicate: Body) -> bool:
    return not _any_is(items, predicate, False, budget, cost)


def any_item(budget: Budget, cost: int, items: Iterable[Any], predicate: Body) -> bool:
    return _any_is(items, predicate, True, budget, cost)


def one_item(budget: Budget, cost: int, items: Iterable[Any], predicate: Body) -> bool:
    return sum(1 for _ in _filtered(budget, cost, items, predicate)) == 1


def _filtered(budget: Budget, cost: int, items: Iterable[Any], condition: Body | None) -> Iterable[Any]:
    for item in items:
        budget.spend(cost)
        if condition is None or boolean(condition(item)):
            yield item


def list_of_items(budget: Budget, cost: int, items: Iterable[Any], body: Body, condition: Body | None) -> list[Any]:
    return [body(item) for item in _filtered(budget, cost, items, condition)]


def map_of_items(
    budget: Budget, cost: int, items: Iterable[tuple[Any, Any]], body: Body, condition: Body | None
) -> dict[Any, Any]:
    return {pair[0]: body(pair) for pair in _filtered(budget, cost, items, condition)}


def map_of_entries(
    budget: Budget, cost: int, items: Iterable[Any], body: Body, condition: Body | None
) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    for item in _filtered(budget, cost, items, condition):
        update = body(item)
        if update.__class__ is not dict:
            raise no_such_overload()
        for key, value in update.items():
            if find(entries, key)[0]:
                raise EvaluationError(f"insert failed: key {text_of(key)} already exists")
            entries[key] = value
    return entries


class Lazy:
    """The value of a bound variable, or the error of its evaluation, computed on first use."""

    __slots__ = ("_error", "_evaluate", "_value")

    def __init__(self, evaluate: Callable[[], Any]) -> None:
        self._evaluate: Callable[[], Any] | None = evaluate
        self._value: Any = None
        self._error: EvaluationError | None = None

    def __call__(self) -> Any:
        if self._evaluate:
            try:
                self._value = self._evaluate()
            except EvaluationError as error:
                self._error = error
            self._evaluate = None
        if self._error:
            raise self._error
        return self._value


def list_literal(*elements: tuple[Any, bool]) -> list[Any]:
    """Return a list of the elements, some of which are optional."""
    result: list[Any] = []
    for element, optional in elements:
        if not optional:
            result.append(element)
        elif element.__class__ is not Optional:
            problem = "cannot initialize optional list element from non-optional value"
            raise EvaluationError(f"{problem} {text_of(element)}")
        elif element.present:
            result.append(element.value)
    return result


def map_literal(*entries: tuple[Any, Any, bool]) -> dict[Any, Any]:
    """Return a map of keys and values, some of which are optional."""
    result: dict[Any, Any] = {}
    for key, value, optional in entries:
        if key.__class__ in (list, dict, Optional):
            raise EvaluationError("unsupported key type")
        if optional and value.__class__ is not Optional:
            problem = f"cannot initialize optional entry '{text_of(key)}' from non-optional value"
            raise EvaluationError(f"{problem} {text_of(value)}")
        if not optional:
            result[key] = value
        elif value.present:
            result[key] = value.value
        else:
            result.pop(key, None)
    return result
