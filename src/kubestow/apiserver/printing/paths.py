"""Simple JSON paths for columns of custom resources: names, indexes, `[*]` and `[?(@.a=="b")]`."""

import re
from collections.abc import Callable, Iterator
from typing import Any

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)|\[(?P<index>-?\d+)\]|\[(?P<all>\*)\]|\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]"""
    r"""|\[\?\(@\.(?P<field>[^=\s]+)\s*==\s*(?:"(?P<text>[^"]*)"|'(?P<plain>[^']*)'|(?P<bare>\w+))\)\]"""
)

Step = Callable[[Any], Iterator[Any]]


def reader(path: str) -> Callable[[Any], Any]:
    """Return a function that reads the first value at a path, None if there is none. Raises ValueError if invalid."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise ValueError(f'"{path[at:]}" is not part of a simple JSON path')
        steps.append(_step(match))
        at = match.end()

    def read(value: Any) -> Any:
        found = [value]
        for step in steps:
            found = [inner for one in found for inner in step(one)]
        return found[0] if found else None

    return read


def _step(match: re.Match[str]) -> Step:
    if match["field"]:
        inside = reader(f".{match['field']}")
        wanted = next(match[name] for name in ("text", "plain", "bare") if match[name] is not None)
        return lambda value: (one for one in _items(value) if _text(inside(one)) == wanted)
    if match["index"]:
        return lambda value: iter(_items(value)[int(match["index"]) :][:1])
    if match["all"]:
        return lambda value: iter(value.values() if isinstance(value, dict) else _items(value))
    name = match["quoted"] if match["quote"] else re.sub(r"\\(.)", r"\1", match["name"])
    return lambda value: iter((value[name],) if isinstance(value, dict) and name in value else ())


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
