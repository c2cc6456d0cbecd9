"""CEL types and values of custom objects, derived from their schemas.

An object with properties is a struct, whose field names are escaped for CEL; fields that are null are absent. Strings
in the formats of times, durations and bytes have these types. Values without a schema are dynamic.
"""

import base64
import binascii
import re
from typing import Any

from kubestow.api.cel.library.times import to_duration, to_timestamp
from kubestow.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    list_of,
    map_of,
)

Schema = dict[str, Any]
Structs = dict[str, dict[str, Type]]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_SCALARS = {"boolean": BOOL, "integer": INT, "number": DOUBLE, "string": STRING}
_FORMATS = {"byte": BYTES, "date": TIMESTAMP, "date-time": TIMESTAMP, "duration": DURATION}
_TEXT: Schema = {"type": "string"}
_IDENTITY: Schema = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*\Z")
_SPECIAL = re.compile(r"__|[./-]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "/": "__slash__", "-": "__dash__"}
_RESERVED = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import")
) | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}


def escaped(name: str) -> str | None:
    """Return the escaped name of a field in CEL; None if it cannot be escaped."""
    if name in _RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], name) if _NAME.match(name) else None


def with_identity(schema: Schema) -> Schema:
    """Return the schema of a whole object, with only the names of its metadata."""
    return {**schema, "properties": {**schema.get("properties", {}), **_IDENTITY}}


def fields_of(schema: Schema) -> Schema:
    """Return the properties of an object, with those of every object if it is an embedded resource."""
    properties: Schema = schema.get("properties", {})
    return {**properties, **_IDENTITY} if schema.get("x-kubernetes-embedded-resource") else properties


def declare(schema: Schema, name: str, structs: Structs) -> Type:
    """Return the CEL type of a schema; the required structs are added, under names that begin with `name`."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    kind, values = schema.get("type"), schema.get("additionalProperties")
    if kind == "array":
        return list_of(declare(schema.get("items", {}), f"{name}.@items", structs))
    if kind == "object":
        if isinstance(values, dict):
            return map_of(STRING, declare(values, f"{name}.@values", structs))
        properties = fields_of(schema)
        if values or (schema.get(_PRESERVE) and not properties):
            return DYN
        structs[name] = {
            known: declare(inner, f"{name}.{field}", structs)
            for field, inner in properties.items()
            if (known := escaped(field)) is not None
        }
        return Type(Kind.STRUCT, name)
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    return _SCALARS.get(kind or "", DYN)


def value_of(value: Any, schema: Schema) -> Any:
    """Convert a value that is valid for its schema to CEL."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [value_of(item, items) for item in value]
    if isinstance(value, dict):
        values, properties = schema.get("additionalProperties"), fields_of(schema)
        if isinstance(values, dict):
            return {key: value_of(item, values) for key, item in value.items()}
        if not properties:
            return value
        return {
            known: value_of(value[field], inner)
            for field, inner in properties.items()
            if value.get(field) is not None and (known := escaped(field)) is not None
        }
    if isinstance(value, str):
        return _read(value, schema.get("format"))
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return int(value) if schema.get("type") == "integer" and isinstance(value, float) else value


def _read(text: str, form: str | None) -> Any:
    match form:
        case "date":
            return to_timestamp(f"{text}T00:00:00Z")
        case "date-time":
            return to_timestamp(text)
        case "duration":
            return to_duration(text)
        case "byte":
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                return b""
    return text
