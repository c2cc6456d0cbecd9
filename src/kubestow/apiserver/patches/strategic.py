"""Strategic merge patch: a merge patch in which the schema defines which lists are merged, and by which key.

Directives in the patch: `$patch: replace | delete | merge` for an object or a list item, `$deleteFromPrimitiveList/F`
removes primitive values from list F, `$setElementOrder/F` sets the order of list F, `$retainKeys` drops other fields.
"""

from typing import Any

from kubestow.apiserver.errors import bad_request
from kubestow.apiserver.schema.types import Field, ListOf, MapOf, Struct, Type

_DIRECTIVE = "$patch"
_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"


def apply(document: dict[str, Any], patch: Any, schema: Type | None) -> dict[str, Any]:
    """Merge a patch into a document in place, and return it. Raises ApiError if the patch is invalid."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch must be an object")
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE and value is not None}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f'strategic merge patch: unknown $patch "{directive}"; use replace, delete or merge')
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        for key in [key for key in document if key not in retained]:
            del document[key]
    for key, value in patch.items():
        if key in (_DIRECTIVE, _RETAIN) or key.startswith((_ORDER, _REMOVE)):
            continue
        field, inner = _member(schema, key)
        if value is None:
            document.pop(key, None)
        elif isinstance(value, dict):
            target = document.get(key)
            document[key] = apply(target if isinstance(target, dict) else {}, value, inner)
        elif isinstance(value, list) and field is not None and field.merge:
            target = document.get(key)
            old = target if isinstance(target, list) else []
            merged = _merge_list([*old], value, field, key)
            document[key] = _arranged(merged, patch.get(f"{_ORDER}{key}", value), old, field)
        else:
            document[key] = value
    for key, value in patch.items():
        if key.startswith(_REMOVE):
            _remove_primitives(document, key.removeprefix(_REMOVE), value)
    for key, value in patch.items():
        name = key.removeprefix(_ORDER)
        target = document.get(name)
        if name != key and name not in patch and isinstance(target, list):
            document[name] = _arranged(target, value, target, _member(schema, name)[0])
    return document


def _member(schema: Type | None, key: str) -> tuple[Field | None, Type | None]:
    if isinstance(schema, Struct):
        field = schema.fields.get(key)
        return field, field.type if field is not None else None
    if isinstance(schema, MapOf):
        return None, schema.value
    return None, None


def _merge_list(target: list[Any], patch: list[Any], field: Field, name: str) -> list[Any]:
    if field.merge_key is None:
        return target + [value for value in patch if value not in target]
    item_type = field.type.item if isinstance(field.type, ListOf) else None
    merge_key = field.merge_key
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" and len(item) == 1 for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and _DIRECTIVE in item)]
    for item in patch:
        if not isinstance(item, dict):
            raise bad_request(f"strategic merge patch: items of `{name}` must be objects")
        if merge_key not in item:
            raise bad_request(f"strategic merge patch: an item of `{name}` lacks its key `{merge_key}`")
        position = next(
            (at for at, old in enumerate(target) if isinstance(old, dict) and old.get(merge_key) == item[merge_key]),
            None,
        )
        if item.get(_DIRECTIVE) == "delete":
            target = [old for old in target if not (isinstance(old, dict) and old.get(merge_key) == item[merge_key])]
        elif position is None:
            target.append(apply({}, item, item_type))
        else:
            target[position] = apply(target[position], item, item_type)
    return target


def _remove_primitives(document: dict[str, Any], key: str, values: Any) -> None:
    target = document.get(key)
    if isinstance(target, list) and isinstance(values, list):
        document[key] = [value for value in target if value not in values]


def _arranged(merged: list[Any], order: Any, old: list[Any], field: Field | None) -> list[Any]:
    """Return the items in the order of the patch; an item that it does not name stays behind its old predecessor."""
    if not isinstance(order, list):
        return merged
    merge_key = field.merge_key if field is not None else None

    def identity(item: Any) -> Any:
        return item.get(merge_key) if merge_key is not None and isinstance(item, dict) else item

    wanted, before = [identity(item) for item in order], [identity(item) for item in old]
    named = sorted((item for item in merged if identity(item) in wanted), key=lambda item: wanted.index(identity(item)))
    others = [item for item in merged if identity(item) not in wanted]
    arranged = []
    while named and others:
        first, other = identity(named[0]), identity(others[0])
        stays = first in before and other in before and before.index(other) < before.index(first)
        arranged.append((others if stays else named).pop(0))
    return arranged + named + others
