"""The file format of a recording: lines of JSON, in consecutive members of a gzip file.

    {"kubestow":"recording","version":2}                  the first line
    {"time":1767225600.5,"op":"start"}                    a session starts: all objects follow
    {"time":1767225600.7,"op":"put","object":{...}}       an object is added or changed
    {"time":1767225601.2,"op":"synced"}                   objects without a line since `start` do not exist any more
    {"time":1767225660.0,"op":"delete","object":{...}}    an object is deleted; only its kind and metadata
    {"time":1767225661.0,"op":"poll","plugin":"TargetLoad.fetch","value":{"n1":40}}    a plugin has polled a value
    {"time":1767225699.0,"op":"end"}                      the session ends; missing if the recorder was killed

A member is complete, unless the recorder was killed while writing it. Reading stops before an incomplete member, and a
recorder that appends to the file removes it first. Any tool that reads gzip reads the rest.
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

VERSION = 2
_OLD_VERSIONS = (1,)
"""Versions without polled values."""
LARGEST_MEMBER = 1 << 28
"""Maximum uncompressed size of a member in bytes; a recorder writes one every few seconds."""
MAGIC = b"\x1f\x8b"
_HEADER = msgspec.json.encode({"kubestow": "recording", "version": VERSION}) + b"\n"
_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True):
    """One line of the file."""

    time: float
    """Seconds since the Unix epoch."""
    op: Literal["start", "put", "synced", "delete", "poll", "end"]
    object: dict[str, Any] = {}
    plugin: str = ""
    """Plugin and function of a polled value, such as `TargetLoad.fetch`."""
    value: Any = None
    """A polled value."""


class RecordingWriter:
    """Appends to a file, which is created if it does not exist; raises ObjectsError if it is not a recording."""

    def __init__(self, path: Path) -> None:
        self._pending: list[bytes] = []
        self._file = path.open("ab")
        try:
            self._lock(path)
            if path.stat().st_size:
                end = sum(len(member) for member, _ in _members(path))
                # Read everything once to check that it is a valid recording.
                for _ in entries(path):
                    break
                self._file.truncate(end)
            else:
                self._pending.append(_HEADER)
        except BaseException:
            self._file.close()
            raise

    def _lock(self, path: Path) -> None:
        """Lock the file: concurrent writers would corrupt it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ObjectsError([f"{path}: another process is recording to it; choose another file"]) from None
        except OSError:
            # Some file systems have no locks.
            pass

    def add(self, time: float, op: str, obj: Any = None) -> None:
        """Add a line; `flush` writes it to the file."""
        line = {"time": round(time, 3), "op": op} | ({} if obj is None else {"object": obj})
        self._pending.append(_encode(line) + b"\n")

    def add_polled(self, time: float, plugin: str, value: Any) -> None:
        """Add a line about a value that a plugin has polled."""
        self._pending.append(_encode({"time": round(time, 3), "op": "poll", "plugin": plugin, "value": value}) + b"\n")

    def flush(self) -> None:
        """Write the added lines to the file as one member."""
        if self._pending:
            self._file.write(gzip.compress(b"".join(self._pending), 6, mtime=0))
            self._file.flush()
            self._pending.clear()

    def close(self) -> None:
        """Flush and close the file."""
        with self._file:
            self.flush()


def is_recording(path: str) -> bool:
    """Return whether a file starts as recordings do."""
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == MAGIC
    except OSError:
        return False


def _members(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the complete members: their bytes in the file, and their contents."""
    data = whole = path.read_bytes()
    while data:
        unpack = zlib.decompressobj(31)
        try:
            content = unpack.decompress(data, LARGEST_MEMBER)
        except zlib.error:
            # A kill leaves an incomplete member, never an invalid one.
            if good := len(whole) - len(data):
                hint = f"`truncate -s {good} {path}` leaves what is before"
                raise ObjectsError([f"{path}: is damaged from byte {good} on; {hint}"]) from None
            return
        if unpack.unconsumed_tail:
            raise ObjectsError([f"{path}: a member unpacks to more than {LARGEST_MEMBER >> 20} MiB"])
        if not unpack.eof:
            return
        yield data[: len(data) - len(unpack.unused_data)], content
        data = unpack.unused_data


def entries(path: Path) -> Iterator[Entry]:
    """Yield the lines of a recording after the first; raises ObjectsError if it is invalid, OSError."""
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
        raise ObjectsError([f"{path}: not a recording, or truncated before its first line"])


def _check(path: Path, tree: Any) -> None:
    if not isinstance(tree, dict) or tree.get("kubestow") != "recording":
        raise ObjectsError([f"{path}: not a recording of kubestow"])
    if tree.get("version") not in (VERSION, *_OLD_VERSIONS):
        raise ObjectsError([f"{path}: is of version {tree.get('version')}; this program reads version {VERSION}"])


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Named(msgspec.Struct):
    kind: str
    metadata: _Metadata


class Recording(NamedTuple):
    """The contents of a recording; times are seconds since its beginning, in ascending order."""

    begin: float
    """Seconds since the Unix epoch."""
    changes: list[Entry]
    """Puts and deletes. The initial objects are put at time 0; objects that were gone at the start of a later session
    are deleted when it is synced."""
    seconds: float
    """Time of the last line."""
    is_ended: bool
    """Whether the last session was ended properly."""


def read(path: Path) -> Recording:
    """Read a recording; raises ObjectsError if it is invalid or has no objects, OSError."""
    found: list[Entry] = []
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    listed: set[tuple[str, str, str]] = set()
    begin: float | None = None
    now, op, is_first = 0.0, "", True
    for entry in entries(path):
        begin = entry.time if begin is None else begin
        now, op = max(now, entry.time - begin), entry.op
        if op in ("synced", "end") and is_first:
            found, is_first = [replace(one, time=0.0) for one in found], False
        if op == "start":
            listed = set()
        elif op == "synced":
            gone = [key for key in known if key not in listed]
            found += [Entry(now, "delete", known.pop(key)) for key in gone]
        elif op == "poll":
            found.append(replace(entry, time=now))
        elif op in ("put", "delete"):
            try:
                named = msgspec.convert(entry.object, _Named)
            except msgspec.ValidationError:
                raise ObjectsError([f"{path}: not a recording: a `{op}` at {entry.time} names no object"]) from None
            key = (named.kind, named.metadata.namespace, named.metadata.name)
            listed.add(key)
            if op == "put":
                known[key] = entry.object
            else:
                known.pop(key, None)
            found.append(replace(entry, time=now))
    if begin is None or not found:
        raise ObjectsError([f"{path}: has no objects"])
    return Recording(begin, found, now, op == "end")
