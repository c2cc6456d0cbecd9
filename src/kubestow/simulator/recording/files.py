"""The file of a recording: lines of JSON, in members of gzip one after the other.

    {"kubestow":"recording","version":1}                  the first line
    {"time":1767225600.5,"op":"start"}                    a session begins: all objects are told again
    {"time":1767225600.7,"op":"put","object":{...}}       an object is now this
    {"time":1767225601.2,"op":"synced"}                   what was not told since `start` is gone
    {"time":1767225660.0,"op":"delete","object":{...}}    an object is gone; of it only kind and metadata
    {"time":1767225699.0,"op":"end"}                      the session is over; not there if the recorder was killed

A member is complete or was being written when the recorder was killed. Reading stops before such a one, and a recorder
that appends cuts it off first. Any tool that reads gzip reads the rest.
"""

import fcntl
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from kubestow.api.codec import NOT_JSON
from kubestow.api.files import ObjectsError

VERSION = 1
LARGEST_MEMBER = 1 << 28
"""Bytes that a member may unpack to; a recorder writes one every few seconds."""
MAGIC = b"\x1f\x8b"
_HEADER = msgspec.json.encode({"kubestow": "recording", "version": VERSION}) + b"\n"
_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True):
    """One line."""

    time: float
    """Seconds since the epoch."""
    op: Literal["start", "put", "synced", "delete", "end"]
    object: dict[str, Any] = {}


class RecordingWriter:
    """Appends to a file, which is made if it is not there; raises ObjectsError if it is something else."""

    def __init__(self, path: Path) -> None:
        self._pending: list[bytes] = []
        self._file = path.open("ab")
        try:
            self._lock(path)
            if path.stat().st_size:
                end = sum(len(member) for member, _ in _members(path))
                # Reading it all once tells whether it is a recording of ours.
                for _ in entries(path):
                    break
                self._file.truncate(end)
            else:
                self._pending.append(_HEADER)
        except BaseException:
            self._file.close()
            raise

    def _lock(self, path: Path) -> None:
        """Two who write at once would spoil the file."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ObjectsError([f"{path}: somebody else records to it; name another file"]) from None
        except OSError:
            # There are file systems without locks.
            pass

    def add(self, time: float, op: str, obj: Any = None) -> None:
        """One more line; it is in the file after `flush`."""
        line = {"time": round(time, 3), "op": op} | ({} if obj is None else {"object": obj})
        self._pending.append(_encode(line) + b"\n")

    def flush(self) -> None:
        """Hand what was added to the operating system, as one member."""
        if self._pending:
            self._file.write(gzip.compress(b"".join(self._pending), 6, mtime=0))
            self._file.flush()
            self._pending.clear()

    def close(self) -> None:
        """Write the rest."""
        with self._file:
            self.flush()


def is_recording(path: str) -> bool:
    """Whether a file begins as recordings do."""
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == MAGIC
    except OSError:
        return False


def _members(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The complete members: as they are in the file, and what is in them."""
    data = whole = path.read_bytes()
    while data:
        unpack = zlib.decompressobj(31)
        try:
            content = unpack.decompress(data, LARGEST_MEMBER)
        except zlib.error:
            # A kill leaves the beginning of a member, never this.
            if good := len(whole) - len(data):
                hint = f"`truncate -s {good} {path}` leaves what is before"
                raise ObjectsError([f"{path}: is damaged from byte {good} on; {hint}"]) from None
            return
        if unpack.unconsumed_tail:
            raise ObjectsError([f"{path}: a part of it unpacks to more than {LARGEST_MEMBER >> 20} MiB"])
        if not unpack.eof:
            return
        yield data[: len(data) - len(unpack.unused_data)], content
        data = unpack.unused_data


def entries(path: Path) -> Iterator[Entry]:
    """The lines of a recording, but for the first; raises ObjectsError if it is none, OSError."""
    number = 0
    for line in (line for _, content in _members(path) for line in content.splitlines()):
        number += 1
        try:
            tree = msgspec.json.decode(line)
            if number == 1:
                _check(path, tree)
                continue
            yield msgspec.convert(tree, Entry)
        except NOT_JSON as error:
            raise ObjectsError([f"{path}: not a recording: line {number}: {error}"]) from None
    if not number:
        raise ObjectsError([f"{path}: not a recording, or cut off before anything was in it"])


def _check(path: Path, tree: Any) -> None:
    if not isinstance(tree, dict) or tree.get("kubestow") != "recording":
        raise ObjectsError([f"{path}: not a recording of kubestow"])
    if tree.get("version") != VERSION:
        raise ObjectsError([f"{path}: is of version {tree.get('version')}; this program reads version {VERSION}"])


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Named(msgspec.Struct):
    kind: str
    metadata: _Metadata


class Recording(NamedTuple):
    """All that was recorded; times are seconds since the beginning, and never go back."""

    begin: float
    """Seconds since the epoch."""
    changes: list[Entry]
    """Puts and deletes. What was found at first is there at time 0; what was gone when another session began is deleted
    there."""
    seconds: float
    """Until the last line."""
    is_ended: bool
    """Whether that was the end, and not what a kill left."""


def read(path: Path) -> Recording:
    """A recording; raises ObjectsError, also if it has no objects, and OSError."""
    found: list[Entry] = []
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    told: set[tuple[str, str, str]] = set()
    begin: float | None = None
    now, op, is_first = 0.0, "", True
    for entry in entries(path):
        begin = entry.time if begin is None else begin
        now, op = max(now, entry.time - begin), entry.op
        if op in ("synced", "end") and is_first:
            found, is_first = [replace(one, time=0.0) for one in found], False
        if op == "start":
            told = set()
        elif op == "synced":
            gone = [key for key in known if key not in told]
            found += [Entry(now, "delete", known.pop(key)) for key in gone]
        elif op in ("put", "delete"):
            try:
                named = msgspec.convert(entry.object, _Named)
            except msgspec.ValidationError:
                raise ObjectsError([f"{path}: not a recording: a `{op}` at {entry.time} names no object"]) from None
            key = (named.kind, named.metadata.namespace, named.metadata.name)
            told.add(key)
            if op == "put":
                known[key] = entry.object
            else:
                known.pop(key, None)
            found.append(replace(entry, time=now))
    if begin is None or not found:
        raise ObjectsError([f"{path}: has no objects"])
    return Recording(begin, found, now, op == "end")
