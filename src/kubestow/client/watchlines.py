"""The lines of a watch, decoded.

Each line is decoded in one pass straight into a Struct chosen by its `type` (a tagged union). Of kinds that are kept
whole, the object is cut out of the line and decoded. Only what does not fit, e.g. an object with nulls, or a line that
is written otherwise, goes the longer way: `object` as raw JSON first, then by type.
So do bookmarks: a watch that brings nothing else, because there are no objects, needs nothing to decode them with.
An object that cannot be understood is reported by its metadata, so that one bad object does not stop a watch.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar, Union

import msgspec

from kubestow.api import codec
from kubestow.api.envelopes import Bookmark, WatchEvent
from kubestow.api.failures import BadAnswerError
from kubestow.api.meta import Base
from kubestow.client.resources import ApiObject

LONGEST_LINE = 64 * 1024 * 1024

T = TypeVar("T", bound=ApiObject)


class Added(Base, Generic[T], frozen=True, tag_field="type", tag="ADDED"):
    object: T


class Modified(Base, Generic[T], frozen=True, tag_field="type", tag="MODIFIED"):
    object: T


class Deleted(Base, Generic[T], frozen=True, tag_field="type", tag="DELETED"):
    object: T


class Bookmarked(Base, frozen=True, tag_field="type", tag="BOOKMARK"):
    object: Bookmark


class Failed(Base, frozen=True, tag_field="type", tag="ERROR"):
    object: msgspec.Raw


class PlainMeta(Base, frozen=True):
    """As much metadata as even a strange object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""


class Unreadable(Base, frozen=True):
    """An object that does not decode; `type` is the event's, `problem` names the field."""

    type: str
    metadata: PlainMeta
    problem: str


class _OnlyMeta(Base, frozen=True):
    metadata: PlainMeta = PlainMeta()


Line: TypeAlias = Added[T] | Modified[T] | Deleted[T] | Bookmarked | Failed | Unreadable

_BOOKMARK = b'{"type":"BOOKMARK"'
"""How such a line begins, as API servers write it."""
_HEADS: dict[bytes, Callable[[Any], Added[Any] | Modified[Any] | Deleted[Any]]] = {
    b'{"type":"ADDED"': Added,
    b'{"type":"MODIFIED"': Modified,
    b'{"type":"DELETED"': Deleted,
}
"""How lines begin, before the object."""

_outer = msgspec.json.Decoder(WatchEvent)
_only_meta = msgspec.json.Decoder(_OnlyMeta)
_bookmark = msgspec.json.Decoder(Bookmark)


def keeps_source(kind: type) -> bool:
    """Whether objects of this kind carry their JSON along, which only the codec adds."""
    return any(field.name == "source" and field.type is msgspec.Raw for field in msgspec.structs.fields(kind))


@cache
def _decoder(kind: type) -> "msgspec.json.Decoder[Any] | None":
    """Of all lines of a watch of this kind; None where the codec must decode the objects."""
    if keeps_source(kind):
        return None
    # In one piece: made of two at a time, the union of types takes four times as long to make.
    return msgspec.json.Decoder(Union[Added[kind], Modified[kind], Deleted[kind], Bookmarked, Failed])  # type: ignore[valid-type]  # noqa: UP007


class LineDecoder(Generic[T]):
    """Cuts a byte stream into lines and decodes them; keeps the beginning of a line until its end comes."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    def feed(self, piece: bytes) -> list[Line[T]]:
        """The events that this piece completes; raises BadAnswerError for a line that is not JSON."""
        end = piece.rfind(b"\n") + 1
        if end == 0:
            self._keep(piece)
            return []
        whole = piece[:end]
        if self._begun:
            whole = b"".join((*self._begun, whole))
            self._begun.clear()
            self._begun_bytes = 0
        if end < len(piece):
            self._keep(piece[end:])
        fast = None if whole.startswith(_BOOKMARK) else _decoder(self._kind)
        if fast is not None:
            try:
                return fast.decode_lines(whole)
            except codec.NOT_JSON:
                pass  # one of them does not fit: find out which
        return [self._one(line) for line in _lines(whole) if line.strip()]

    def _keep(self, piece: bytes) -> None:
        self._begun.append(piece)
        self._begun_bytes += len(piece)
        if self._begun_bytes > LONGEST_LINE:
            raise BadAnswerError(f"a line of the watch is longer than {LONGEST_LINE} bytes")

    def _one(self, line: bytes) -> Line[T]:
        head, _, rest = line.partition(b',"object":')
        kind = _HEADS.get(head)
        if kind is not None:
            try:
                # As API servers write it: nothing follows the object but the end of the line.
                return kind(codec.decode(self._kind, rest[:-1]))
            except codec.DecodeError:
                pass
        return self._any(line)

    def _any(self, line: bytes) -> Line[T]:
        try:
            event = _outer.decode(line)
            if event.type == "BOOKMARK":
                return Bookmarked(_bookmark.decode(event.object))
        except codec.NOT_JSON as error:
            raise BadAnswerError(f"a line of the watch is not an event: {error}") from None
        if event.type == "ERROR":
            return Failed(event.object)
        try:
            match event.type:
                case "ADDED":
                    return Added(codec.decode(self._kind, event.object))
                case "MODIFIED":
                    return Modified(codec.decode(self._kind, event.object))
                case "DELETED":
                    return Deleted(codec.decode(self._kind, event.object))
        except codec.DecodeError as error:
            return Unreadable(event.type, metadata_of(event.object), str(error))
        return Unreadable(event.type, metadata_of(event.object), f"unknown type of event {event.type!r}")


def _lines(whole: bytes) -> Iterator[bytes]:
    """Each without its end: what `split` does, which looks at every byte by itself."""
    start = 0
    while (end := whole.find(b"\n", start)) >= 0:
        yield whole[start:end]
        start = end + 1


def metadata_of(data: bytes | msgspec.Raw) -> PlainMeta:
    """The metadata of an object that is otherwise not understood."""
    try:
        return _only_meta.decode(data).metadata
    except codec.NOT_JSON:
        return PlainMeta()
