"""Decode objects from protobuf, which kubectl always sends for some commands.

The wire format has field numbers instead of names; `protobuf.txt` maps the numbers to names, and the tables of types
give the type of each field. There is no encoder, because clients that send protobuf accept JSON in return.

Go always writes strings, and numbers and booleans that are not pointers: zero values are dropped, as Go itself leaves
them out of JSON.
"""

import base64
import time
from collections.abc import Iterator
from functools import cache
from importlib import resources
from struct import unpack
from typing import Any

import msgspec

from kubestow.api.codec import NOT_JSON
from kubestow.apiserver.schema.reader import openapi_name, structs
from kubestow.apiserver.schema.types import ListOf, MapOf, Scalar, Struct, Type
from kubestow.client.protobuf import BYTES, MAGIC, ProtobufError, as_bytes, fields_of, varint_at

_MAX_DEPTH = 64


Numbers = dict[int, tuple[str, str]]
"""The field and its mark by number. Marks: `~` if zero means absent, `+` for the type of an inlined message, `|` for a
field that is a boolean or an object of the same type."""


@cache
def _numbers() -> dict[str, Numbers]:
    text = (resources.files("kubestow.apiserver.schema") / "protobuf.txt").read_text(encoding="utf-8")
    found: dict[str, Numbers] = {}
    group = ""
    for line in text.partition("\n\n")[2].splitlines():
        name, *entries = line.split() or [""]
        if name == "group":
            group = entries[0]
        elif name:
            numbers: Numbers = {}
            for entry in entries:
                field, _, number = entry.partition("=")
                mark = "+" if field.startswith("+") else field[-1] if field[-1] in "~|" else ""
                part = field.strip("+~|")
                if mark == "+" and "." not in part:
                    part = f"{group}.{part}"
                numbers[int(number)] = (part, mark)
            found[f"{group}.{name}"] = numbers
    return found


def envelope(data: bytes) -> tuple[str, str, bytes]:
    """Return the apiVersion, kind and raw message of a body."""
    if not data.startswith(MAGIC):
        raise ProtobufError("missing the prefix of Kubernetes protobuf messages")
    api_version = kind = ""
    raw = b""
    for number, _, value in fields_of(data[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, _, text in fields_of(value):
                if isinstance(text, bytes):
                    if inner == 1:
                        api_version = _text(text)
                    elif inner == 2:
                        kind = _text(text)
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return api_version, kind, raw


def read(struct: Struct, data: bytes) -> dict[str, Any]:
    """Decode a message of a type."""
    obj: dict[str, Any] = {}
    _read_into(obj, struct, struct.openapi_name, data, 0)
    return obj


def _read_into(obj: dict[str, Any], struct: Struct, message: str, data: bytes, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ProtobufError("messages are nested too deeply")
    numbers = _numbers().get(message, {})
    for number, wire, value in fields_of(data):
        name, mark = numbers.get(number, ("", ""))
        if not name:
            continue
        if mark == "+":
            _read_into(obj, struct, name, as_bytes(value), depth + 1)
            continue
        if mark == "|":
            obj[name] = _either(struct, as_bytes(value), depth)
            continue
        kind = struct.fields[name].type
        if isinstance(kind, ListOf):
            items = obj.setdefault(name, [])
            if wire == BYTES and isinstance(kind.item, Scalar) and kind.item.name in ("int32", "int64"):
                items.extend(_signed(one) for one in _packed(as_bytes(value)))
            else:
                items.append(_value(kind.item, value, depth))
        elif isinstance(kind, MapOf):
            key, item = _entry(kind.value, as_bytes(value), depth)
            obj.setdefault(name, {})[key] = item
        else:
            item = _value(kind, value, depth)
            if item is not None and item != "" and (item or mark != "~"):
                obj[name] = item


def _either(struct: Struct, data: bytes, depth: int) -> Any:
    """Decode a field that is either a boolean or an object."""
    held = [value for _, _, value in fields_of(data)]
    objects = [value for value in held if isinstance(value, bytes)]
    return _value(struct, objects[0], depth) if objects else any(held)


def _entry(kind: Type, data: bytes, depth: int) -> tuple[str, Any]:
    key = ""
    item: Any = "" if isinstance(kind, Scalar) and kind.name == "string" else None
    for number, _, value in fields_of(data):
        if number == 1:
            key = _text(as_bytes(value))
        elif number == 2 and isinstance(kind, ListOf):
            item = [_value(kind.item, one, depth) for inner, _, one in fields_of(as_bytes(value)) if inner == 1]
        elif number == 2:
            item = _value(kind, value, depth)
    return key, item


def _value(kind: Type, value: int | bytes, depth: int) -> Any:
    if isinstance(kind, Struct):
        obj: dict[str, Any] = {}
        _read_into(obj, kind, kind.openapi_name, as_bytes(value), depth + 1)
        return obj
    if not isinstance(kind, Scalar):
        return _text(as_bytes(value))
    if kind.name in ("int32", "int64"):
        return _signed(_as_int(value))
    if kind.name == "bool":
        return bool(_as_int(value))
    data = as_bytes(value)
    if kind.name == "number":
        return _number(data)
    if kind.name == "bytes":
        return base64.b64encode(data).decode()
    if kind.name in ("time", "microtime"):
        return _time(data, micro=kind.name == "microtime")
    if kind.name == "quantity":
        return _text(next((as_bytes(inner) for number, _, inner in fields_of(data) if number == 1), b"0"))
    if kind.name == "intstr":
        parts = {number: inner for number, _, inner in fields_of(data)}
        if parts.get(1, 0) == 1:
            return _text(as_bytes(parts.get(3, b"")))
        return _signed(_as_int(parts.get(2, 0)))
    if kind.name == "any":
        raw = next((as_bytes(inner) for number, _, inner in fields_of(data) if number == 1), b"null")
        try:
            return msgspec.json.decode(raw)
        except NOT_JSON as error:
            raise ProtobufError("a free-form field is not valid JSON") from error
    return _text(data)


def _number(data: bytes) -> float:
    if len(data) != 8:
        raise ProtobufError("a floating-point number is not eight bytes long")
    number: float = unpack("<d", data)[0]
    return int(number) if number.is_integer() else number


def _time(data: bytes, *, micro: bool) -> str | None:
    parts = {number: inner for number, _, inner in fields_of(data)}
    if 1 not in parts:
        return None
    seconds, nanos = _signed(_as_int(parts[1])), _signed(_as_int(parts.get(2, 0)))
    try:
        moment = time.gmtime(seconds)
        text = f"{moment.tm_year:04d}{time.strftime('-%m-%dT%H:%M:%S', moment)}"
    except (ValueError, OverflowError, OSError) as error:
        raise ProtobufError("a time is out of range") from error
    return f"{text}.{nanos // 1000:06d}Z" if micro else f"{text}Z"


def _packed(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = varint_at(data, at)
        yield value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _as_int(value: int | bytes) -> int:
    if isinstance(value, int):
        return value
    return int.from_bytes(value, "little")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProtobufError("a string is not valid UTF-8") from error


@cache
def struct_for(api_version: str, kind: str) -> Struct | None:
    """Return the type of a kind, which need not be a resource; None if it has no field numbers."""
    for name in (openapi_name(api_version, kind), f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"):
        if name in _numbers():
            return structs()[name]
    return None
