"""Generation of a Python function from a checked tree.

There are two variants of each function. The fast one uses Python's own operators wherever the classes of the values are
certain, and stops at the first error. The careful one makes no assumptions about values; in it, a term of `&&` or `||`
can absorb an error in another, and an error in the value of a variable that is not read is ignored. If the fast
function raises, the result is that of the careful one.

The class of a value is certain only for literals, declared variables and their fields, and results of functions, not
from the types of the checker: a list of ints joined with a dynamic one may contain anything.
"""

import ast
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubestow.api.cel import loops, templates, values
from kubestow.api.cel.environment import Environment
from kubestow.api.cel.functions import Budget, Overload, dispatcher
from kubestow.api.cel.library import KUBERNETES, regex
from kubestow.api.cel.library.costs import reading
from kubestow.api.cel.library.operators import ORDER
from kubestow.api.cel.library.optionals import or_optional, or_value
from kubestow.api.cel.syntax import NOTHING, Bind, Call, Ident, ListLiteral, Loop, LoopKind, MapLiteral, Node, Select
from kubestow.api.cel.templates import constant, fill, function, name
from kubestow.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    Kind,
    Type,
    list_of,
    map_of,
)
from kubestow.api.cel.values import TYPE_NAMES, Uint

COST_LIMIT = 1_000_000

