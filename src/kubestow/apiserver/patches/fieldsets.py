"""Sets of fields in the format of managedFields: a tree of `f:name`, `k:{keys}` and `v:value`.

A leaf is an empty tree; `.` in a tree stands for the item itself beside its fields, or for a list or map without items.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubestow.apiserver.schema.types import Field, ListOf, MapOf, Struct, Type

Tree = dict[str, Any]

_UNOWNED = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields", "generateName",
)  # fmt: skip
"""Metadata fields that have no owner."""


def from_object(obj: dict[str, Any], schema: Struct) -> Tree:
    """Return the managedFields set of an object, without the fields that no manager owns."""
    owned = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    metadata = owned.get("metadata")
    if isinstance(metadata, dict):
        owned["metadata"] = {k: v for k, v in metadata.items() if k not in _UNOWNED}
        if not owned["metadata"]:
            del owned["metadata"]
    return _from_struct(owned, schema)


def _from_struct(value: dict[str, Any], schema: Struct) -> Tree:
    tree: Tree = {}
    for key, item in value.items():
        field = schema.fields.get(key)
        if field is not None and item is not None:
            tree[f"f:{key}"] = _from_field(item, field)
    return tree


def _from_field(value: Any, field: Field) -> Tree:
    kind = field.type
    if field.atomic:
        return {}
    if isinstance(kind, ListOf) and isinstance(value, list):
        if field.keys:
            return {key_of(item, field): {".": {}, **_from_item(item, kind.item)} for item in value} or {".": {}}
        if field.set:
            return {f"v:{_text(item)}": {} for item in value} or {".": {}}
        return {}
    return _from_value(value, kind)


def _from_value(value: Any, kind: Type) -> Tree:
    if isinstance(kind, Struct) and isinstance(value, dict) and not kind.atomic:
        return _from_struct(value, kind) or {".": {}}
    if isinstance(kind, MapOf) and isinstance(value, dict):
        return {f"f:{key}": _from_value(item, kind.value) for key, item in value.items()} or {".": {}}
    return {}


def _from_item(item: Any, kind: Type) -> Tree:
    return _from_struct(item, kind) if isinstance(kind, Struct) and isinstance(item, dict) else {}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def key_of(item: Any, field: Field) -> str:
    """Return the key of a list item in a tree; the default of `protocol` is TCP."""
    keys = {
        key: item.get(key, "TCP" if key == "protocol" else "") if isinstance(item, dict) else ""
        for key in sorted(field.keys)
    }
    return f"k:{_text(keys)}"


def is_tree(value: Any) -> bool:
    """Return whether a value has the format of a tree."""
    return isinstance(value, dict) and all(_is_key(key) and is_tree(below) for key, below in value.items())


def _is_key(key: str) -> bool:
    kind, colon, name = key.partition(":")
    if kind not in ("k", "v"):
        return key == "." or (kind == "f" and bool(colon))
    try:
        selected = msgspec.json.decode(name.encode())
    except msgspec.DecodeError:
        return False
    return kind == "v" or isinstance(selected, dict)


def union(left: Tree, right: Tree) -> Tree:
    """Return the fields in either tree."""
    merged = dict(left)
    for key, below in right.items():
        merged[key] = union(merged[key], below) if key in merged else below
    return merged


def difference(left: Tree, right: Tree) -> Tree:
    """Return the fields in `left` that are not in `right`."""
    rest: Tree = {}
    for key, below in left.items():
        if key not in right:
            rest[key] = below
        elif below:
            remaining = difference(below, right[key])
            if remaining:
                rest[key] = remaining
    return rest


def intersection(left: Tree, right: Tree) -> Tree:
    """Return the fields in both trees."""
    common: Tree = {}
    for key, below in left.items():
        if key in right:
            shared = intersection(below, right[key])
            if shared or not below or not right[key]:
                common[key] = shared
    return common


def leaves(tree: Tree, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields of a tree, as in messages."""
    for key, below in tree.items():
        if key == ".":
            continue
        kind, _, name = key.partition(":")
        here = f"{path}.{name}" if kind == "f" else f"{path}[{_item_name(kind, name)}]"
        if below and set(below) != {"."}:
            yield from leaves(below, here)
        else:
            yield here


def _item_name(kind: str, name: str) -> str:
    if kind == "v":
        return f"={name}"
    keys: dict[str, Any] = msgspec.json.decode(name.encode())
    return ",".join(f"{key}={_text(value)}" for key, value in keys.items())
