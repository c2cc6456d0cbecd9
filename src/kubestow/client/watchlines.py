"""Decodes the lines of a watch.

Each line is decoded in one pass into a Struct selected by its `type` (a tagged union). For kinds that keep their JSON
source, the object is cut out of the line and decoded. Only lines that do not match, e.g. an object with nulls, or other
formatting, take the slow path: `object` as raw JSON first, then by type.
Bookmarks take it, too: a watch without objects, which has only bookmarks, then needs no decoder of its kind.
An object that cannot be decoded is reported with its metadata, so that one bad object does not stop a watch.
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

MAX_LINE = 64 * 1024 * 1024

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
    """The metadata that is decoded of an object that is otherwise unreadable."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""


class Unreadable(Base, frozen=True):
    """An object that cannot be decoded; `type` is that of the event, `problem` names the field."""

    type: str
    metadata: PlainMeta
    problem: str


class _OnlyMeta(Base, frozen=True):
    metadata: PlainMeta = PlainMeta()


Line: TypeAlias = Added[T] | Modified[T] | Deleted[T] | Bookmarked | Failed | Unreadable

_BOOKMARK = b'{"type":"BOOKMARK"'
"""The beginning of a bookmark line as API servers write it."""
_HEADS: dict[bytes, Callable[[Any], Added[Any] | Modified[Any] | Deleted[Any]]] = {
    b'{"type":"ADDED"': Added,
    b'{"type":"MODIFIED"': Modified,
    b'{"type":"DELETED"': Deleted,
}
"""The beginnings of lines, up to the object."""

_outer = msgspec.json.Decoder(WatchEvent)
_only_meta = msgspec.json.Decoder(_OnlyMeta)
_bookmark = msgspec.json.Decoder(Bookmark)


@cache
def _decoder(kind: type) -> "msgspec.json.Decoder[Any] | None":
    """Return the decoder of all lines of a watch of this kind; None if the codec must decode the objects."""
    if codec.keeps_source(kind):
        return None
    # As one Union: joining two types at a time takes four times as long.
    return msgspec.json.Decoder(Union[Added[kind], Modified[kind], Deleted[kind], Bookmarked, Failed])  # type: ignore[valid-type]  # noqa: UP007


class LineDecoder(Generic[T]):
    """Splits a byte stream into lines and decodes them; buffers an incomplete line until its end arrives."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    def feed(self, piece: bytes) -> list[Line[T]]:
        """Return the events that a piece completes. Raises BadAnswerError for a line that is not JSON."""
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
                pass  # a line cannot be decoded: find it below
        return [self._decode(line) for line in _lines(whole) if line.strip()]

    def _keep(self, piece: bytes) -> None:
        self._begun.append(piece)
        self._begun_bytes += len(piece)
        if self._begun_bytes > MAX_LINE:
            raise BadAnswerError(f"a line of the watch is longer than {MAX_LINE} bytes")

    def _decode(self, line: bytes) -> Line[T]:
        head, _, rest = line.partition(b',"object":')
        kind = _HEADS.get(head)
        if kind is not None:
            try:
                # The format of API servers: only the end of the line follows the object.
                return kind(codec.decode(self._kind, rest[:-1]))
            except codec.DecodeError:
                pass
        return self._decode_slowly(line)

    def _decode_slowly(self, line: bytes) -> Line[T]:
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
    """Yield the lines without their ends. Faster than `split`, which tests every byte separately."""
    start = 0
    while (end := whole.find(b"\n", start)) >= 0:
        yield whole[start:end]
        start = end + 1


def metadata_of(data: bytes | msgspec.Raw) -> PlainMeta:
    """Return the metadata of an object that cannot be decoded."""
    try:
        return _only_meta.decode(data).metadata
    except codec.NOT_JSON:
        return PlainMeta()
