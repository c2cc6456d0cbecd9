"""Python code from templates: `fill("A == B", A=..., B=...)` returns a tree in which the names are replaced by trees.

Only trees are combined, never text, so that no text of an expression can become code. A text as replacement renames.
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
    """Return an expression in which names are replaced."""
    return _replaced(_expression(template), parts)


def fill_module(template: str, **parts: ast.expr | str) -> ast.Module:
    """Return a module in which names are replaced."""
    return _replaced(_module(template), parts)


def constant(value: object) -> ast.expr:
    """Return the tree of a value for which Python has a literal."""
    return ast.Constant(value, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)  # type: ignore[arg-type]


def name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def function(parameter: str | None, body: ast.expr) -> ast.expr:
    """Return a lambda with one parameter or none."""
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
