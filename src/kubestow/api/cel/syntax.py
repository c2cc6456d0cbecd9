"""The tree of an expression. The parser creates it, the checker sets its types, the generator reads it."""

from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct

from kubestow.api.cel.functions import Overload
from kubestow.api.cel.types import ERROR, Type


class Nothing(Enum):
    """Marks the absence of a constant; None is the constant null."""

    NOTHING = 0


NOTHING = Nothing.NOTHING


class _Checked(Struct, eq=False, kw_only=True):
    """The results of checking and folding a part of an expression."""

    type: Type = ERROR
    constant: object = NOTHING
    """The value if it does not depend on variables, else NOTHING."""


class Node(_Checked, eq=False):
    """A part of an expression; `offset` is its position in the text."""

    offset: int


class Literal(Node, eq=False):
    value: object

    def __post_init__(self) -> None:
        self.constant = self.value


class Ident(Node, eq=False):
    name: str


class Select(Node, eq=False):
    """`operand.field`, `operand.?field`, or, as a test, `has(operand.field)`."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False


class Call(Node, eq=False):
    """A call of a function, or an operator by its name in cel-go, such as `_+_`."""

    function: str
    args: list[Node]
    target: Node | None = None
    overloads: Sequence[Overload] = ()


class ListLiteral(Node, eq=False):
    elements: list[Node]
    optional: frozenset[int]
    """The indexes of elements with a question mark."""


class Entry(Struct, eq=False):
    key: Node
    value: Node
    optional: bool


class MapLiteral(Node, eq=False):
    """`{key: value}`, or a message, `Name{field: value}`, whose keys are texts."""

    entries: list[Entry]
    message: str = ""


class LoopKind(Enum):
    """The result that a macro computes from the elements."""

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    LIST = "list"
    MAP = "map"
    ENTRIES = "entries"


class Loop(Node, eq=False):
    """A macro over a list or map, with one variable or two."""

    kind: LoopKind
    range: Node
    variables: tuple[str, ...]
    filter: Node | None
    body: Node


class Bind(Node, eq=False):
    """`cel.bind(variable, value, body)`."""

    variable: str
    value: Node
    body: Node


def children(node: Node) -> list[Node]:
    """Return the direct parts of a part."""
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
    """Yield all parts of a tree."""
    yield node
    for child in children(node):
        yield from walk(child)
