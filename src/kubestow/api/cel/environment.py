"""What an expression may use: variables, the fields of structs, functions, and types by name."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kubestow.api.cel.functions import Overload
from kubestow.api.cel.types import Type, parse_type

_NAMED = ("bool", "bytes", "double", "int", "string", "uint", "duration", "timestamp", "null", "type", "ip", "cidr")
_TYPES = map(parse_type, (*_NAMED, "list(dyn)", "map(dyn, dyn)", "optional(dyn)"))
TYPE_NAMES: Mapping[str, Type] = {type_.name: type_ for type_ in _TYPES}


class Environment(Struct, frozen=True):
    """Declarations that expressions are compiled against; the variables are given in this order to evaluate."""

    functions: Mapping[str, Sequence[Overload]]
    variables: Mapping[str, Type] = field(default_factory=dict)
    structs: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    """The fields of each struct type."""
    messages: frozenset[str] = frozenset()
    """What names of messages that expressions may make begin with; they are maps, with whatever fields are given."""
