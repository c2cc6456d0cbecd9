"""The depth of values: many functions process them recursively, and a value that is too deep would fail anywhere."""

from typing import Any

from kubestow.api.files.yaml_documents import MAX_DEPTH
from kubestow.apiserver.errors import bad_request


def is_shallow(value: Any) -> bool:
    """Return whether objects and lists in a value are nested at most MAX_DEPTH levels deep."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


def require_shallow(value: Any) -> None:
    """Raise ApiError if a value is nested too deeply."""
    if not is_shallow(value):
        raise bad_request(f"the body is nested too deeply: more than {MAX_DEPTH} levels")
