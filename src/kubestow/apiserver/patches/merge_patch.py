"""Merge patch (RFC 7386): an object whose fields replace those of the target; null removes."""

from typing import Any

from kubestow.apiserver.errors import bad_request


def apply(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The document with the patch merged in; it is altered."""
    if not isinstance(patch, dict):
        raise bad_request("a merge patch is an object")
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(value, dict):
            target = document.get(key)
            document[key] = apply(target if isinstance(target, dict) else {}, value)
        else:
            document[key] = value
    return document
