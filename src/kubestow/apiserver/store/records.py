"""Stored versions of objects, and changes from one version to the next.

An object is encoded once, when it is written. Reads, lists and watches send these bytes; labels, selectable fields and
owners, which selectors and garbage collection need, are stored beside them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from kubestow.apiserver.kinds.resource import Resource

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode

_NO_LABELS: dict[str, str] = {}
_RECORD_BYTES = 1_200
"""Estimated size of a record besides its body: strings, labels, fields, and its entries in tables."""


class Record:
    """One version of one object."""

    __slots__ = ("body", "fields", "labels", "name", "namespace", "owners", "rv", "storage", "uid")

    def __init__(self, resource: Resource, obj: dict[str, Any], rv: int, body: bytes) -> None:
        metadata = obj["metadata"]
        self.storage = resource.storage
        self.namespace: str = metadata.get("namespace", "")
        self.name: str = metadata["name"]
        self.uid: str = metadata.get("uid", "")
        self.rv = rv
        self.body = body
        self.labels: dict[str, str] = metadata.get("labels") or _NO_LABELS
        owners = metadata.get("ownerReferences")
        self.owners: tuple[str, ...] = tuple(owner["uid"] for owner in owners) if owners else ()
        self.fields: tuple[str, ...] = tuple([_at(obj, path) for path in resource.field_paths])

    @property
    def size(self) -> int:
        """Estimated size in bytes."""
        return _RECORD_BYTES + len(self.body)

    def object(self) -> dict[str, Any]:
        """Return a new decoded copy of the object, which the caller may modify."""
        obj: dict[str, Any] = decode(self.body)
        return obj

    def next_version(self, rv: int, body: bytes) -> "Record":
        """Return the next version of an object whose labels, owners and selectable fields did not change."""
        copy = Record.__new__(Record)
        for slot in ("storage", "namespace", "name", "uid", "labels", "owners", "fields"):
            setattr(copy, slot, getattr(self, slot))
        copy.rv = rv
        copy.body = body
        return copy


def _at(obj: dict[str, Any], path: tuple[str, ...]) -> str:
    """Return the value at a path as text for selectors; a missing one is empty, or `false` for some boolean fields."""
    value: Any = obj
    for key in path:
        try:
            value = value.get(key)
        except AttributeError:
            return ""
        if value is None:
            return "false" if path[-1] in ("unschedulable", "hostNetwork") else ""
    if value is True or value is False:
        return "true" if value else "false"
    return str(value)


class Change:
    """A change of one object; `record` is the new version, or the last state if the object was deleted."""

    __slots__ = ("lines", "previous", "record", "rv", "type")

    def __init__(self, type_: str, record: Record, previous: Record | None) -> None:
        self.type = type_
        self.rv = record.rv
        self.record = record
        self.previous = previous
        self.lines: dict[tuple[str, str], bytes] = {}

    @property
    def size(self) -> int:
        """Estimated size in bytes of both versions, though the previous one may be shared with another change."""
        return self.record.size if self.previous is None else self.record.size + self.previous.size


class Row(NamedTuple):
    """One row of a journal: the object written or deleted at a version."""

    rv: int
    resource: str
    type: str
    body: bytes

    @property
    def checksum(self) -> int:
        """The checksum of the row."""
        return crc32(self.body, crc32(f"{self.rv} {self.resource} {self.type}".encode()))
