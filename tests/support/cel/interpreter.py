"""A reference implementation: an interpreter that walks the tree of an expression, with errors as values.

It is slow and simple. It shares the parser, the values and the functions with the compiler, but not the evaluation of
expressions.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kubestow.api.cel import EvaluationError
from kubestow.api.cel.library import KUBERNETES
from kubestow.api.cel.parser import parse, qualified_name
from kubestow.api.cel.syntax import Bind, Call, Ident, ListLiteral, Literal, Loop, LoopKind, MapLiteral, Node, Select
from kubestow.api.cel.values import contains, equal, has, index, index_optional, keys_or_items, pairs, unequal

Scope = Mapping[str, Callable[[], Any]]


class Failure:
    """An error as a value."""

    def __init__(self, message: str) -> None:
        self.message = message


def interpret(source: str, **variables: Any) -> Any:
    """Return the value of an expression. Raises EvaluationError."""
    result = _value(parse(source), _bound(variables))
    if isinstance(result, Failure):
        raise EvaluationError(result.message)
    return result


def _bound(variables: Mapping[str, Any]) -> Scope:
    return {name: partial(variables.__getitem__, name) for name in variables}


def _strict(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, unless an argument is an error, which then is the result."""
    for arg in args:
        if isinstance(arg, Failure):
            return arg
    try:
        return function(*args)
    except EvaluationError as error:
        return Failure(str(error))


def _value(node: Node, scope: Scope) -> Any:
    match node:
        case Literal():
            return node.value
        case Ident():
            return scope[node.name]()
        case Select():
            function = has if node.test else index_optional if node.optional else index
            return _strict(function, _value(node.operand, scope), node.field)
        case ListLiteral():
            return _strict(lambda *items: list(items), *(_value(element, scope) for element in node.elements))
        case MapLiteral():
            flat = [_value(part, scope) for entry in node.entries for part in (entry.key, entry.value)]
            return _strict(lambda *items: dict(zip(items[::2], items[1::2], strict=True)), *flat)
        case Bind():
            return _value(node.body, {**scope, node.variable: lambda: _value(node.value, scope)})
        case Loop():
            return _loop(node, scope)
        case Call():
            return _call(node, scope)
    raise AssertionError(node)


def _logical(terms: list[Any], deciding: bool) -> Any:
    if any(term is deciding for term in terms):
        return deciding
    for term in terms:
        if not isinstance(term, bool):
            return term if isinstance(term, Failure) else Failure("no such overload")
    return not deciding


def _condition(value: Any) -> Any:
    return value if isinstance(value, bool | Failure) else Failure("no such overload")


def _call(node: Call, scope: Scope) -> Any:
    prefix = qualified_name(node.target) if node.target else ""
    namespaced = f"{prefix}.{node.function}" in KUBERNETES
    target = [node.target] if node.target and not namespaced else []
    function = f"{prefix}.{node.function}" if namespaced else node.function
    args = [_value(arg, scope) for arg in [*target, *node.args]]
    match function:
        case "_&&_" | "_||_":
            return _logical(args, function == "_||_")
        case "_?_:_":
            condition = _condition(args[0])
            return condition if isinstance(condition, Failure) else args[1 if condition else 2]
        case "_==_":
            return _strict(equal, *args)
        case "_!=_":
            return _strict(unequal, *args)
        case "_[_]":
            return _strict(index, *args)
        case "@in":
            return _strict(lambda value, container: contains(container, value), *args)
    return _strict(lambda *values: _dispatch(function, bool(target), values), *args)


def _dispatch(function: str, member: bool, args: tuple[Any, ...]) -> Any:
    for overload in KUBERNETES[function]:
        if overload.signature.member is member and overload.fits(args):
            return overload.call(*args)
    raise EvaluationError("no such overload")


def _loop(node: Loop, scope: Scope) -> Any:
    range_ = _strict(keys_or_items if len(node.variables) == 1 else pairs, _value(node.range, scope))
    if isinstance(range_, Failure):
        return range_
    items = [(item,) for item in range_] if len(node.variables) == 1 else list(range_)
    rounds = [{**scope, **_bound(dict(zip(node.variables, item, strict=True)))} for item in items]
    if node.kind in (LoopKind.ALL, LoopKind.EXISTS):
        return _logical([_value(node.body, variables) for variables in rounds], node.kind is LoopKind.EXISTS)
    counted = node.kind is LoopKind.EXISTS_ONE
    filter_ = node.body if counted else node.filter
    kept: list[Any] = []
    for variables in rounds:
        keep = _condition(_value(filter_, variables)) if filter_ else True
        item = True if counted else _value(node.body, variables) if keep is True else None
        for result in (keep, item):
            if isinstance(result, Failure):
                return result
        if keep:
            kept.append(item)
    return len(kept) == 1 if counted else kept
