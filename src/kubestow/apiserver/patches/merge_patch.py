"""Merge patch (RFC 7386): an object whose fields replace those of the target; null removes a field."""

from typing import Any

from kubestow.apiserver.errors import bad_request


def apply(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Merge a patch into a document in place, and return it. Raises ApiError if the patch is not an object."""
    if not isinstance(patch, dict):
        raise bad_request("a merge patch must be an object")
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(value, dict):
            target = document.get(key)
            document[key] = apply(target if isinstance(target, dict) else {}, value)
        else:
            document[key] = value
    return document
