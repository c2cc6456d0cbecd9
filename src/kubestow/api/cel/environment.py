"""The declarations for an expression: variables, fields of structs, functions, and named types."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kubestow.api.cel.functions import Overload
from kubestow.api.cel.types import Type, parse_type

_NAMED = ("bool", "bytes", "double", "int", "string", "uint", "duration", "timestamp", "null", "type", "ip", "cidr")
_TYPES = map(parse_type, (*_NAMED, "list(dyn)", "map(dyn, dyn)", "optional(dyn)"))
TYPE_NAMES: Mapping[str, Type] = {type_.name: type_ for type_ in _TYPES}


class Environment(Struct, frozen=True):
    """The declarations for expressions; their variables are passed to `evaluate` in this order."""

    functions: Mapping[str, Sequence[Overload]]
    variables: Mapping[str, Type] = field(default_factory=dict)
    structs: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    """The fields of each struct type."""
    messages: frozenset[str] = frozenset()
    """First components of the names of messages that expressions can construct, as maps with any fields."""
