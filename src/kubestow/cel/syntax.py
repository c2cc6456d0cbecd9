"""The tree of an expression. The parser makes it, the checker writes types into it, the generator reads it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from kubestow.cel.functions import Overload
from kubestow.cel.types import ERROR, Type


class Nothing(Enum):
    """Stands for no constant, since null is one."""

    NOTHING = 0


NOTHING = Nothing.NOTHING


@dataclass(slots=True, eq=False)
class Node:
    """A part of an expression, at an offset in its text."""

    offset: int
    type: Type = field(default=ERROR, init=False)
    constant: object = field(default=NOTHING, init=False)
    """The value, if it is known without evaluating."""


@dataclass(slots=True, eq=False)
class Literal(Node):
    value: object

    def __post_init__(self) -> None:
        self.constant = self.value


@dataclass(slots=True, eq=False)
class Ident(Node):
    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """`operand.field`, `operand.?field`, or, as a test, `has(operand.field)`."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """A call of a function, or an operator by its name in cel-go, such as `_+_`."""

    function: str
    args: list[Node]
    target: Node | None = None
    overloads: Sequence[Overload] = ()


@dataclass(slots=True, eq=False)
class ListLiteral(Node):
    elements: list[Node]
    optional: frozenset[int]
    """The places of elements with a question mark."""


@dataclass(slots=True, eq=False)
class Entry:
    key: Node
    value: Node
    optional: bool


@dataclass(slots=True, eq=False)
class MapLiteral(Node):
    """`{key: value}`, or with a name before it, `Name{field: value}`, whose keys are texts."""

    entries: list[Entry]
    message: str = ""


class LoopKind(Enum):
    """What a macro makes of the elements it runs through."""

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    LIST = "list"
    MAP = "map"
    ENTRIES = "entries"


@dataclass(slots=True, eq=False)
class Loop(Node):
    """A macro over a list or map, with one variable or two."""

    kind: LoopKind
    range: Node
    variables: tuple[str, ...]
    filter: Node | None
    body: Node


@dataclass(slots=True, eq=False)
class Bind(Node):
    """`cel.bind(variable, value, body)`."""

    variable: str
    value: Node
    body: Node


def children(node: Node) -> list[Node]:
    """The parts that a part is made of."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*([node.target] if node.target else ()), *node.args]
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return [child for entry in node.entries for child in (entry.key, entry.value)]
        case Loop():
            return [node.range, *([node.filter] if node.filter else ()), node.body]
        case Bind():
            return [node.value, node.body]
    return []


def walk(node: Node) -> Iterator[Node]:
    """A tree, part by part."""
    yield node
    for child in children(node):
        yield from walk(child)
