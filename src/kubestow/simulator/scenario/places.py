"""Positions of fields in a Scenario file, for messages while it is read and during the run.

Line numbers are looked up on demand in the text of the file; where no field is found, the line of the document is used.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import yaml

from kubestow.api.codec import DecodeError
from kubestow.api.files import ObjectsError
from kubestow.api.files.sources import Source
from kubestow.apiserver.errors import ApiError
from kubestow.simulator.contents import ObjectError

_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_OF_ANOTHER_TYPE = re.compile(r"(?<=[:;] )([^ :]+): (must be [^;]+)")


class Place(msgspec.Struct, frozen=True):
    """A field of a document, by its path."""

    source: Source | None = None
    """None: not read from a file."""
    document: str = ""
    """File and line of the document, as in the prefix of messages."""
    kind: str = ""
    """Kind of the document."""
    path: str = ""

    def at(self, field: str) -> "Place":
        """Return the place of a field of this one."""
        return msgspec.structs.replace(self, path=f"{self.path}.{field}".strip("."))

    def describe(self, message: str) -> str:
        """Return a message with file, line and field as its prefix."""
        line = None if self.source is None else _line(self.source.text, self.kind, self.path)
        where = f"{self.source.name}: line {line}" if self.source is not None and line else self.document
        return ": ".join(filter(None, (where, self.path, message)))

    @contextmanager
    def report_errors(self) -> Iterator[None]:
        """Convert errors of the API server to ObjectsError, with the place of each field that they name."""
        try:
            yield
        except (ApiError, ObjectError, DecodeError) as error:
            refusal = error.refusal if isinstance(error, ObjectError) else error
            causes = (refusal.details or {}).get("causes", ()) if isinstance(refusal, ApiError) else ()
            faults = [(one["field"], one["message"]) for one in causes]
            faults = faults or [(path, "unknown field") for path in _UNKNOWN.findall(str(error))]
            faults = faults or _OF_ANOTHER_TYPE.findall(str(error))
            raise ObjectsError([self.at(path).describe(text) for path, text in faults or [("", str(error))]]) from None


def _line(text: str, kind: str, path: str) -> int | None:
    """Return the line of a field of the first document of a kind."""
    steps = [step for step in re.split(r"[.\[\]]+", path) if step]
    try:
        for node in yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            found = _value(node, "kind")
            if found is not None and found[1].value == kind:
                return _descend(node, steps)
    except yaml.YAMLError:
        pass
    return None


def _descend(node: Any, steps: list[str]) -> int:
    line: int = node.start_mark.line + 1
    for step in steps:
        if isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
            node = node.value[int(step)]
            line = node.start_mark.line + 1
        else:
            entry = _value(node, step)
            if entry is None:
                break
            line, node = entry[0].start_mark.line + 1, entry[1]
    return line


def _value(node: Any, key: str) -> tuple[Any, Any] | None:
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((one, value) for one, value in entries if one.value == key), None)
