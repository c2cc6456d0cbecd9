"""Structural schemas as types: known fields, pruning of unknown ones, defaults, and merge strategies."""

import copy
from typing import Any

from kubestow.apiserver.schema.reader import structs
from kubestow.apiserver.schema.types import SCALARS, Field, ListOf, MapOf, Report, Struct, Type

Object = dict[str, Any]
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_ALWAYS = frozenset(("apiVersion", "kind", "metadata"))
_DESCRIPTIONS = {
    "apiVersion": "APIVersion defines group and version of this object's kind.",
    "kind": "Kind is what this object is.",
    "metadata": "Standard object's metadata: name, labels and bookkeeping.",
}
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_ANYTHING = MapOf(SCALARS["any"])
_ANYTHING.value = _ANYTHING
"""The type of values without a schema: objects are merged field by field, other values are replaced."""


class _OpenFields(dict[str, Field]):
    """The fields of an object that preserves unknown fields."""

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002
        return super().get(key) or Field(key, _ANYTHING)


class Custom(Struct):
    """The type of objects of a custom kind."""

    __slots__ = ("closed", "openapi")

    def __init__(self, group: str, version: str, kind: str, schema: Object) -> None:
        reverse = ".".join(reversed(group.split(".")))
        super().__init__(f"{reverse}.{version}", kind, schema.get("description", ""), atomic=False)
        self.openapi = schema
        self.closed = not schema.get(_PRESERVE)
        self.fields = _fields(schema)
        for name in ("apiVersion", "kind"):
            self.fields[name] = Field(name, SCALARS["string"], description=_DESCRIPTIONS[name])
        self.fields["metadata"] = Field("metadata", structs()[_META], description=_DESCRIPTIONS["metadata"])

    def check(self, value: Any, path: str, report: Report) -> None:
        """Drop unknown fields; types and limits of the others are checked after defaults are set."""
        metadata = value.get("metadata")
        if metadata is not None:
            structs()[_META].check(metadata, "metadata", report)
        for name in ("apiVersion", "kind"):
            if not isinstance(value.get(name, ""), str):
                report.wrong.append((name, "must be a string"))
        _prune(value, self.openapi, path, report, root=True)


def _fields(schema: Object) -> dict[str, Field]:
    fields: dict[str, Field] = _OpenFields() if schema.get(_PRESERVE) else {}
    for name, inner in schema.get("properties", {}).items():
        field = fields[name] = Field(name, _type(inner), description=inner.get("description", ""))
        kind = inner.get("x-kubernetes-list-type")
        field.set = kind == "set"
        field.keys = tuple(inner.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
        field.atomic = inner.get("x-kubernetes-map-type") == "atomic"
    return fields


def _type(schema: Object) -> Type:
    if schema.get("type") == "array":
        return ListOf(_type(schema.get("items", {})))
    if schema.get("type") != "object":
        return _ANYTHING if schema.get(_PRESERVE) else SCALARS["any"]
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return MapOf(_type(values))
    if values or (schema.get(_PRESERVE) and not schema.get("properties")):
        return _ANYTHING
    struct = _Inner("", "", "", atomic=schema.get("x-kubernetes-map-type") == "atomic")
    struct.closed = not schema.get(_PRESERVE)
    struct.fields = _fields(schema)
    if schema.get(_EMBEDDED):
        struct.fields |= {name: Field(name, _ANYTHING) for name in _ALWAYS if name not in struct.fields}
    return struct


class _Inner(Struct):
    __slots__ = ("closed",)


def _prune(value: Any, schema: Object, path: str, report: Report, *, root: bool = False) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, schema.get("items", {}), f"{path}[{index}]", report)
    if not isinstance(value, dict):
        return
    known, values = schema.get("properties", {}), schema.get("additionalProperties")
    own = _ALWAYS if root or schema.get(_EMBEDDED) else frozenset()
    for key in list(value):
        here = f"{path}.{key}" if path else key
        if key in known and not (root and key in _ALWAYS):
            _prune(value[key], known[key], here, report)
        elif isinstance(values, dict):
            _prune(value[key], values, here, report)
        elif not (key in own or values or schema.get(_PRESERVE)):
            report.unknown.append(here)
            del value[key]


def set_defaults(value: Any, schema: Object) -> None:
    """Set the defaults of fields that are missing, or null although not nullable."""
    if isinstance(value, list):
        for item in value:
            set_defaults(item, schema.get("items", {}))
    if not isinstance(value, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        if "default" in inner and (name not in value or (value[name] is None and not inner.get("nullable"))):
            value[name] = copy.deepcopy(inner["default"])
        if name in value:
            set_defaults(value[name], inner)
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        for name, inner_value in value.items():
            if name not in schema.get("properties", {}):
                set_defaults(inner_value, values)
