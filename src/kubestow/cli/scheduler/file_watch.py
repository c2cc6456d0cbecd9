"""Files that are watched for changes of what is in them, by looking about once a second.

A file may be edited in place, replaced by another, or be reached through a symbolic link that is turned to another
folder, as in a mounted ConfigMap: whichever it is, what matters is what the path leads to. A file is read only when its
size, time or identity has changed, and a change is told when two looks in a row have found the same: whoever writes in
several steps may finish first.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from kubestow.plugin.loading import sources_of

SECONDS = 1.0
_TICK = 0.02
"""How many seconds the clock of a file system may be behind."""

_Stat = tuple[tuple[str, int, int, int, int] | None, ...]


class FileWatch:
    """Watches files, and the Python files in folders."""

    def __init__(self, paths: Iterable[Path], *, since: float = math.inf) -> None:
        """`since` is when they were read first, in seconds since 1970: what changed after that is new."""
        self._paths = tuple(paths)
        self._told = self._contents()
        self._seen = self._checked = self._stat()
        if any(_changed_at(file) >= since - _TICK for file in self._files()):
            self._told, self._checked = [], ()

    def __bool__(self) -> bool:
        return bool(self._paths)

    def poll(self) -> bool:
        """Look; whether there is something new."""
        before, self._seen = self._seen, self._stat()
        if self._seen != before or self._seen == self._checked:
            return False
        self._checked = self._seen
        before_that, self._told = self._told, self._contents()
        return self._told != before_that

    async def run(self, changed: Callable[[], Awaitable[object]]) -> None:
        """Look until cancelled."""
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
        # Unlike st_mtime it tells of a file that was moved here, too.
        return file.stat().st_ctime
    except OSError:
        return 0.0


def _contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
