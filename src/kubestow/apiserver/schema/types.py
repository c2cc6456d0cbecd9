"""Types of API fields: the values they accept, and how lists and maps of them are merged.

A type has three aspects that other modules use: the JSON values it accepts (validation), its form in OpenAPI, and, for
the fields of a struct, the keys that identify list items when patches are merged.
"""

import base64
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from kubestow.api.quantity import canonical

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)\Z")
_INT32 = 2**31
_INT64 = 2**63


@dataclass(slots=True)
class Report:
    """The findings of a check: values of the wrong type, invalid values, and unknown fields."""

    wrong: list[tuple[str, str]] = field(default_factory=list)
    invalid: list[tuple[str, str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    lenient: bool = False
    """Whether a required field that is missing becomes empty, as in the status of an object."""


class Type(ABC):
    """Base of all types; `check` reports on a value, drops unknown and null fields, and makes quantities canonical."""

    __slots__ = ()

    @abstractmethod
    def check(self, value: Any, path: str, report: Report) -> None: ...


@dataclass(slots=True, eq=False)
class Scalar(Type):
    """A single value, accepted by a predicate."""

    name: str
    description: str
    accepts: Callable[[Any], bool]
    openapi: Mapping[str, Any]

    def check(self, value: Any, path: str, report: Report) -> None:
        if not self.accepts(value):
            report.wrong.append((path, f"must be {self.description}, not {quote_value(value)}"))


@dataclass(slots=True, eq=False)
class Choice(Type):
    """A string that must be one of an enumeration."""

    values: tuple[str, ...]

    def check(self, value: Any, path: str, report: Report) -> None:
        if type(value) is not str:
            report.wrong.append((path, f"must be a string, not {quote_value(value)}"))
        elif value not in self.values and value != "":
            known = ", ".join(f'"{one}"' for one in sorted(self.values))
            reason = f"Unsupported value: {quote_value(value)}: supported values: {known}"
            report.invalid.append((path, "FieldValueNotSupported", reason))


@dataclass(slots=True, eq=False)
class ListOf(Type):
    """A list of values of one type."""

    item: Type

    def check(self, value: Any, path: str, report: Report) -> None:
        if type(value) is not list:
            report.wrong.append((path, f"must be a list, not {quote_value(value)}"))
            return
        item = self.item
        if isinstance(item, Scalar):
            accepts = item.accepts
            for index, one in enumerate(value):
                if not accepts(one):
                    item.check(one, f"{path}[{index}]", report)
        else:
            for index, one in enumerate(value):
                item.check(one, f"{path}[{index}]", report)


@dataclass(slots=True, eq=False)
class MapOf(Type):
    """An object with free keys and values of one type."""

    value: Type

    def check(self, value: Any, path: str, report: Report) -> None:
        if type(value) is not dict:
            report.wrong.append((path, f"must be an object, not {quote_value(value)}"))
            return
        inner = self.value
        if inner is SCALARS["quantity"]:
            for key, one in value.items():
                if _is_quantity(one):
                    value[key] = canonical(one)
                else:
                    inner.check(one, f"{path}.{key}", report)
        elif isinstance(inner, Scalar):
            accepts = inner.accepts
            for key, one in value.items():
                if not accepts(one):
                    inner.check(one, f"{path}.{key}", report)
        else:
            for key, one in value.items():
                inner.check(one, f"{path}.{key}", report)


@dataclass(slots=True, eq=False)
class Field:
    """A field of a struct: its type, its description, and how patches merge it."""

    name: str
    type: Type
    required: bool = field(default=False, kw_only=True)
    description: str = field(default="", kw_only=True)
    merge: bool = False
    merge_key: str | None = None
    retain_keys: bool = False
    keys: tuple[str, ...] = ()
    set: bool = False
    atomic: bool = False


class Struct(Type):
    """An object with known fields."""

    __slots__ = ("atomic", "description", "fields", "group", "name", "required", "table")
    closed = True
    """Whether unknown fields are dropped."""

    def __init__(self, group: str, name: str, description: str, *, atomic: bool) -> None:
        self.group = group
        self.name = name
        self.description = description
        self.atomic = atomic
        self.fields: dict[str, Field] = {}
        self.table: dict[str, tuple[Callable[[Any], bool] | None, Type]] = {}
        self.required: tuple[str, ...] = ()

    @property
    def openapi_name(self) -> str:
        """The name of this type in OpenAPI documents."""
        return f"{self.group}.{self.name}"

    def finish(self) -> None:
        """Precompute the tables that `check` uses, once all fields are added."""
        self.table = {
            name: (field.type.accepts if isinstance(field.type, Scalar) else None, field.type)
            for name, field in self.fields.items()
        }
        # A missing number or boolean is zero, as some clients leave zeros out.
        self.required = tuple(
            name
            for name, field in self.fields.items()
            if field.required
            and not (isinstance(field.type, Scalar) and field.type.name in ("int32", "int64", "bool", "number"))
        )

    def check(self, value: Any, path: str, report: Report) -> None:
        if type(value) is not dict:
            report.wrong.append((path, f"must be an object, not {quote_value(value)}"))
            return
        table = self.table
        drop: list[str] | None = None
        for key, item in value.items():
            entry = table.get(key)
            if entry is None:
                report.unknown.append(f"{path}.{key}" if path else key)
            elif item is None:
                pass
            elif entry[0] is not None:
                if not entry[0](item):
                    entry[1].check(item, f"{path}.{key}" if path else key, report)
                continue
            else:
                if path:
                    entry[1].check(item, f"{path}.{key}", report)
                elif key == "status":
                    report.lenient = True
                    entry[1].check(item, key, report)
                    report.lenient = False
                else:
                    entry[1].check(item, key, report)
                continue
            if drop is None:
                drop = []
            drop.append(key)
        if drop is not None:
            for key in drop:
                del value[key]
        for name in self.required:
            if name not in value:
                where = f"{path}.{name}" if path else name
                if not report.lenient:
                    report.invalid.append((where, "FieldValueRequired", "Required value"))
                elif (empty := _empty(self.fields[name].type)) is not None:
                    value[name] = empty
                    self.fields[name].type.check(empty, where, report)


def _empty(type_: Type) -> Any:
    """Return the empty value of a type; None if it has none."""
    if isinstance(type_, Struct | MapOf):
        return {}
    if isinstance(type_, ListOf):
        return []
    return "" if isinstance(type_, Choice) or type_ is SCALARS["string"] else None


def quote_value(value: Any) -> str:
    """Return a value as text for messages: as JSON, with long strings cut."""
    if value is None:
        return "null"
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value[:60]}"'
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return str(value)[:60]


def _is_int(bound: int) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        return type(value) is int and -bound <= value < bound

    return accepts


def accepting(read: Callable[[Any], Any], *types: type) -> Callable[[Any], bool]:
    """Return a predicate: whether a value is of one of the types, and `read` raises no ValueError for it."""

    def accepts(value: Any) -> bool:
        if type(value) not in types:
            return False
        try:
            read(value)
        except ValueError:
            return False
        return True

    return accepts


_is_quantity = accepting(canonical, str, int, float)
_is_time = accepting(lambda text: datetime.fromisoformat(text if _TIME.match(text) else ""), str)
_is_int32 = _is_int(_INT32)
_SCALARS: tuple[tuple[str, str, Callable[[Any], bool], str, str], ...] = (
    ("string", "a string", lambda value: type(value) is str, "string", ""),
    ("bool", "true or false", lambda value: value is True or value is False, "boolean", ""),
    ("int32", "a whole number", _is_int32, "integer", "int32"),
    ("int64", "a whole number", _is_int(_INT64), "integer", "int64"),
    ("number", "a number", lambda value: type(value) in (int, float), "number", "double"),
    ("bytes", "base64 text", accepting(partial(base64.b64decode, validate=True), str), "string", "byte"),
    ("time", "a time such as 2026-01-31T12:00:00Z", _is_time, "string", "date-time"),
    ("microtime", "a time such as 2026-01-31T12:00:00.000000Z", _is_time, "string", "date-time"),
    ("quantity", "a quantity such as 100m or 2Gi", _is_quantity, "string", ""),
    (
        "intstr",
        "a whole number or a string",
        lambda value: type(value) is str or _is_int32(value),
        "string",
        "int-or-string",
    ),
    ("any", "anything", lambda _: True, "object", ""),
)
"""Name, description, predicate, and OpenAPI type and format."""
SCALARS: dict[str, Scalar] = {
    name: Scalar(name, description, accepts, {"type": kind, "format": form} if form else {"type": kind})
    for name, description, accepts, kind, form in _SCALARS
}
