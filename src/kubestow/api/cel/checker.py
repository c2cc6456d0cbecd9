"""Type checking: sets the type of each part of an expression, and the candidate overloads of each call.

All issues are collected and reported in one error.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kubestow.api.cel.environment import TYPE_NAMES, Environment
from kubestow.api.cel.errors import CompileError, Issue
from kubestow.api.cel.functions import Overload
from kubestow.api.cel.parser import qualified_name
from kubestow.api.cel.syntax import (
    Bind,
    Call,
    Entry,
    Ident,
    ListLiteral,
    Literal,
    Loop,
    LoopKind,
    MapLiteral,
    Node,
    Select,
)
from kubestow.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Kind,
    Signature,
    Type,
    list_of,
    map_of,
    optional_of,
    parameter,
    type_of,
)
from kubestow.api.cel.unification import Substitutions, more_general
from kubestow.api.cel.values import TypeValue, Uint

_LITERALS = {bool: BOOL, bytes: BYTES, float: DOUBLE, int: INT, type(None): NULL, str: STRING, Uint: UINT}
_LOGICAL = ("_&&_", "_||_")
_MAX_ISSUES = 100


def check(node: Node, environment: Environment, source: str) -> Type:
    """Check an expression and return its type. Raises CompileError."""
    checker = _Checker(environment)
    result = checker.check(node)
    checker.check_literals()
    if checker.issues:
        raise CompileError.of(source, *checker.issues[:_MAX_ISSUES])
    return checker.finalize(result)


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._known = Substitutions()
        self._scopes: list[dict[str, Type]] = [dict(environment.variables)]
        self._formats = 0
        self._aggregates: list[Sequence[tuple[Node, bool]]] = []
        """Groups of elements that must have the same type, each with whether it is optional."""
        self.issues: list[Issue] = []

    def finalize(self, type_: Type) -> Type:
        return self._known.resolve(type_, final=True)

    def check(self, node: Node) -> Type:
        match node:
            case Literal():
                type_ = _LITERALS[type(node.value)]
            case Ident():
                type_ = self._ident(node)
            case Select():
                type_ = self._select(node)
            case Call():
                type_ = self._call(node)
            case ListLiteral():
                type_ = self._list(node)
            case MapLiteral():
                type_ = self._map(node)
            case Loop():
                type_ = self._loop(node)
            case Bind():
                value = self.check(node.value)
                with self._scope({node.variable: value}):
                    type_ = self.check(node.body)
            case _:
                raise AssertionError(node)
        node.type = type_
        return type_

    def check_literals(self) -> None:
        """Report lists and maps whose elements, keys or values differ in type; dynamic is a type of its own here."""
        for elements in self._aggregates if not self.issues else ():
            first: Type | None = None
            for node, optional in elements:
                type_ = self.finalize(node.type)
                if optional and type_.params:
                    type_ = type_.params[0]
                first = first or type_
                if type_ != first:
                    self._mismatch(node, first, type_)
                    break

    @contextmanager
    def _scope(self, variables: dict[str, Type]) -> Iterator[None]:
        self._scopes.append(variables)
        yield
        self._scopes.pop()

    def _issue(self, node: Node, message: str) -> Type:
        self.issues.append(Issue(node.offset, message))
        return ERROR

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._issue(node, f"undeclared reference to '{name}' (in container '')")

    def _mismatch(self, node: Node, expected: Type, actual: Type) -> Type:
        return self._issue(node, f"expected type '{expected}' but found '{actual}'")

    def _type_name(self, node: Node, name: str) -> Type | None:
        if (type_ := TYPE_NAMES.get(name)) is None:
            return None
        node.constant = TypeValue(name)
        return type_of(type_)

    def _ident(self, node: Ident) -> Type:
        name = node.name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return self._type_name(node, name) or self._undeclared(node, node.name)

    def _select(self, node: Select) -> Type:
        if type_ := self._type_name(node, qualified_name(node).removeprefix(".")):
            return type_
        operand = self._known.resolve(self.check(node.operand))
        is_optional = operand.name == "optional_type"
        target = operand.params[0] if is_optional else operand
        result = self._field(node, target)
        if node.test:
            return BOOL
        return optional_of(result) if node.optional or is_optional else result

    def _field(self, node: Select, target: Type) -> Type:
        if target.kind is Kind.MAP:
            return target.params[1]
        if target.kind is Kind.STRUCT:
            fields = self._environment.structs.get(target.name, {})
            return fields.get(node.field) or self._issue(node, f"undefined field '{node.field}'")
        if target.kind is Kind.PARAM:
            self._known.assign([DYN], [target])
        elif not target.unchecked:
            self._issue(node, f"type '{target}' does not support field selection")
        return DYN

    def _call(self, node: Call) -> Type:
        functions = self._environment.functions
        exempt = node.function == "format"  # its arguments may be of any types
        self._formats += exempt
        args = [self.check(arg) for arg in node.args]
        self._formats -= exempt
        if node.function in _LOGICAL:
            return self._logical(node, args)
        name = node.function.removeprefix(".")
        if node.target is not None:
            prefix = qualified_name(node.target)
            if prefix and (qualified := f"{prefix}.{name}".removeprefix(".")) in functions:
                name, node.target = qualified, None
            else:
                args.insert(0, self.check(node.target))
        if name not in functions:
            return self._undeclared(node, node.function)
        node.function = name
        return self._overloads(node, functions[name], args)

    def _logical(self, node: Call, args: Sequence[Type]) -> Type:
        faults = [
            self._mismatch(arg, BOOL, self._known.resolve(type_))
            for arg, type_ in zip(node.args, args, strict=True)
            if not self._known.assign([type_], [BOOL])
        ]
        return ERROR if faults else BOOL

    def _overloads(self, node: Call, overloads: Sequence[Overload], args: Sequence[Type]) -> Type:
        """Set the overloads that accept the arguments; return their common result type."""
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in overloads:
            if overload.signature.member is not (node.target is not None):
                continue
            signature = self._instantiate(overload.signature)
            if self._known.assign(args, signature.params):
                fitting.append(overload)
                other = self._known.resolve(signature.result)
                if result is None:
                    result = other
                elif other != result and not result.dynamic:
                    result = DYN
        if result is None:
            return self._no_overload(node, node.function, args, member=node.target is not None)
        node.overloads = fitting
        return result

    def _no_overload(self, node: Node, function: str, args: Sequence[Type], *, member: bool = False) -> Type:
        spelled = [str(self.finalize(arg)) for arg in args]
        target = f"{spelled[0]}." if member else ""
        applied = f"{target}({', '.join(spelled[member:])})"
        return self._issue(node, f"found no matching overload for '{function}' applied to '{applied}'")

    def _instantiate(self, signature: Signature) -> Signature:
        """Return the signature with fresh type parameters."""
        fresh: dict[str, Type] = {}

        def renamed(type_: Type) -> Type:
            if type_.kind is Kind.PARAM:
                return fresh.setdefault(type_.name, self._known.fresh())
            return Type(type_.kind, type_.name, tuple(map(renamed, type_.params))) if type_.params else type_

        return Signature(signature.member, tuple(map(renamed, signature.params)), renamed(signature.result))

    def _join(self, node: Node, previous: Type | None, *, optional: bool) -> Type:
        """Return the more general of the type of the previous elements and that of the next."""
        current = self.check(node)
        if optional:
            if current.name == "optional_type":
                current = current.params[0]
            elif not current.unchecked:
                self._mismatch(node, optional_of(current), current)
        if previous is None:
            return current
        if self._known.assign([previous], [current]):
            return more_general(previous, current)
        if self._formats:
            return DYN
        return self._mismatch(node, self._known.resolve(previous), self._known.resolve(current))

    def _list(self, node: ListLiteral) -> Type:
        element: Type | None = None
        for place, item in enumerate(node.elements):
            element = self._join(item, element, optional=place in node.optional)
        if not self._formats:
            self._aggregates.append([(item, place in node.optional) for place, item in enumerate(node.elements)])
        return list_of(element or self._known.fresh())

    def _message(self, node: MapLiteral) -> Type:
        for entry in node.entries:
            self.check(entry.key)
            self.check(entry.value)
        if node.message.partition(".")[0] not in self._environment.messages:
            return self._undeclared(node, node.message)
        return DYN

    def _map(self, node: MapLiteral) -> Type:
        if node.message:
            return self._message(node)
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(entry.key, key, optional=False)
            value = self._join(entry.value, value, optional=entry.optional)
        if not self._formats:
            self._aggregates += _columns(node.entries)
        return map_of(key or self._known.fresh(), value or self._known.fresh())

    def _loop(self, node: Loop) -> Type:
        elements = self._elements(node)
        with self._scope(dict(zip(node.variables, elements, strict=True))):
            condition = self.check(node.filter) if node.filter else BOOL
            body = self.check(node.body)
            result = self._collected(node, body, elements[0])
            if node.kind is LoopKind.EXISTS_ONE:
                condition = body
            if not self._known.assign([condition], [BOOL]):
                return self._no_overload(node, "_?_:_", [condition, result, result])
        return BOOL if node.kind is LoopKind.EXISTS_ONE else result

    def _elements(self, node: Loop) -> tuple[Type, ...]:
        """Return the types of the variables of a loop."""
        range_ = self._known.resolve(self.check(node.range))
        two = len(node.variables) == 2
        match range_.kind:
            case Kind.LIST:
                return (INT, range_.params[0]) if two else range_.params
            case Kind.MAP:
                return range_.params if two else range_.params[:1]
            case Kind.DYN | Kind.ERROR | Kind.PARAM:
                self._known.assign([DYN], [range_])
                return (DYN,) * len(node.variables)
        problem = f"expression of type '{range_}' cannot be range of a comprehension (must be list, map, or dynamic)"
        return (self._issue(node.range, problem),) * len(node.variables)

    def _collected(self, node: Loop, body: Type, first: Type) -> Type:
        """Return the type of the result of a loop."""
        match node.kind:
            case LoopKind.EXISTS_ONE:
                return INT
            case LoopKind.LIST:
                return list_of(self._known.resolve(body))
            case LoopKind.MAP:
                return map_of(first, self._known.resolve(body))
            case LoopKind.ENTRIES:
                entries = self._instantiate(Signature(False, (), map_of(parameter("K"), parameter("V")))).result
                if not self._known.assign([body], [entries]):
                    return self._no_overload(node, "cel.@mapInsert", [entries, body])
                return self._known.resolve(entries)
        if not self._known.assign([body], [BOOL]):
            return self._mismatch(node.body, BOOL, self._known.resolve(body))
        return BOOL


def _columns(entries: Sequence[Entry]) -> Iterator[Sequence[tuple[Node, bool]]]:
    yield [(entry.key, False) for entry in entries]
    yield [(entry.value, entry.optional) for entry in entries]
