"""Macros: calls whose arguments are not evaluated first, such as `list.all(x, x > 0)` or `has(a.b)`.

`expand` replaces such a call by a loop, a binding, or calls of functions.
"""

from collections.abc import Callable

from kubestow.api.cel.errors import Issue
from kubestow.api.cel.syntax import Bind, Call, Ident, Literal, Loop, LoopKind, MapLiteral, Node, Select

_RESULT = "__result__"
# Variables whose names are not valid in an expression.
_SORTED = "@sorted"
_OPTIONAL = "@optional"


class MacroError(Exception):
    """A macro has invalid arguments."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(node.offset, message)


def expand(call: Call) -> Node:
    """Return the expansion of a call of a macro, or else the call itself."""
    macro = _MACROS.get((call.function, len(call.args), call.target is not None))
    return macro(call) if macro else call


def _name(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node, message)
    if node.name == _RESULT:
        raise MacroError(node, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(call: Call, count: int) -> tuple[str, ...]:
    names = tuple(_name(arg, "argument must be a simple name") for arg in call.args[:count])
    if len(set(names)) < count:
        raise MacroError(call.args[1], f"duplicate variable name: {names[0]}")
    return names


def _loop(call: Call, kind: LoopKind, variables: tuple[str, ...], body: Node, filter_: Node | None = None) -> Node:
    assert call.target is not None
    return Loop(call.offset, kind, call.target, variables, filter_, body)


def _quantifier(kind: LoopKind, variables: int) -> Callable[[Call], Node]:
    return lambda call: _loop(call, kind, _variables(call, variables), call.args[-1])


def _transform(kind: LoopKind) -> Callable[[Call], Node]:
    return lambda call: _loop(call, kind, _variables(call, 2), call.args[-1], call.args[2] if call.args[3:] else None)


def _map(call: Call) -> Node:
    variables = (_name(call.args[0], "argument is not an identifier"),)
    return _loop(call, LoopKind.LIST, variables, call.args[-1], call.args[1] if call.args[2:] else None)


def _filter(call: Call) -> Node:
    variables = (_name(call.args[0], "argument is not an identifier"),)
    return _loop(call, LoopKind.LIST, variables, Ident(call.args[0].offset, variables[0]), call.args[1])


def _has(call: Call) -> Node:
    field = call.args[0]
    if not isinstance(field, Select) or field.optional or field.test:
        raise MacroError(field, "invalid argument to has() macro")
    return Select(call.offset, field.operand, field.field, test=True)


def _bind(call: Call) -> Node:
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return call
    if not isinstance(call.args[0], Ident):
        raise MacroError(call.args[0], "cel.bind() variable names must be simple identifiers")
    return Bind(call.offset, call.args[0].name, call.args[1], call.args[2])


def _optional_map(call: Call, *, flat: bool) -> Node:
    variable, target, offset = call.args[0], call.target, call.offset
    if not isinstance(variable, Ident):
        raise MacroError(variable, f"{call.function}() variable name must be a simple identifier")
    assert target is not None
    mapped: Node = Bind(offset, variable.name, Call(offset, "value", [], Ident(offset, _OPTIONAL)), call.args[1])
    if not flat:
        mapped = Call(offset, "optional.of", [mapped])
    present = Call(offset, "hasValue", [], Ident(offset, _OPTIONAL))
    return Bind(offset, _OPTIONAL, target, Call(offset, "_?_:_", [present, mapped, Call(offset, "optional.none", [])]))


def _sort_by(call: Call) -> Node:
    if isinstance(call.target, Literal | MapLiteral) or not isinstance(call.target, Node):
        problem = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(call.target or call, problem)
    keys = _map(Call(call.offset, "map", call.args, Ident(call.offset, _SORTED)))
    ordered = Call(call.offset, "@sortByAssociatedKeys", [keys], Ident(call.offset, _SORTED))
    return Bind(call.offset, _SORTED, call.target, ordered)


_MACROS: dict[tuple[str, int, bool], Callable[[Call], Node]] = {
    ("has", 1, False): _has,
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("bind", 3, True): _bind,
    ("optMap", 2, True): lambda call: _optional_map(call, flat=False),
    ("optFlatMap", 2, True): lambda call: _optional_map(call, flat=True),
    ("sortBy", 2, True): _sort_by,
}
for _function, _kind in {
    "all": LoopKind.ALL,
    "exists": LoopKind.EXISTS,
    "exists_one": LoopKind.EXISTS_ONE,
}.items():
    _MACROS |= {(_function, count + 1, True): _quantifier(_kind, count) for count in (1, 2)}
# With one variable, only the older name exists.
_MACROS["existsOne", 3, True] = _quantifier(LoopKind.EXISTS_ONE, 2)
for _function, _kind in {
    "transformList": LoopKind.LIST,
    "transformMap": LoopKind.MAP,
    "transformMapEntry": LoopKind.ENTRIES,
}.items():
    _MACROS |= {(_function, count, True): _transform(_kind) for count in (3, 4)}
