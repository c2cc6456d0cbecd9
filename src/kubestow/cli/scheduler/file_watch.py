"""Watches files for changes of their content by polling about once a second.

A file may be edited in place, replaced, or reached through a symbolic link that changes, as in a mounted ConfigMap:
the content at the path counts. A file is read only if its size, time or identity has changed, and a change is reported
after two consecutive polls with the same result, so that a write in several steps can finish.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from kubestow.plugin.loading import sources_of

SECONDS = 1.0
_TICK = 0.02
"""Maximum lag of a file system's clock in seconds."""

_Stat = tuple[tuple[str, int, int, int, int] | None, ...]


class FileWatch:
    """Watches files, and the Python files in folders."""

    def __init__(self, paths: Iterable[Path], *, since: float = math.inf) -> None:
        """`since`: the time of the first read, in seconds since the epoch; later changes are reported."""
        self._paths = tuple(paths)
        self._reported = self._contents()
        self._seen = self._checked = self._stat()
        if any(_changed_at(file) >= since - _TICK for file in self._files()):
            self._reported, self._checked = [], ()

    def __bool__(self) -> bool:
        return bool(self._paths)

    def poll(self) -> bool:
        """Poll once; return whether a change is complete."""
        before, self._seen = self._seen, self._stat()
        if self._seen != before or self._seen == self._checked:
            return False
        self._checked = self._seen
        reported, self._reported = self._reported, self._contents()
        return self._reported != reported

    async def run(self, changed: Callable[[], Awaitable[object]]) -> None:
        """Poll until cancelled."""
        while True:
            await asyncio.sleep(SECONDS)
            if self.poll():
                await changed()

    def _files(self) -> list[Path]:
        return [file for path in self._paths for file in sources_of(path)]

    def _stat(self) -> _Stat:
        return tuple(_stat(file) for file in self._files())

    def _contents(self) -> list[tuple[Path, bytes]]:
        return [(file, _contents(file)) for file in self._files()]


def _stat(file: Path) -> tuple[str, int, int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (str(file), found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def _changed_at(file: Path) -> float:
    try:
        # Unlike st_mtime it also changes when a file is moved here.
        return file.stat().st_ctime
    except OSError:
        return 0.0


def _contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
