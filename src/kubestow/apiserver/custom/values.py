"""Validation of values against a schema, with the messages of Kubernetes."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kubestow.api.cel.library import regex
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import DUPLICATE, INVALID, NOT_SUPPORTED, REQUIRED
from kubestow.apiserver.schema.types import SCALARS, accepting
from kubestow.apiserver.store.records import encode

Schema = dict[str, Any]
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z")
_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": SCALARS["time"].accepts,
    "date": re.compile(r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])\Z").match,  # type: ignore[dict-item]
    "byte": SCALARS["bytes"].accepts,
    "ipv4": accepting(ipaddress.IPv4Address, str),
    "ipv6": accepting(ipaddress.IPv6Address, str),
    "cidr": accepting(partial(ipaddress.ip_network, strict=False), str),
    "uuid": _UUID.match,  # type: ignore[dict-item]
    "email": re.compile(r"[^@\s]+@[^@\s]+\Z").match,  # type: ignore[dict-item]
    "hostname": re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?\Z").match,  # type: ignore[dict-item]
}


def type_name(value: Any) -> str:
    """Return the type of a JSON value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    names: tuple[tuple[type, str], ...] = (
        (str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object"),
    )  # fmt: skip
    return next(name for kind, name in names if isinstance(value, kind))


def as_json(value: Any) -> str:
    """Return a value as JSON for messages."""
    return encode(value).decode()


def value_errors(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    """Yield the errors of a value, and of the values below it."""
    if value is None and schema.get("nullable"):
        return
    wanted, found = schema.get("type"), type_name(value)
    if schema.get("x-kubernetes-int-or-string"):
        wanted = None if found in ("integer", "string") else "integer,string"
    fits = wanted in (None, found) or (wanted == "number" and found == "integer")
    fits = fits or (wanted == "integer" and isinstance(value, float) and value.is_integer())
    if not fits:
        yield (
            path,
            "FieldValueTypeInvalid",
            f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"',
        )
        return
    if "enum" in schema and value not in schema["enum"]:
        listed = ", ".join(as_json(one) for one in schema["enum"])
        yield path, NOT_SUPPORTED, f"Unsupported value: {as_json(value)}: supported values: {listed}"
    for why in _out_of_bounds(value, schema):
        yield path, INVALID, f"Invalid value: {as_json(value)}: {path} in body {why}"
    yield from _wrong_size(value, schema, path)
    if isinstance(value, dict):
        yield from _wrong_fields(value, schema, path)
    elif isinstance(value, list):
        yield from _wrong_items(value, schema, path)
    for why in _wrong_choice(value, schema, path):
        yield path, INVALID, f"Invalid value: {path or '<nil>'} in body {why}"


def _out_of_bounds(value: Any, schema: Schema) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield f"should be at least {schema['minLength']} chars long"
        if "pattern" in schema and not regex.compiled(schema["pattern"]).search(value):
            yield f"should match '{schema['pattern']}'"
        accepts = _FORMATS.get(schema.get("format", ""))
        if accepts is not None and not accepts(value):
            yield f'must be of type {schema["format"]}: "{value}"'
    elif isinstance(value, int | float) and not isinstance(value, bool):
        minimum, maximum = schema.get("minimum"), schema.get("maximum")
        if minimum is not None and (value < minimum or (value == minimum and schema.get("exclusiveMinimum"))):
            yield f"should be greater than {'' if schema.get('exclusiveMinimum') else 'or equal to '}{minimum}"
        if maximum is not None and (value > maximum or (value == maximum and schema.get("exclusiveMaximum"))):
            yield f"should be less than {'' if schema.get('exclusiveMaximum') else 'or equal to '}{maximum}"
        if schema.get("multipleOf") and value % schema["multipleOf"]:
            yield f"should be a multiple of {schema['multipleOf']}"
        bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""))
        if bits is not None and not -(2**bits) <= value < 2**bits:
            yield f"should be a valid {schema['format']}"


def _wrong_size(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield path, "FieldValueTooLong", f"Too long: may not be more than {schema['maxLength']} bytes"
    for kind, what in ((list, "Items"), (dict, "Properties")):
        if isinstance(value, kind):
            size = len(value)
            if size > schema.get(f"max{what}", size):
                message = f"Too many: {size}: must have at most {schema[f'max{what}']} items"
                yield path, "FieldValueTooMany", message
            if size < schema.get(f"min{what}", 0):
                why = f"{path} in body should have at least {schema[f'min{what}']} {what.lower()}"
                yield path, INVALID, f"Invalid value: {size}: {why}"


def _wrong_fields(value: Schema, schema: Schema, path: str) -> Iterator[Cause]:
    prefix = f"{path}." if path else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield prefix + name, REQUIRED, "Required value"
    known, values = schema.get("properties", {}), schema.get("additionalProperties")
    for name, inner in value.items():
        if name in known:
            yield from value_errors(inner, known[name], prefix + name)
        elif isinstance(values, dict):
            yield from value_errors(inner, values, prefix + name)


def _wrong_items(value: list[Any], schema: Schema, path: str) -> Iterator[Cause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", ())
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        yield from value_errors(item, schema.get("items", {}), f"{path}[{index}]")
        identity: Any = None
        if kind == "set" or schema.get("uniqueItems"):
            identity = item
        elif kind == "map" and isinstance(item, dict):
            identity = {key: item.get(key) for key in keys}
        else:
            continue
        text = encode(identity)
        if text in seen:
            yield f"{path}[{index}]", DUPLICATE, f"Duplicate value: {text.decode()}"
        seen.add(text)


def _wrong_choice(value: Any, schema: Schema, path: str) -> Iterator[str]:
    def holds(inner: Schema) -> bool:
        return next(value_errors(value, inner, path), None) is None

    if not all(holds(inner) for inner in schema.get("allOf", ())):
        yield "must validate all the schemas (allOf)"
    if schema.get("anyOf") and not any(holds(inner) for inner in schema["anyOf"]):
        yield "must validate at least one schema (anyOf)"
    if schema.get("oneOf"):
        valid = sum(holds(inner) for inner in schema["oneOf"])
        if valid != 1:
            found = "none valid" if valid == 0 else f"{valid} valid alternatives"
            yield f"must validate one and only one schema (oneOf). Found {found}"
    if "not" in schema and holds(schema["not"]):
        yield "must not validate the schema (not)"