_SIMPLE = {BOOL: bool, INT: int, STRING: str, BYTES: bytes, UINT: Uint}
"""Types of which Python and CEL compare two values equally, and their classes."""
_SCALARS = frozenset((BOOL, INT, UINT, DOUBLE, NULL, DURATION, TIMESTAMP, QUANTITY, SEMVER))
_LITERAL = (bool, int, str, bytes, float, type(None))
_OPERATORS = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_SINGLETONS = ("_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "size", "matches", "sort")
"""Functions whose overload cel-go selects by the values, not by the types of the checker."""
_LOOPS: dict[LoopKind, tuple[Callable[..., Any], int, Type]] = {
    LoopKind.ALL: (loops.all_items, 3, BOOL),
    LoopKind.EXISTS: (loops.any_item, 4, BOOL),
    LoopKind.EXISTS_ONE: (loops.one_item, 2, BOOL),
    LoopKind.LIST: (loops.list_of_items, 12, list_of(DYN)),
    LoopKind.MAP: (loops.map_of_items, 3, map_of(DYN, DYN)),
    LoopKind.ENTRIES: (loops.map_of_entries, 3, map_of(DYN, DYN)),
}
"""The function of each kind of loop, the cost of a round without the body, and the type of the result."""


class _Code(Struct, frozen=True):
    """The Python code of a part of an expression."""

    tree: ast.expr
    known: Type | None = None
    """The type, if it is certain."""
    small: bool = False
    """Whether the value is from the expression or a variable, or is a scalar, and not a large computed value."""


def generate(node: Node, environment: Environment, *, careful: bool) -> Callable[..., Any]:
    """Return a function whose parameters are the variables of the environment, in their order."""
    generator = _Generator(environment, careful=careful)
    body = generator.emit(node).tree
    params = [f"x{place}" for place in range(len(environment.variables))]
    template = f"def evaluate({', '.join(params)}):\n"
    if generator.metered:
        template += " budget = Budget(LIMIT)\n"
    limit = constant(COST_LIMIT - generator.cost)
    module = templates.fill_module(template + " return BODY", BODY=body, LIMIT=limit)
    namespace: dict[str, Any] = {"__builtins__": {}, "Budget": Budget, **generator.names}
    exec(compile(module, "<cel>", "exec"), namespace)  # noqa: S102 - the tree contains text of the expression only as constants
    evaluate: Callable[..., Any] = namespace["evaluate"]
    return evaluate


class _Generator:
    def __init__(self, environment: Environment, *, careful: bool) -> None:
        self._functions = environment.functions
        self._structs = environment.structs
        self._careful = careful
        self._serial = count()
        self._scope = {
            variable: _Code(name(f"x{place}"), _certainty(type_), small=True)
            for place, (variable, type_) in enumerate(environment.variables.items())
        }
        self._special: dict[str, Callable[[Call], _Code]] = {
            "_&&_": self._logical,
            "_||_": self._logical,
            "_?_:_": self._conditional,
            "_==_": self._comparison,
            "_!=_": self._comparison,
            "_[_]": self._index,
            "@in": self._in,
            "or": self._or,
            "orValue": self._or,
            **dict.fromkeys(ORDER, self._comparison),
        }
        self._loops = 0
        self.names: dict[str, Any] = {}
        self.metered = False
        self.cost = 0
        """The cost of the parts that are evaluated at most once."""

    def emit(self, node: Node) -> _Code:
        if node.constant is not NOTHING:
            return self._constant(node.constant)
        self.cost += 1
        match node:
            case Ident():
                return self._scope[node.name.removeprefix(".")]
            case Select():
                return self._select(node)
            case Call():
                return self._special.get(node.function, self._call)(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Loop():
                return self._loop(node)
            case Bind():
                return self._bind(node)
        raise AssertionError(node)

    def _fresh(self) -> str:
        return f"v{next(self._serial)}"

    def _inject(self, value: Any) -> ast.expr:
        """Return a name for a value for which Python has no literal."""
        injected = f"k{len(self.names)}"
        self.names[injected] = value
        return name(injected)

    def _invoke(self, callee: Callable[..., Any], *args: ast.expr, paid: bool = False) -> ast.expr:
        self.metered |= paid
        return templates.call(self._inject(callee), [*([name("budget")] if paid else []), *args])

    def _constant(self, value: Any) -> _Code:
        tree = constant(value) if value.__class__ in _LITERAL else self._inject(value)
        return _Code(tree, _type_of_constant(value), small=True)

    def _select(self, node: Select) -> _Code:
        operand = self.emit(node.operand)
        field = constant(node.field)
        if node.test:
            return _Code(self._invoke(values.has, operand.tree, field), BOOL)
        if node.optional:
            return _Code(self._invoke(values.index_optional, operand.tree, field))
        return self._item(operand, _Code(field, STRING), node.field)

    def _index(self, node: Call) -> _Code:
        operand, key = map(self.emit, node.args)
        return self._item(operand, key, "")

    def _item(self, operand: _Code, key: _Code, field: str) -> _Code:
        """Return the code of an item at a key, which reads directly from what is certain to be a map."""
        known = operand.known
        if known is None or known.kind not in (Kind.MAP, Kind.STRUCT):
            return _Code(self._invoke(values.index, operand.tree, key.tree), small=operand.small)
        value = self._structs[known.name][field] if known.kind is Kind.STRUCT else known.params[1]
        if self._careful or key.known != STRING:
            return _Code(self._invoke(values.index, operand.tree, key.tree), _certainty(value), operand.small)
        return _Code(fill("A[B]", A=operand.tree, B=key.tree), _certainty(value), operand.small)

    def _boolean(self, code: _Code) -> ast.expr:
        """Return the code with a check that its value is a bool, unless that is certain."""
        if code.known == BOOL:
            return code.tree
        names: dict[str, ast.expr | str] = {
            "T": self._fresh(),
            "C": self._inject(bool),
            "CHECK": self._inject(values.boolean),
        }
        return fill("T if (T := A).__class__ is C else CHECK(T)", A=code.tree, **names)

    def _logical(self, node: Call) -> _Code:
        terms = [self.emit(arg) for arg in node.args]
        conjunction = node.function == "_&&_"
        if self._careful:
            each = [function(None, term.tree) for term in terms]
            return _Code(self._invoke(loops.all_of if conjunction else loops.any_of, *each), BOOL)
        operator = ast.And() if conjunction else ast.Or()
        tree = fill("A and B")
        assert isinstance(tree, ast.BoolOp)
        tree.op, tree.values = operator, [self._boolean(term) for term in terms]
        return _Code(tree, BOOL)

    def _conditional(self, node: Call) -> _Code:
        condition, then, otherwise = map(self.emit, node.args)
        tree = fill("B if A else C", A=self._boolean(condition), B=then.tree, C=otherwise.tree)
        known = then.known if then.known == otherwise.known else None
        return _Code(tree, known, then.small and otherwise.small)

    def _comparison(self, node: Call) -> _Code:
        """Return the code of a comparison. If the type of only one side is known, the other is tested at run time."""
        left, right = map(self.emit, node.args)
        simple = _SIMPLE.get(right.known or DYN) or _SIMPLE.get(left.known or DYN)
        differ = left.known and right.known and left.known != right.known
        if self._careful or not simple or differ or not self._is_cheap(left, right):
            return self._compared(node, left, right)
        compared = f"A {_OPERATORS[node.function]} B"
        if left.known == right.known:
            return _Code(fill(compared, A=left.tree, B=right.tree), BOOL)
        temporary = self._fresh()
        unknown = left if left.known is None else right
        sides = [name(temporary) if side is unknown else side.tree for side in (left, right)]
        test = fill("(T := A).__class__ is C", T=temporary, A=unknown.tree, C=self._inject(simple))
        quick = fill(compared, A=sides[0], B=sides[1])
        slow = self._invoke(KUBERNETES[node.function][0].call, *sides)
        return _Code(fill("Q if T else S", Q=quick, T=test, S=slow), BOOL)

    def _compared(self, node: Call, left: _Code, right: _Code) -> _Code:
        overload = KUBERNETES[node.function][0]
        if self._is_cheap(left, right):
            return _Code(self._invoke(overload.call, left.tree, right.tree), BOOL)
        return _Code(self._invoke(overload.metered(), left.tree, right.tree, paid=True), BOOL)

    def _is_cheap(self, left: _Code, right: _Code) -> bool:
        """Return whether comparing is cheap: one side is small, or a scalar, or a text that is compared only once."""
        cheap = _SCALARS if self._loops else _SCALARS | {STRING, BYTES}
        return any(side.small or side.known in cheap for side in (left, right))

    def _in(self, node: Call) -> _Code:
        value, container = map(self.emit, node.args)
        items = node.args[1].constant
        if isinstance(items, list) and all(item.__class__ is str for item in items):
            return _Code(fill("A in B", A=value.tree, B=self._inject(tuple(items))), BOOL)
        kind = container.known.kind if container.known else None
        if not self._careful and kind is Kind.MAP and value.known == STRING:
            return _Code(fill("A in B", A=value.tree, B=container.tree), BOOL)
        overload = KUBERNETES["@in"][0]
        if container.small:
            return _Code(self._invoke(overload.call, value.tree, container.tree), BOOL)
        return _Code(self._invoke(overload.metered(), value.tree, container.tree, paid=True), BOOL)

    def _or(self, node: Call) -> _Code:
        assert node.target
        chosen = or_optional if node.function == "or" else or_value
        return _Code(self._invoke(chosen, self.emit(node.target).tree, function(None, self.emit(node.args[0]).tree)))

    def _call(self, node: Call) -> _Code:
        args = [self.emit(arg) for arg in ([node.target] if node.target else []) + node.args]
        trees = [arg.tree for arg in args]
        certain = None if self._careful else _certain(node.overloads, args)
        overloads: Sequence[Overload] = [certain] if certain else node.overloads
        if node.function in _SINGLETONS and not certain:
            every = self._functions[node.function]
            overloads = [overload for overload in every if overload.signature.member is bool(node.target)]
        free = {None, reading, regex.cost} if not self._loops and all(arg.small for arg in args) else {None}
        paid = any(overload.cost not in free for overload in overloads)
        if certain:
            callee = certain.metered() if paid else certain.call
        else:
            callee = dispatcher(node.function, overloads, metered=paid)
        return _Code(self._invoke(callee, *trees, paid=paid), _result(overloads))

    def _list(self, node: ListLiteral) -> _Code:
        self.cost += 10
        elements = [self.emit(element).tree for element in node.elements]
        if not node.optional:
            return _Code(templates.display(ast.List, elements), list_of(DYN))
        pairs = [
            templates.display(ast.Tuple, [element, constant(place in node.optional)])
            for place, element in enumerate(elements)
        ]
        return _Code(self._invoke(loops.list_literal, *pairs), list_of(DYN))

    def _map(self, node: MapLiteral) -> _Code:
        self.cost += 30
        entries = [
            templates.display(
                ast.Tuple, [self.emit(entry.key).tree, self.emit(entry.value).tree, constant(entry.optional)]
            )
            for entry in node.entries
        ]
        return _Code(self._invoke(loops.map_literal, *entries), map_of(DYN, DYN))

    def _loop(self, node: Loop) -> _Code:
        range_ = self.emit(node.range)
        elements = self._invoke(values.pairs if len(node.variables) == 2 else values.keys_or_items, range_.tree)
        run_loop, cost, result = _LOOPS[node.kind]
        outside, self.cost = self.cost, cost
        self._loops += 1
        bodies = [self._function_of(node, node.body, range_)]
        if node.kind in (LoopKind.LIST, LoopKind.MAP, LoopKind.ENTRIES):
            bodies.append(self._function_of(node, node.filter, range_) if node.filter else constant(None))
        self._loops -= 1
        round_cost, self.cost = self.cost, outside
        return _Code(self._invoke(run_loop, constant(round_cost), elements, *bodies, paid=True), result)

    def _function_of(self, node: Loop, body: Node, range_: _Code) -> ast.expr:
        """Return a function whose parameter is the variable of a loop, or the pair of its two variables."""
        parameter = self._fresh()
        if len(node.variables) == 1:
            codes = [_Code(name(parameter), _element(range_.known), range_.small)]
        else:
            codes = [_Code(fill("P[N]", P=parameter, N=constant(place)), None, range_.small) for place in range(2)]
        return function(parameter, self._within(dict(zip(node.variables, codes, strict=True)), body).tree)

    def _within(self, variables: dict[str, _Code], body: Node) -> _Code:
        outer, self._scope = self._scope, self._scope | variables
        code = self.emit(body)
        self._scope = outer
        return code

    def _bind(self, node: Bind) -> _Code:
        value, variable = self.emit(node.value), self._fresh()
        if not self._careful:
            body = self._within({node.variable: replace(value, tree=name(variable))}, node.body)
            return replace(body, tree=fill("(V := A, B)[1]", V=variable, A=value.tree, B=body.tree))
        body = self._within({node.variable: replace(value, tree=fill("V()", V=variable))}, node.body)
        lazy = self._invoke(loops.Lazy, function(None, value.tree))
        return replace(body, tree=templates.call(function(variable, body.tree), [lazy]))


_KNOWN = {type_.name: type_ for type_ in (*_SIMPLE, *_SCALARS)} | {"list": list_of(DYN), "map": map_of(DYN, DYN)}


def _type_of_constant(value: object) -> Type:
    if isinstance(value, list):
        elements = {DYN if isinstance(item, list) else _type_of_constant(item) for item in value}
        return list_of(elements.pop() if len(elements) == 1 else DYN)
    type_name = TYPE_NAMES[value.__class__]
    return _KNOWN.get(type_name) or Type(Kind.OPAQUE, type_name)


def _certainty(type_: Type) -> Type | None:
    return None if type_.dynamic else type_


def _element(range_: Type | None) -> Type | None:
    """Return the type of the variable of a loop with one variable, an element or a key."""
    return _certainty(range_.params[0]) if range_ and range_.params else None


def _certain(overloads: Sequence[Overload], args: Sequence[_Code]) -> Overload | None:
    """Return the overload that is called for all values; None if it depends on them."""
    for overload in overloads:
        fits = [
            param.kind in (Kind.PARAM, Kind.DYN) or (arg.known and arg.known.name == param.name)
            for param, arg in zip(overload.signature.params, args, strict=True)
        ]
        if all(fits):
            return overload
        if not any(fit is False for fit in fits):
            return None  # it depends on the values
    return None


def _result(overloads: Sequence[Overload]) -> Type | None:
    """Return the result type of all overloads if it is certain. An element of a list can have any type."""
    results = {overload.signature.result for overload in overloads}
    result = results.pop()
    taken = any(result in param.params for overload in overloads for param in overload.signature.params)
    return None if results or taken or result.params or result.kind in (Kind.PARAM, Kind.DYN) else result
