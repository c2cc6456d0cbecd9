"""YAML to trees of dicts, lists and scalars, as Kubernetes reads it: from the events of the parser, in one pass.

An alias refers to the value of its anchor without a copy. The number of values to which aliases expand is limited
nevertheless, since a caller that writes the tree writes each of them; a long text counts as several values. A duplicate
key is a problem: the last one does not win. The items of a list, which may be a complete cluster, are converted to JSON
one by one.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from kubestow.api.files.errors import DocumentError
from kubestow.api.files.scalars import plain_scalar

_MERGE_KEY = "<<"
MAX_DEPTH = 200
_MAX_FROM_ALIASES = 100_000
_CHARACTERS_PER_VALUE = 64
"""Number of characters of a text that count as a value."""
_ITEMS = "items"
REPEATED = "is given more than once"

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class Fault(msgspec.Struct, frozen=True):
    """A problem in a document with valid syntax; a path looks like `spec.containers[0].name`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class YamlDocument(msgspec.Struct, frozen=True):
    """A document that is not empty."""

    line: int
    """The line of its start."""
    tree: Any
    item_lines: list[int]
    """The line of the start of each of its `items`; with `raw_items` those are `msgspec.Raw`."""
    faults: list[Fault]


def yaml_documents(text: str, *, raw_items: bool = False) -> Iterator[YamlDocument]:
    """Yield each document; its `faults` are the problems other than syntax. Raises DocumentError for invalid YAML."""
    loader = None
    try:
        loader = _Loader(text)
        next_event = loader.get_event
        next_event()
        while isinstance(next_event(), yaml.DocumentStartEvent):
            builder = _Builder(next_event, raw_items)
            first = next_event()
            tree = builder.build(first)
            next_event()
            if tree is not None:
                yield YamlDocument(first.start_mark.line + 1, tree, builder.item_lines, builder.faults)
    except yaml.YAMLError as error:
        raise DocumentError(f"not valid YAML: {_one_line(error)}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        reason = ", ".join(filter(None, (error.context, error.problem)))
        return f"line {mark.line + 1}, column {mark.column + 1}: {reason}"
    return " ".join(str(error).split())


class _Builder:
    """Builds the value of a document."""

    def __init__(self, next_event: Any, raw_items: bool) -> None:
        self._next = next_event
        self._raw_items = raw_items
        self._anchors: dict[str, tuple[Any, int]] = {}
        """The value of each anchor, and the number of values to which it expands."""
        self._values = 0
        self._from_aliases = 0
        self._path: list[str | int] = []
        self.item_lines: list[int] = []
        self.faults: list[Fault] = []

    def build(self, event: Any) -> Any:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._values += 1
            value = self._scalar(event)
        elif kind is yaml.AliasEvent:
            return self._alias(event)
        else:
            before = self._values
            self._values += 1
            if len(self._path) >= MAX_DEPTH:
                raise DocumentError(f"line {event.start_mark.line + 1}: nested more than {MAX_DEPTH} levels deep")
            value = self._mapping() if kind is yaml.MappingStartEvent else self._sequence()
            if event.anchor is not None:
                self._anchors[event.anchor] = value, self._values - before
            return value
        if event.anchor is not None:
            self._anchors[event.anchor] = value, 1 + len(event.value) // _CHARACTERS_PER_VALUE
        return value

    def _scalar(self, event: Any) -> Any:
        if not event.implicit[0]:
            return event.value
        value = plain_scalar(event.value)
        if type(value) is float and not math.isfinite(value):
            self._fault(f"{event.value} is not a number that JSON can represent")
        return value

    def _alias(self, event: Any) -> Any:
        line = event.start_mark.line + 1
        if event.anchor not in self._anchors:
            raise DocumentError(
                f"not valid YAML: line {line}: *{event.anchor} has no anchor before it, or refers to itself"
            )
        value, size = self._anchors[event.anchor]
        self._values += size
        self._from_aliases += size
        if self._from_aliases > _MAX_FROM_ALIASES:
            raise DocumentError(f"line {line}: the aliases up to here expand to more than {_MAX_FROM_ALIASES} values")
        return value

    def _sequence(self) -> list[Any]:
        found: list[Any] = []
        path, next_event, build = self._path, self._next, self.build
        is_items = path == [_ITEMS]
        path.append(0)
        while type(event := next_event()) is not yaml.SequenceEndEvent:
            path[-1] = len(found)
            value = build(event)
            if is_items:
                self.item_lines.append(event.start_mark.line + 1)
                if self._raw_items:
                    value = self._raw(value)
            found.append(value)
        path.pop()
        return found

    def _raw(self, value: Any) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(value))

    def _mapping(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        path, next_event, build = self._path, self._next, self.build
        path.append("")
        while type(event := next_event()) is not yaml.MappingEndEvent:
            key = self._key(event)
            if key == _MERGE_KEY and event.implicit[0]:
                path[-1] = key
                merged = self._merged(build(next_event())) | merged
                continue
            path[-1] = key
            if key in own:
                self._fault(REPEATED)
            own[key] = build(next_event())
        path.pop()
        return merged | own if merged else own

    def _key(self, event: Any) -> str:
        if type(event) is not yaml.ScalarEvent:
            key = self.build(event)
            if not isinstance(key, str):
                self._fault("has a key that is a list or a mapping", self._path[:-1])
            return str(key)
        value = plain_scalar(event.value) if event.implicit[0] else event.value
        if event.anchor is not None:
            self._anchors[event.anchor] = value, 1
        return value if isinstance(value, str) else json.dumps(value)

    def _merged(self, value: Any) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for source in value if isinstance(value, list) else [value]:
            if isinstance(source, dict):
                merged = source | merged
            else:
                self._fault("must be a mapping or a list of mappings")
        return merged

    def _fault(self, message: str, steps: list[str | int] | None = None) -> None:
        steps = self._path if steps is None else steps
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        self.faults.append(Fault(path.removeprefix(".").replace("\n", "\\n"), message))
