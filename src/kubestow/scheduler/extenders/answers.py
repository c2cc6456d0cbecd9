"""The answers of extenders, decoded as leniently as in Go: names in any case, null for empty values."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Struct, inspect

from kubestow.scheduler.extenders.extender import Answer, Call, ExtenderError

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Meta(Struct, frozen=True, gc=False):
    name: str = ""


class _Node(Struct, frozen=True, gc=False):
    metadata: _Meta = _Meta()


class _Nodes(Struct, frozen=True, gc=False):
    items: list[_Node] = []


class FilterResult(Struct, frozen=True, forbid_unknown_fields=True):
    Nodes: _Nodes | None = None
    NodeNames: list[str] | None = None
    FailedNodes: dict[str, str] = {}
    FailedAndUnresolvableNodes: dict[str, str] = {}
    Error: str = ""

    def kept(self, *, names_only: bool) -> list[str]:
        """Return the names of the nodes that are kept."""
        if names_only and self.NodeNames is not None:
            return self.NodeNames
        return [] if self.Nodes is None else [node.metadata.name for node in self.Nodes.items]


class HostPriority(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    Host: str = ""
    Score: Int64 = 0


class MetaPod(Struct, frozen=True, forbid_unknown_fields=True):
    UID: str = ""


class MetaVictims(Struct, frozen=True, forbid_unknown_fields=True):
    Pods: list[MetaPod] = []
    NumPDBViolations: Int64 = 0


class PreemptionResult(Struct, frozen=True, forbid_unknown_fields=True):
    NodeNameToMetaVictims: dict[str, MetaVictims] = {}


class BindingResult(Struct, frozen=True, forbid_unknown_fields=True):
    Error: str = ""


class AnswerDecoder:
    """Decodes answers of one kind."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._exact: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._named = _namer(inspect.type_info(kind))

    def decode(self, call: Call, answer: Answer) -> Any:
        """Decode an answer. Raises ExtenderError."""
        if isinstance(answer, ExtenderError):
            raise answer
        try:
            try:
                return self._exact.decode(answer)
            except msgspec.ValidationError:
                return msgspec.convert(self._named(msgspec.json.decode(answer)), self._kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            why = error if answer else "it is empty"
            raise ExtenderError(f'Post "{call.url}": the answer cannot be decoded: {why}') from None


Namer: TypeAlias = Callable[[Any], Any]
"""Renames the fields of a decoded value as declared here; replaces null by an empty value, drops unknown fields."""


def _namer(info: inspect.Type) -> Namer:
    if isinstance(info, inspect.UnionType):
        info = next(kind for kind in info.types if not isinstance(kind, inspect.NoneType))
    if isinstance(info, inspect.StructType):
        return _struct_namer({field.name.lower(): (field.name, _namer(field.type)) for field in info.fields})
    if isinstance(info, inspect.ListType):
        of_item = _namer(info.item_type)
        return lambda value: [*map(of_item, value)] if isinstance(value, list) else [] if value is None else value
    if isinstance(info, inspect.DictType):
        return _dict_namer(_namer(info.value_type))
    return lambda value: "" if value is None else value


def _dict_namer(of_value: Namer) -> Namer:
    def named(value: Any) -> Any:
        if not isinstance(value, dict):
            return {} if value is None else value
        return {name: of_value(part) for name, part in value.items()}

    return named


def _struct_namer(fields: Mapping[str, tuple[str, Namer]]) -> Namer:
    def named(value: Any) -> Any:
        if not isinstance(value, dict):
            return {} if value is None else value
        result = {}
        for name, part in value.items():
            field = fields.get(name) or fields.get(name.lower())
            if field is not None and part is not None:
                result[field[0]] = field[1](part)
        return result

    return named
