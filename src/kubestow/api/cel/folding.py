"""Constant folding: parts of an expression without variables are evaluated once, when it is compiled.

Parts that fail or are expensive are left to the evaluation, except invalid literals, and conversions of literals, which
cel-go evaluates at compile time, too.
"""

from collections.abc import Iterator

from kubestow.api.cel.errors import CompileError, CostLimitError, EvaluationError, Issue
from kubestow.api.cel.functions import Budget, dispatcher
from kubestow.api.cel.library import regex
from kubestow.api.cel.loops import map_literal
from kubestow.api.cel.syntax import NOTHING, Call, ListLiteral, Literal, MapLiteral, Node, children

_COST_LIMIT = 1_000
_LAZY = ("_&&_", "_||_", "_?_:_", "or", "orValue")
_PATTERNS = ("matches", "find", "findAll")
_CHECKED = ("duration", "timestamp")
_CONVERSIONS = ("bool", "bytes", "double", "dyn", "int", "string", "type", "uint", *_CHECKED)


def fold(node: Node) -> Iterator[Issue]:
    """Set the constants of an expression; yield the issues of its literals."""
    for child in children(node):
        yield from fold(child)
    match node:
        case Call(function="@in", args=[_, ListLiteral(elements=[])]):
            # False for any value, even one that cannot be evaluated.
            node.constant = False
        case Call() if node.function not in _LAZY:
            yield from _fold_call(node)
        case ListLiteral() if not node.optional and _all_constant(node.elements):
            node.constant = [element.constant for element in node.elements]
        case MapLiteral() if _all_constant(children(node)) and not any(entry.optional for entry in node.entries):
            node.constant = map_literal(*((entry.key.constant, entry.value.constant, False) for entry in node.entries))


def _all_constant(nodes: list[Node]) -> bool:
    return all(node.constant is not NOTHING for node in nodes)


def _fold_call(node: Call) -> Iterator[Issue]:
    if node.function in _PATTERNS and node.target and node.args and _is_literal(node.args[0]):
        pattern = node.args[0]
        try:
            regex.compiled(str(pattern.constant))
        except ValueError as error:
            if node.function != "matches" or not isinstance(pattern, Literal):
                raise _instantiation_error(error) from None
            yield Issue(pattern.offset, "invalid matches argument")
    args = children(node)
    if not _all_constant(args) or not node.overloads:
        return
    try:
        call = dispatcher(node.function, node.overloads, metered=True)
        node.constant = call(Budget(_COST_LIMIT), *(arg.constant for arg in args))
    except EvaluationError as error:
        if node.function in _CHECKED and isinstance(args[0], Literal):
            yield Issue(args[0].offset, f"invalid {node.function} argument")
        elif _is_literal(node) and not isinstance(error, CostLimitError):
            raise _instantiation_error(error) from None


def _is_literal(node: Node) -> bool:
    """Return whether a part is a literal, consists of literals, or is a conversion of a literal."""
    if isinstance(node, Call) and (node.function not in _CONVERSIONS or len(node.args) != 1):
        return False
    return isinstance(node, Literal | ListLiteral | MapLiteral | Call) and all(map(_is_literal, children(node)))


def _instantiation_error(error: Exception) -> CompileError:
    return CompileError(f"program instantiation failed: {error}")
