"""JSON patch (RFC 6902): a list of operations on paths."""

import copy
from typing import Any

from kubestow.apiserver.errors import ApiError, bad_request

_MAX_OPERATIONS = 10_000


def apply(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The document after all operations; it may be altered."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        raise bad_request(f"a JSON patch may have at most {_MAX_OPERATIONS} operations")
    holder: dict[str, Any] = {"": document}
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request(f"JSON patch operation {index}: needs `op` and `path`")
        try:
            _apply_one(holder, operation)
        except KeyError as error:
            raise _refused(index, operation, f"there is no {error.args[0]}") from error
        except (IndexError, ValueError, TypeError) as error:
            raise _refused(index, operation, str(error)) from error
    result = holder[""]
    if not isinstance(result, dict):
        raise bad_request("the JSON patch replaced the object with something that is none")
    return result


def _refused(index: int, operation: dict[str, Any], why: str) -> ApiError:
    what = f"{operation.get('op')} {operation.get('path')}"
    return ApiError(422, "Invalid", f"JSON patch operation {index} ({what}): {why}")


def _apply_one(holder: dict[str, Any], operation: dict[str, Any]) -> None:
    op = operation.get("op")
    path = _steps(operation["path"])
    if op == "add":
        _add(holder, path, operation["value"])
    elif op == "replace":
        parent, key = _parent(holder, path)
        _get(parent, key)
        parent[_index(parent, key)] = operation["value"]
    elif op == "remove":
        _remove(holder, path)
    elif op == "move":
        source = _steps(operation["from"])
        if path[: len(source)] == source and path != source:
            raise ValueError("cannot move a value into itself")
        _add(holder, path, _remove(holder, source))
    elif op == "copy":
        _add(holder, path, copy.deepcopy(_get(*_parent(holder, _steps(operation["from"])))))
    elif op == "test":
        parent, key = _parent(holder, path)
        if _get(parent, key) != operation["value"]:
            raise ValueError("the test failed, the value is another")
    else:
        raise bad_request(f'JSON patch: unknown operation "{op}"; use add, replace, remove, move, copy or test')


def _steps(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise ValueError("a path begins with /")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _parent(holder: dict[str, Any], path: list[str]) -> tuple[Any, str]:
    node: Any = holder
    for step in path[:-1]:
        node = _get(node, step)
    return node, path[-1]


def _get(parent: Any, key: str) -> Any:
    if isinstance(parent, dict):
        return parent[key]
    if isinstance(parent, list):
        return parent[_index(parent, key)]
    raise KeyError(key)


def _index(parent: Any, key: str) -> Any:
    if isinstance(parent, list):
        if not key.isdecimal():
            raise ValueError(f'"{key}" is no position in a list')
        if int(key) >= len(parent):
            raise IndexError(f"the list has {len(parent)} items")
        return int(key)
    return key


def _add(holder: dict[str, Any], path: list[str], value: Any) -> None:
    parent, key = _parent(holder, path)
    if isinstance(parent, list):
        if key == "-" or key == str(len(parent)):
            parent.append(value)
        else:
            parent.insert(_index(parent, key), value)
    elif isinstance(parent, dict):
        parent[key] = value
    else:
        raise KeyError(key)


def _remove(holder: dict[str, Any], path: list[str]) -> Any:
    parent, key = _parent(holder, path)
    value = _get(parent, key)
    del parent[_index(parent, key)]
    return value
