"""Ownership of fields by managers, in managedFields.

Ownership is tracked from the creation of an object if the request names a `fieldManager`, as kubectl does, else from
the first server-side apply: fields that were set before belong to `before-first-apply`. Other objects have no
managedFields, so that objects of controllers are small and cheap to write.
"""

from typing import Any

import msgspec

from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.patches import fieldsets
from kubestow.apiserver.patches.fieldsets import Tree

Object = dict[str, Any]
BEFORE = "before-first-apply"


def entry(resource: Resource, manager: str, operation: str, fields: Tree, now: str, sub: str = "") -> Object:
    """Return an entry of managedFields."""
    line: Object = {
        "manager": manager,
        "operation": operation,
        "apiVersion": resource.api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if sub:
        line["subresource"] = sub
    return line


def managed(obj: Object) -> list[Object]:
    """Return the managedFields of an object."""
    found: list[Object] = obj["metadata"].get("managedFields") or []
    return found


def drop_invalid(obj: Object) -> None:
    """Remove the managedFields of a new object if they are invalid, as kube-apiserver does."""
    if "managedFields" in obj["metadata"] and not all(_is_valid(line) for line in managed(obj)):
        del obj["metadata"]["managedFields"]


def track_create(resource: Resource, obj: Object, intent: Intent, now: str) -> None:
    """Make the creator of an object the owner of all its fields, including defaults."""
    owned = {key: value for key, value in obj.items() if key != "status" or not resource.has_status}
    fields = fieldsets.from_object(owned, resource.schema)
    obj["metadata"]["managedFields"] = [entry(resource, intent.manager, "Update", fields, now)]


def track_update(resource: Resource, new: Object, old: Object, intent: Intent, sub: str, now: str) -> None:
    """Make the manager of an update the owner of the changed fields, and drop the ownership of removed ones."""
    lines = managed(old)
    given = new["metadata"].get("managedFields")
    if given is not None and given != lines:
        if not any(given):
            # An empty list or one empty entry resets managedFields, since null in a patch means no change.
            new["metadata"].pop("managedFields", None)
        elif not all(_is_valid(line) for line in given):
            new["metadata"]["managedFields"] = lines
        return
    if not lines:
        new["metadata"].pop("managedFields", None)
        return
    now_set = fieldsets.from_object(new, resource.schema)
    changed = changed_fields(now_set, new, old)
    kept: list[Object] = []
    mine: Object | None = None
    for line in lines:
        fields = fieldsets.intersection(line.get("fieldsV1", {}), now_set)
        if belongs_to(line, intent.manager, "Update", sub):
            mine = dict(line, fieldsV1=fields)
            kept.append(mine)
        else:
            fields = fieldsets.difference(fields, changed)
            if fields:
                kept.append(dict(line, fieldsV1=fields))
    if changed:
        if mine is None:
            kept.append(entry(resource, intent.manager, "Update", changed, now, sub))
        else:
            mine["fieldsV1"] = fieldsets.union(mine["fieldsV1"], changed)
            mine["time"] = now
    new["metadata"]["managedFields"] = [line for line in kept if line["fieldsV1"]]


def belongs_to(line: Object, manager: str, operation: str, sub: str) -> bool:
    """Return whether an entry of managedFields has a certain manager, operation and subresource."""
    return (line["manager"], line["operation"], line.get("subresource", "")) == (manager, operation, sub)


def _is_valid(line: Object) -> bool:
    return bool(
        line.get("manager")
        and line.get("operation") in ("Apply", "Update")
        and line.get("apiVersion")
        and fieldsets.is_tree(line.get("fieldsV1", {}))
    )


def changed_fields(tree: Tree, new: Any, old: Any) -> Tree:
    """Return the fields of a tree whose values differ between two objects."""
    result: Tree = {}
    for key, below in tree.items():
        if key == ".":
            continue
        after, before = member(new, key), member(old, key)
        if after == before:
            continue
        if before is None or not below:
            result[key] = below
        else:
            deeper = changed_fields(below, after, before)
            if deeper:
                result[key] = deeper
    return result


def member(value: Any, key: str) -> Any:
    """Return the part of a value that a key of a tree selects; None if it does not exist."""
    kind, _, name = key.partition(":")
    if kind == "f":
        return value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    wanted = msgspec.json.decode(name.encode())
    if kind == "v":
        return wanted if wanted in value else None
    for item in value:
        if isinstance(item, dict) and all(
            item.get(field, "TCP" if field == "protocol" else "") == text for field, text in wanted.items()
        ):
            return item
    return None
