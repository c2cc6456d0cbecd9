"""The mark: the highest acknowledged version, in a file apart from the database.

A database that lost its last writes looks like one in which they were never made. The mark is written after each group
of writes, before these are acknowledged; a database below it has lost some. It is synchronized to disk at most once a
second, and at the end: after a power failure it may be too low, which only means that less is detected.

The file has two slots, written in turn, so that one is valid if the other is damaged or half written.
"""

import contextlib
import os
import time
from pathlib import Path
from zlib import crc32

_SLOT_BYTES = 512
_SYNC_SECONDS = 1.0


class Mark:
    """The mark in a file; it does not exist until `create`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None
        self._slot = 0
        self._synced = 0.0

    def read(self) -> int | None:
        """Return the highest acknowledged version; None if there is no file, 0 if it is damaged. Raises OSError."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return max(_version(content[start : start + _SLOT_BYTES]) for start in (0, _SLOT_BYTES))

    def create(self, version: int) -> None:
        """Open the file, which contains the version from now on. Raises OSError."""
        partial = self.path.with_name(f"{self.path.name}.new")
        partial.unlink(missing_ok=True)
        self._handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        for _ in range(2):
            self.write(version)
        os.fsync(self._handle)
        os.replace(partial, self.path)

    def write(self, version: int) -> None:
        """Replace the older slot. Raises OSError."""
        assert self._handle is not None
        self._slot = 1 - self._slot
        os.pwrite(self._handle, _content(version), self._slot * _SLOT_BYTES)
        now = time.monotonic()
        if now - self._synced >= _SYNC_SECONDS:
            self._synced = now
            os.fdatasync(self._handle)

    def close(self) -> None:
        """Synchronize and close the file."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._handle)
            os.close(self._handle)
            self._handle = None


def _content(version: int) -> bytes:
    text = f"{version:020d}"
    return f"{text} {crc32(text.encode()):08x}\n".encode().ljust(_SLOT_BYTES)


def _version(slot: bytes) -> int:
    """Return the version in a slot; 0 if the slot is not valid."""
    text = slot[:20]
    return int(text) if text.isdigit() and _content(int(text)) == slot else 0
