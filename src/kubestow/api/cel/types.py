"""The static types of CEL, and the notation in which functions declare theirs.

`parse_type("map(string, list(A))")` parses a type; single capitals are type parameters. `Signature.parse` parses
`"string.(int) -> string"`, a method of string with an int parameter, or `"(A, list(A)) -> bool"`, a function.
"""

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple


class Kind(Enum):
    """The kinds of types that the checker distinguishes."""

    SCALAR = "scalar"
    DYN = "dyn"
    ANY = "any"
    ERROR = "error"
    NULL = "null"
    LIST = "list"
    MAP = "map"
    STRUCT = "struct"
    OPAQUE = "opaque"
    TYPE = "type"
    PARAM = "param"


_DISPLAY_NAMES = {
    "google.protobuf.Any": "any",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
    "error": "!error!",
}


_MAX_SIZE = 250


class TypeTooLargeError(Exception):
    """A type has too many parts. A short expression can have a type of exponential size."""


class Type:
    """A type: its name at run time, and its type parameters."""

    __slots__ = ("_hash", "kind", "name", "open", "params", "size")

    def __init__(self, kind: Kind, name: str, params: tuple["Type", ...] = ()) -> None:
        self.kind, self.name, self.params = kind, name, params
        self.size: int = 1 + sum(param.size for param in params)
        if self.size > _MAX_SIZE:
            raise TypeTooLargeError
        self.open: bool = kind is Kind.PARAM or any(param.open for param in params)
        """Whether it contains a type parameter."""
        self._hash = hash((kind, name, params))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type) or self is other:
            return self is other
        return self._hash == other._hash and self.name == other.name and self.params == other.params

    def __str__(self) -> str:
        """Return the type as in messages about types."""
        return self._spell(_DISPLAY_NAMES.get(self.name, self.name), [str(param) for param in self.params])

    @property
    def declared(self) -> str:
        """The type as in messages about the type of an expression as a whole."""
        return self._spell(self.name, [param.declared for param in self.params])

    def _spell(self, name: str, params: list[str]) -> str:
        return f"{name}({', '.join(params)})" if params else name

    @property
    def dynamic(self) -> bool:
        return self.kind in (Kind.DYN, Kind.ANY)

    @property
    def unchecked(self) -> bool:
        """Whether every operation is accepted: the type is dynamic, or has an error that is reported elsewhere."""
        return self.dynamic or self.kind is Kind.ERROR


BOOL = Type(Kind.SCALAR, "bool")
BYTES = Type(Kind.SCALAR, "bytes")
DOUBLE = Type(Kind.SCALAR, "double")
INT = Type(Kind.SCALAR, "int")
STRING = Type(Kind.SCALAR, "string")
UINT = Type(Kind.SCALAR, "uint")
DURATION = Type(Kind.SCALAR, "google.protobuf.Duration")
TIMESTAMP = Type(Kind.SCALAR, "google.protobuf.Timestamp")
NULL = Type(Kind.NULL, "null_type")
DYN = Type(Kind.DYN, "dyn")
ANY = Type(Kind.ANY, "google.protobuf.Any")
ERROR = Type(Kind.ERROR, "error")
TYPE = Type(Kind.TYPE, "type")
QUANTITY = Type(Kind.STRUCT, "kubernetes.Quantity")
SEMVER = Type(Kind.STRUCT, "kubernetes.Semver")
URL = Type(Kind.STRUCT, "kubernetes.URL")
FORMAT = Type(Kind.STRUCT, "kubernetes.NamedFormat")
IP = Type(Kind.OPAQUE, "net.IP")
CIDR = Type(Kind.OPAQUE, "net.CIDR")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(Kind.TYPE, "type", (value,))


def parameter(name: str) -> Type:
    return Type(Kind.PARAM, name)


_NAMED = {
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "null": NULL,
    "any": ANY,
    "quantity": QUANTITY,
    "semver": SEMVER,
    "url": URL,
    "format": FORMAT,
    "ip": IP,
    "cidr": CIDR,
} | {type_.name: type_ for type_ in (BOOL, BYTES, DOUBLE, INT, STRING, UINT, DYN, TYPE)}


@cache
def parse_type(text: str) -> Type:
    """Parse a type of a declaration."""
    name, _, rest = text.partition("(")
    params = tuple(parse_type(part) for part in _parts(rest.removesuffix(")")))
    match name, params:
        case "list", (element,):
            return list_of(element)
        case "map", (key, value):
            return map_of(key, value)
        case "optional", (value,):
            return optional_of(value)
        case "type", (value,):
            return type_of(value)
    return parameter(name) if name.isupper() else _NAMED[name]


def _parts(text: str) -> Iterator[str]:
    """Yield the texts between the commas that are not in brackets."""
    depth = start = 0
    for place, char in enumerate(text + ","):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth and text:
            yield text[start:place].strip()
            start = place + 1


_SIGNATURE = re.compile(r"(?:(?P<target>.+)\.)?\((?P<params>.*)\) -> (?P<result>.+)")


class Signature(NamedTuple):
    """The parameter and result types of a function; the first parameter of a member is its target."""

    member: bool
    params: tuple[Type, ...]
    result: Type

    @staticmethod
    @cache
    def parse(text: str) -> "Signature":
        form = _SIGNATURE.fullmatch(text)
        assert form, text
        target = () if form["target"] is None else (parse_type(form["target"]),)
        params = target + tuple(parse_type(part) for part in _parts(form["params"]))
        return Signature(bool(target), params, parse_type(form["result"]))
