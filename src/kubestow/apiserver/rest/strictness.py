"""Strict decoding: find the fields of a body that its kind does not have, and those that are repeated.

They are reported in the order of the body, as Kubernetes does; repeated fields of YAML are reported with their line.
This decoder is slower than the one for bodies, so it runs only for clients that request field validation.
"""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from kubestow.apiserver.errors import bad_request
from kubestow.apiserver.schema.types import ListOf, MapOf, Struct, Type

_MAX_ERRORS = 100


_loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object in order, including repeated ones."""


def strict_errors(body: bytes, schema: Type | None) -> list[str]:
    """Return the errors in a valid JSON document; without a schema, only repeated fields."""
    try:
        return list(dict.fromkeys(_errors(json.loads(body, object_pairs_hook=_Pairs), schema, "")))[:_MAX_ERRORS]
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error


def _errors(value: Any, schema: Type | None, path: str) -> Iterator[str]:
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
            yield from _errors(inner, below, here)
    elif isinstance(value, list):
        item = schema.item if isinstance(schema, ListOf) else None
        for index, inner in enumerate(value):
            yield from _errors(inner, item, f"{path}[{index}]")


def repeated_keys(body: bytes) -> list[str]:
    """Return the repeated keys of the first YAML document. Raises ApiError for JSON that is not valid YAML."""
    try:
        document = next(yaml.compose_all(body, Loader=_loader), None)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {' '.join(str(error).split())}") from error
    return list(_repeated(document, set()))[:_MAX_ERRORS]


def _repeated(node: Any, visited: set[int]) -> Iterator[str]:
    # Aliases make a node part of several others.
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield f'line {key.start_mark.line + 1}: key "{key.value}" already set in map'
            seen.add(str(key.value))
            yield from _repeated(value, visited)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, visited)
