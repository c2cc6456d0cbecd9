"""What extenders answer, decoded as leniently as Go does: names in any case, nulls for what is empty."""

import functools
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Struct, inspect

from kubestow.extenders.extender import Answer, Call, ExtenderError

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
        """The nodes that will do."""
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


_EMPTY: dict[type, Any] = {inspect.ListType: [], inspect.StrType: ""}
"""What null stands for; otherwise an object without fields."""


class AnswerDecoder:
    """Decodes answers of one kind."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._exact: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._info = inspect.type_info(kind)

    def decode(self, call: Call, answer: Answer) -> Any:
        """Raises ExtenderError."""
        if isinstance(answer, ExtenderError):
            raise answer
        try:
            try:
                return self._exact.decode(answer)
            except msgspec.ValidationError:
                return msgspec.convert(_exactly_named(self._info, msgspec.json.decode(answer)), self._kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ExtenderError(f'Post "{call.url}": the answer cannot be understood: {error}') from None


@functools.cache
def _fields_of(kind: type[Struct]) -> dict[str, inspect.Field]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.name.lower(): field for field in info.fields}


def _exactly_named(info: inspect.Type, value: Any) -> Any:
    """A decoded value with the names of fields as they are here; null is empty, unknown fields are left out."""
    if isinstance(info, inspect.UnionType):
        info = next(kind for kind in info.types if not isinstance(kind, inspect.NoneType))
    if value is None:
        return _EMPTY.get(type(info), {})
    if isinstance(info, inspect.StructType) and isinstance(value, dict):
        known = _fields_of(info.cls)
        found = ((known.get(name.lower()), part) for name, part in value.items())
        return {field.name: _exactly_named(field.type, part) for field, part in found if field is not None is not part}
    if isinstance(info, inspect.ListType) and isinstance(value, list):
        return [_exactly_named(info.item_type, part) for part in value]
    if isinstance(info, inspect.DictType) and isinstance(value, dict):
        return {name: _exactly_named(info.value_type, part) for name, part in value.items()}
    return value
