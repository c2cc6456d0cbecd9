"""Python code from templates: `fill("A == B", A=..., B=...)` gives a tree with trees in place of the names.

Trees are put together, never text, so nothing in an expression can become code. A text in place of a name renames it.
"""

import ast
from functools import cache
from typing import TypeVar

_T = TypeVar("_T", bound=ast.AST)


@cache
def _expression(template: str) -> ast.expr:
    return ast.parse(template, mode="eval").body


@cache
def _module(template: str) -> ast.Module:
    return ast.parse(template)


def fill(template: str, **parts: ast.expr | str) -> ast.expr:
    """An expression in which names are replaced."""
    return _replaced(_expression(template), parts)


def fill_module(template: str, **parts: ast.expr | str) -> ast.Module:
    """A module in which names are replaced."""
    return _replaced(_module(template), parts)


def constant(value: object) -> ast.expr:
    """A value of a type that Python has literals for."""
    return ast.Constant(value, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)  # type: ignore[arg-type]


def name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def function(parameter: str | None, body: ast.expr) -> ast.expr:
    """A lambda with one parameter or none."""
    return fill("lambda: BODY", BODY=body) if parameter is None else fill("lambda P: BODY", P=parameter, BODY=body)


def call(callee: ast.expr, args: list[ast.expr]) -> ast.expr:
    return ast.Call(callee, args, [], lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def display(kind: type[ast.List] | type[ast.Tuple], elements: list[ast.expr]) -> ast.expr:
    return kind(elements, ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def _replaced(tree: _T, parts: dict[str, ast.expr | str]) -> _T:
    if isinstance(tree, ast.Name) and isinstance(part := parts.get(tree.id), ast.expr):
        return part  # type: ignore[return-value]
    copy = tree.__class__(**{key: _value(value, parts) for key, value in ast.iter_fields(tree)})
    return ast.copy_location(copy, tree)


def _value(value: object, parts: dict[str, ast.expr | str]) -> object:
    if isinstance(value, ast.AST):
        return _replaced(value, parts)
    if isinstance(value, list):
        return [_value(item, parts) for item in value]
    if isinstance(value, str):
        part = parts.get(value)
        return part if isinstance(part, str) else value
    return value
