"""Server-side apply: a manager sends the fields it manages; the server merges them and tracks their ownership.

A field that another manager owns with a different value is a conflict, unless forced. Fields that this manager applied
before and omits now are removed, unless another manager owns them.
"""

import copy
from typing import Any

from kubestow.apiserver.errors import Cause, apply_conflict
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.patches import fieldsets
from kubestow.apiserver.patches.fieldsets import Tree, key_of
from kubestow.apiserver.patches.ownership import BEFORE, belongs_to, changed_fields, entry, managed, member
from kubestow.apiserver.schema.types import Field, ListOf, MapOf, Struct, Type

Object = dict[str, Any]


def apply(
    resource: Resource, live: Object | None, applied: Object, manager: str, now: str, *, force: bool, sub: str = ""
) -> Object:
    """Return the resulting object; `live` is None if it does not exist yet. Raises ApiError for conflicts."""
    schema = resource.schema
    stated = fieldsets.from_object(applied, schema)
    if live is None:
        created = copy.deepcopy(applied)
        created.setdefault("metadata", {})["managedFields"] = [entry(resource, manager, "Apply", stated, now, sub)]
        return created
    lines = managed(live)
    if not lines:
        lines = [entry(resource, BEFORE, "Update", fieldsets.from_object(live, schema), now)]
    mine = next((line for line in lines if belongs_to(line, manager, "Apply", sub)), None)
    others = [line for line in lines if line is not mine]
    different = changed_fields(stated, applied, live)
    conflicts = _conflicts(others, different)
    if conflicts and not force:
        raise apply_conflict(conflicts)
    dropped = fieldsets.difference(mine["fieldsV1"], stated) if mine is not None else {}
    for line in others:
        dropped = fieldsets.difference(dropped, line.get("fieldsV1", {}))
    merged = copy.deepcopy(live)
    _remove(merged, dropped)
    metadata = {k: v for k, v in applied.get("metadata", {}).items() if k not in ("managedFields", "resourceVersion")}
    body = {key: value for key, value in applied.items() if key not in ("metadata", "apiVersion", "kind")}
    merge_struct(merged, {**body, "metadata": metadata}, schema)
    kept = []
    for line in others:
        fields = fieldsets.difference(line.get("fieldsV1", {}), different)
        if fields:
            kept.append(dict(line, fieldsV1=fields))
    unchanged = mine is not None and mine["fieldsV1"] == stated
    kept.append(mine if unchanged and mine is not None else entry(resource, manager, "Apply", stated, now, sub))
    merged["metadata"]["managedFields"] = kept
    if "resourceVersion" in applied.get("metadata", {}):
        merged["metadata"]["resourceVersion"] = applied["metadata"]["resourceVersion"]
    return merged


def _conflicts(others: list[Object], different: Tree) -> list[Cause]:
    causes: list[Cause] = []
    for line in others:
        for path in fieldsets.leaves(fieldsets.intersection(different, line.get("fieldsV1", {}))):
            owner = f'"{line["manager"]}"'
            if line.get("subresource"):
                owner += f' with subresource "{line["subresource"]}"'
            if line["operation"] == "Update":
                owner += f" using {line['apiVersion']}"
            causes.append((path, "FieldManagerConflict", f"conflict with {owner}"))
    return causes


def _remove(value: Any, tree: Tree) -> None:
    for key, below in tree.items():
        kind, _, name = key.partition(":")
        if kind == "f" and isinstance(value, dict) and name in value:
            _remove(value[name], below)
            if not below or value[name] in ({}, []):
                del value[name]
        elif isinstance(value, list) and kind in ("k", "v"):
            item = member(value, key)
            if item is None:
                continue
            if below and "." not in below:
                _remove(item, below)
            else:
                value.remove(item)


def merge_struct(target: Object, applied: Object, schema: Struct) -> None:
    for key, value in applied.items():
        field = schema.fields.get(key)
        if field is None or value is None:
            continue
        target[key] = _merge_field(target.get(key), value, field)


def _merge_field(target: Any, value: Any, field: Field) -> Any:
    kind = field.type
    if field.atomic or target is None:
        return value
    if isinstance(kind, ListOf):
        if field.keys and isinstance(target, list) and isinstance(value, list):
            return _merge_items(target, value, field, kind.item)
        if field.set and isinstance(target, list) and isinstance(value, list):
            return target + [item for item in value if item not in target]
        return value
    return _merge_value(target, value, kind)


def _merge_value(target: Any, value: Any, kind: Type) -> Any:
    if isinstance(kind, Struct) and not kind.atomic and isinstance(target, dict) and isinstance(value, dict):
        merge_struct(target, value, kind)
        return target
    if isinstance(kind, MapOf) and isinstance(target, dict) and isinstance(value, dict):
        for key, item in value.items():
            target[key] = _merge_value(target[key], item, kind.value) if key in target else item
        return target
    return value


def _merge_items(target: list[Any], value: list[Any], field: Field, kind: Type) -> list[Any]:
    by_key = {key_of(item, field): item for item in target}
    result: list[Any] = []
    for item in value:
        old = by_key.pop(key_of(item, field), None)
        result.append(item if old is None else _merge_value(old, item, kind))
    return result + list(by_key.values())
