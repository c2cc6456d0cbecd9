"""Estimates of the maximum cost of an expression, as the API server computes it before it accepts one.

Each part has a cost and, if known, a size: that of a literal, the maximum that the declaration of a variable allows, or
that of a result. If the cost depends on a size that is not limited, it is infinite. The units and the rules are those
of cel-go, and of the API server for Kubernetes' own functions.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kubestow.api.cel.functions import Overload
from kubestow.api.cel.library.lists import MAX_INCLUDED
from kubestow.api.cel.syntax import Bind, Call, Ident, ListLiteral, Literal, Loop, LoopKind, MapLiteral, Node, Select
from kubestow.api.cel.types import BYTES, CIDR, IP, QUANTITY, SEMVER, STRING, Kind, Type

_LIST, _MAP, _CHARACTER, _PATTERN = 10, 30, 0.1, 0.25
_LONGEST_FORMAT = 128
_NUMBERS = {"bool", "int", "uint", "double", "google.protobuf.Duration", "google.protobuf.Timestamp"}


@dataclass(frozen=True, slots=True)
class Extent:
    """The maximum size of a declared value and of its contents."""

    most: float = math.inf
    keys: "Extent | None" = None
    values: "Extent | None" = None
    fields: Mapping[str, "Extent"] = field(default_factory=dict)
    selectable: bool = False
    """Whether a field selection returns a value of the map."""


class Size(NamedTuple):
    least: float
    most: float

    def union(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))


_ANY_SIZE, _ONE, _EMPTY = Size(0, math.inf), Size(1, 1), Size(math.inf, 0)


class Entries(NamedTuple):
    """The sizes of the elements of a list, or of the keys and values of a map."""

    is_list: bool
    key: Size
    value: Size

    def union(self, other: "Entries | None") -> "Entries | None":
        if other is None:
            return None
        return Entries(self.is_list, self.key.union(other.key), self.value.union(other.value))


class Part(NamedTuple):
    """The cost and the size of a part of an expression; `extent` is set if it is a part of a variable."""

    cost: float
    size: Size | None = None
    extent: Extent | None = None
    entries: Entries | None = None

    @property
    def extents(self) -> Size:
        return self.size or _ANY_SIZE


def most_expensive(tree: Node, variables: Mapping[str, Extent]) -> float:
    """Return the maximum cost of evaluating a checked expression with variables of these extents."""
    known = {name: Part(1, Size(0, extent.most), extent) for name, extent in variables.items()}
    return _part(tree, known).cost


def _part(node: Node, known: Mapping[str, Part]) -> Part:
    match node:
        case Literal():
            is_text = isinstance(node.value, str | bytes)
            return Part(0, Size(len(node.value), len(node.value)) if is_text else _ONE)  # type: ignore[arg-type]
        case Ident():
            found = known.get(node.name, Part(1))
            return found._replace(cost=1, size=found.size or _size_of(node.type))
        case Select():
            return _select(node, known)
        case ListLiteral():
            elements = [_part(element, known) for element in node.elements]
            return Part(_LIST + _sum(elements), _count(elements), None, Entries(True, _ONE, _united(elements)))
        case MapLiteral():
            keys = [_part(entry.key, known) for entry in node.entries]
            values = [_part(entry.value, known) for entry in node.entries]
            entries = Entries(False, _united(keys), _united(values))
            return Part(_MAP + _sum(keys) + _sum(values), _count(keys), None, entries)
        case Bind():
            value = _part(node.value, known)
            body = _part(node.body, {**known, node.variable: value})
            return body._replace(cost=_LIST + value.cost + body.cost)
        case Loop():
            return _loop(node, known)
        case Call():
            return _call(node, known)
    raise AssertionError(node)


def _sum(parts: Sequence[Part]) -> float:
    return sum(part.cost for part in parts)


def _count(parts: Sequence[Part]) -> Size:
    return Size(len(parts), len(parts))


def _united(parts: Sequence[Part]) -> Size:
    size = _EMPTY if parts else Size(0, 0)
    for part in parts:
        size = size.union(part.extents)
    return size


def _times(one: float, other: float) -> float:
    return one * other if one and other else 0


def _share(size: Size, factor: float = _CHARACTER) -> float:
    """Return the cost of traversing a value of a size."""
    return size.most if size.most == math.inf else math.ceil(round(size.most * factor, 6))


def _size_of(type_: Type) -> Size | None:
    """Return the size of a value of a type: one for numbers, else None (unknown)."""
    if type_.kind is Kind.OPAQUE and type_.name == "optional_type":
        return _size_of(type_.params[0])
    return _ONE if type_.name in _NUMBERS else None


def _within(extent: Extent | None, type_: Type) -> Size | None:
    return _size_of(type_) if extent is None else Size(0, extent.most)


def _select(node: Select, known: Mapping[str, Part]) -> Part:
    operand = _part(node.operand, known)
    if node.test:
        return Part(operand.cost, _ONE)
    if node.optional:
        return Part(operand.cost + 1, _size_of(node.type))
    outer, extent = operand.extent, None
    if outer is not None:
        extent = outer.values if outer.selectable else outer.fields.get(node.field)
    costs = node.operand.type.kind in (Kind.MAP, Kind.STRUCT, Kind.PARAM)
    return Part(operand.cost + costs, _within(extent, node.type), extent)


def _loop(node: Loop, known: Mapping[str, Part]) -> Part:
    outer = _part(node.range, known)
    inside = {**known, **_variables(node, outer)}
    body = _part(node.body, inside)
    filtering = 0 if node.filter is None else _part(node.filter, inside).cost
    rounds = outer.extents
    # The cost before the loop, of each round without the body, and after it, as cel-go expands its macros.
    before, step, after = {
        LoopKind.ALL: (0, 3, 1),
        LoopKind.EXISTS: (0, 4, 1),
        LoopKind.EXISTS_ONE: (0, 2, 2),
        LoopKind.LIST: (_LIST, 2 + _LIST, 1),
        LoopKind.MAP: (_MAP, 3, 1),
        LoopKind.ENTRIES: (_MAP, 2, 1),
    }[node.kind]
    cost = outer.cost + before + after + _times(rounds.most, step + filtering + body.cost)
    if node.kind in (LoopKind.ALL, LoopKind.EXISTS, LoopKind.EXISTS_ONE):
        return Part(cost, _ONE)
    entries = Entries(True, _ONE, Size(0, body.extents.most)) if node.kind is LoopKind.LIST else None
    return Part(cost, rounds, None, entries)


def _variables(node: Loop, outer: Part) -> dict[str, Part]:
    is_list = outer.entries.is_list if outer.entries is not None else node.range.type.kind is Kind.LIST
    keys, values = (None, None) if outer.extent is None else (outer.extent.keys, outer.extent.values)
    key = _element(keys, outer.entries and outer.entries.key)
    value = _element(values, outer.entries and outer.entries.value)
    if len(node.variables) == 2:
        return {node.variables[0]: key, node.variables[1]: value}
    return {node.variables[0]: value if is_list else key}


def _element(extent: Extent | None, size: Size | None) -> Part:
    return Part(1, size if extent is None else Size(0, extent.most), extent)


# Calls


def _call(node: Call, known: Mapping[str, Part]) -> Part:
    parts = [_part(arg, known) for arg in ([node.target] if node.target else []) + node.args]
    if node.function in ("_&&_", "_||_"):
        return Part(_sum(parts), _ONE)
    if node.function == "dyn":
        return parts[0]._replace(cost=1 + parts[0].cost, extent=None)
    if node.function == "_?_:_":
        condition, yes, no = parts
        entries = yes.entries and yes.entries.union(no.entries)
        return Part(condition.cost + max(yes.cost, no.cost), yes.extents.union(no.extents), None, entries)
    cost, size, extent, entries = 0.0, None, None, None
    for overload in node.overloads:
        call_cost, result = _overload(node, overload, parts)
        cost = max(cost, call_cost)
        size = result if size is None or result is None else size.union(result)
    if node.function == "_[_]" and node.args[0].type.kind in (Kind.LIST, Kind.MAP):
        extent = parts[0].extent and parts[0].extent.values
        size = parts[0].entries and parts[0].entries.value
    elif node.function == "_+_":
        entries = parts[0].entries and parts[0].entries.union(parts[1].entries)
    return Part(_sum(parts) + cost, size or _within(extent, node.type), extent, entries)


def _overload(node: Call, overload: Overload, parts: Sequence[Part]) -> tuple[float, Size | None]:
    """Return the cost of a call without its arguments, and the size of its result; None if it is unknown."""
    sizes = [part.extents for part in parts]
    types = overload.signature.params
    if node.function in ("_==_", "_!=_") or (
        node.function in ("_<_", "_<=_", "_>_", "_>=_") and types[0] in (STRING, BYTES)
    ):
        types = tuple(one.type for one in node.args)
        is_quick = node.function == "_==_" and types[0] == types[1] and types[0] in (QUANTITY, SEMVER, IP, CIDR)
        return 1 if is_quick else _share(min(sizes, key=lambda size: size.most)), None
    rule = _RULES.get(node.function)
    return (1, None) if rule is None or not sizes else rule(node, types, sizes)


_Rule = Callable[[Call, Sequence[Type], Sequence[Size]], tuple[float, Size | None]]


def _reading(factor: float = _CHARACTER, *, same_size: bool = False, argument: int = 0) -> _Rule:
    """Return the rule of a function that reads a text."""

    def rule(_node: Call, types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
        size = sizes[argument]
        return (_share(size, factor), size if same_size else None) if types[argument] == STRING else (1, None)

    return rule


def _matching(node: Call, _types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    text, pattern = sizes[0], sizes[1]
    cost = _times(_share(Size(0, text.most + 1)), _share(pattern, _PATTERN))
    return cost, None if node.function == "matches" else Size(0, text.most)


def _containing(_node: Call, _types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    return _times(_share(sizes[0]), _share(sizes[1])), None


def _adding(_node: Call, types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    size = Size(sizes[0].least + sizes[1].least, sizes[0].most + sizes[1].most)
    if types[0] in (STRING, BYTES):
        return _share(size), size
    return 1, size if types[0].kind is Kind.LIST else None


def _traversing(node: Call, _types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    elements = node.target.type.params if node.target is not None else ()
    if not elements:
        return _share(sizes[0]), None
    # The sizes of elements are unknown, and texts have to be read.
    return _times(sizes[0].most, math.inf if elements[0] in (STRING, BYTES) else 1), None


def _replacing(_node: Call, _types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    text, old, new = sizes[:3]
    count, kept = 0.0, text.most
    if not old.least:
        count = text.most + 1
    elif new.most > old.least:
        count, kept = math.inf if text.most == math.inf else math.ceil(text.most / old.least), 0
    return _share(text, 2 * _CHARACTER), Size(0, _times(count, new.most) + kept)


def _splitting(node: Call, _types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    limit = node.args[1] if len(node.args) > 1 else None
    most = limit.value if isinstance(limit, Literal) and isinstance(limit.value, int) else sizes[0].most
    return _share(sizes[0], 2 * _CHARACTER), Size(0, most if most >= 0 else math.inf)


def _joining(node: Call, _types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    # The sizes of elements are unknown; if it is also unknown whether there are elements, they do not count.
    has_elements = node.target is not None and bool(node.target.type.params)
    most = _times(sizes[0].most, math.inf) if has_elements else 0
    separators = [_times(max(sizes[0].most - 1, 0), size.most) for size in sizes[1:]]
    size = Size(0, most + sum(separators))
    return _share(size), size


def _addresses(cost: int) -> _Rule:
    """Return the rule of a function that compares addresses; one that is a text is parsed first."""
    return lambda _node, types, sizes: (cost + (_share(sizes[1]) if types[1] == STRING else 0), None)


def _validating(_node: Call, _types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    return _share(sizes[1]) * _LONGEST_FORMAT * _PATTERN, None


def _conversion(node: Call, types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    size, (source,) = sizes[0], types[:1]
    if node.function == "bytes" and source == STRING:
        return _share(size), Size(size.least, 4 * size.most)
    if node.function == "string" and source == BYTES:
        return _share(size), Size(size.least // 4, size.most)
    return 1, None


def _pairing(factor: int) -> _Rule:
    """Return the rule of a function that compares each element of a list with each of another."""
    return lambda _node, _types, sizes: (1 + factor * _times(sizes[0].most, sizes[1].most), None)


def _listing(node: Call, types: Sequence[Type], sizes: Sequence[Size]) -> tuple[float, Size | None]:
    """Return the cost and the size of a list created from another."""
    most, factor = sizes[0].most, 1.0
    numbers = [one.value if isinstance(one, Literal) and isinstance(one.value, int) else None for one in node.args]
    match node.function:
        case "slice":
            start, end = numbers
            most = (sizes[0].most if end is None else end) - (start or 0)
        case "lists.range":
            most = math.inf if numbers[0] is None else numbers[0]
        case "flatten" if numbers:
            factor = math.inf if numbers[0] is None else numbers[0]
        case "sort" | "distinct" | "@sortByAssociatedKeys":
            most = sizes[-1].most
            is_text = node.function != "distinct" and types[-1].params[0] in (STRING, BYTES)
            most, factor = _times(most, most), 2 + (_CHARACTER if is_text else 0)
    most = max(most, 0)
    return 1 + _LIST + math.ceil(_times(most, factor)) if most < math.inf else math.inf, Size(most, most)


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _reading(same_size=True)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _reading()),
    "ip.isCanonical": _reading(2 * _CHARACTER),
    "format": _reading(),
    **dict.fromkeys(("startsWith", "endsWith"), _reading(argument=1)),
    **dict.fromkeys(("matches", "find", "findAll"), _matching),
    "contains": _containing,
    "_+_": _adding,
    "@in": lambda _node, types, sizes: (sizes[1].most if types[1].kind is Kind.LIST else 1, None),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversing),
    "includes": lambda _node, _types, _sizes: (MAX_INCLUDED, None),
    "replace": _replacing,
    "split": _splitting,
    "join": _joining,
    "containsIP": _addresses(4),
    "containsCIDR": _addresses(7),
    "validate": _validating,
    **dict.fromkeys(("bytes", "string"), _conversion),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _pairing(1)),
    "sets.equivalent": _pairing(2),
    **dict.fromkeys(
        ("slice", "flatten", "lists.range", "reverse", "distinct", "sort", "@sortByAssociatedKeys"), _listing
    ),
}
