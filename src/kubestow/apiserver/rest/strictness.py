"""What a strict reader says of a body: fields that its kind does not have, and fields that are given twice.

They are told in the order in which they stand in the body, as Kubernetes does; of YAML, fields given twice are told by
their line. It takes a slower reader than the one bodies are read with, so it is done for clients that say how they want
their fields validated.
"""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from kubestow.apiserver.errors import bad_request
from kubestow.apiserver.schema.types import ListOf, MapOf, Struct, Type

_MOST = 100


_loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Pairs(list[tuple[str, Any]]):
    """An object as it stands: its fields in order, with those that are repeated."""


def strict_errors(body: bytes, schema: Type | None) -> list[str]:
    """The complaints about a valid JSON document; without a schema, only about fields that are given twice."""
    try:
        return list(dict.fromkeys(_complaints(json.loads(body, object_pairs_hook=_Pairs), schema, "")))[:_MOST]
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error


def _complaints(value: Any, schema: Type | None, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            here = f"{path}.{name}" if path else name
            below: Type | None = None
            if isinstance(schema, Struct):
                field = schema.fields.get(name)
                if field is None and schema.closed:
                    yield f'unknown field "{here}"'
                    continue
                below = field.type if field is not None else None
            elif isinstance(schema, MapOf):
                below = schema.value
            if name in seen:
                yield f'duplicate field "{here}"'
            seen.add(name)
            yield from _complaints(inner, below, here)
    elif isinstance(value, list):
        item = schema.item if isinstance(schema, ListOf) else None
        for index, inner in enumerate(value):
            yield from _complaints(inner, item, f"{path}[{index}]")


def repeated_keys(body: bytes) -> list[str]:
    """The keys that the first document of valid YAML gives twice."""
    return list(_repeated(next(yaml.compose_all(body, Loader=_loader), None), set()))[:_MOST]


def _repeated(node: Any, met: set[int]) -> Iterator[str]:
    # Aliases make one node part of many.
    if id(node) in met:
        return
    met.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield f'line {key.start_mark.line + 1}: key "{key.value}" already set in map'
            seen.add(str(key.value))
            yield from _repeated(value, met)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, met)
