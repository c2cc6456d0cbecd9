"""Repair of a data file: a new one with the sound rows of the damaged one, of which a copy is kept.

The damaged file is read in several ways, and the best result counts: as SQLite reads it, with all pages of its
write-ahead log, and without the log. SQLite ignores the log from the first damaged frame on, since its checksums are
those of all frames so far; pages that are damaged themselves are found by the checksums of rows. If nothing can be
read, the first page of the database, with the header and the names of the tables, is replaced by that of an empty file.
"""

import contextlib
import os
import shutil
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kubestow.apiserver.store.layout import State, create, insert
from kubestow.apiserver.store.mark import Mark
from kubestow.apiserver.store.reading import View, log_of, name_of, shortened
from kubestow.apiserver.store.records import Row
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_MOST_LINES = 20
_OF_THE_FILE = slice(24, 40)
"""The bytes of the first page with the numbers of pages and free pages."""
_CHANGES, _VALID_FOR = slice(24, 28), slice(92, 96)
"""The number of changes of the file, and that for which the numbers of pages are valid."""
_PAGE = 4096
_LOG_HEADER, _FRAME_HEADER = 32, 24


class _Salvaged(NamedTuple):
    highest: int
    rows: list[Row]
    damage: list[str]


def repair(path: Path, mark: Mark) -> None:
    """Replace a damaged file; no effect on a sound one. Raises StorageError, OSError, sqlite3.Error."""
    acknowledged = mark.read()
    found = _read(path, acknowledged)
    if not found.damage:
        log.info("The data file is sound: there is nothing to repair", v=0, file=str(path))
        return
    ways = [_without_log, _with_all_of_log]
    candidates = [found, *(_read(path, acknowledged, way) for way in ways)]
    if not any(candidate.rows for candidate in candidates):
        candidates += [_read(path, acknowledged, partial(_with_new_first_page, way)) for way in ways]
    best = max(candidates, key=lambda candidate: (not candidate.damage, candidate.highest, len(candidate.rows)))
    folder = _copy((path, log_of(path), mark.path))
    lost = best.damage or ["nothing: what is damaged holds no retained version of an object"]
    (folder / "lost.txt").write_text("".join(f"{line}\n" for line in lost), encoding="utf-8")
    highest = max(best.highest, acknowledged or 0)
    _write(path, _current(best.rows), highest)
    mark.create(highest)
    mark.close()
    log.warning("The data file was repaired", file=str(path), copy=str(folder), lost=len(best.damage))
    for line in shortened(lost, _MOST_LINES):
        log.warning("Lost in the repair", what=line)


def _read(path: Path, acknowledged: int | None, way: Callable[[Path], None] | None = None) -> _Salvaged:
    with View(path, acknowledged, prepare=way) as view:
        view.read_tables()
        rows = list(view.rows())
        highest = max(view.state.highest, rows[-1].rv if rows else 1)
        return _Salvaged(highest, rows, view.damage)


def _without_log(path: Path) -> None:
    log_of(path).unlink(missing_ok=True)


def _with_all_of_log(path: Path) -> None:
    """Write the pages of the log into the database, up to the last group of writes, and remove the log.

    A frame of the log is a page with a header: number, size of the database in pages at the end of a group else 0, and
    the salts of the log; frames with other ones are left from an earlier log.
    """
    with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:
        content = log_of(path).read_bytes()
        salts, most = content[16:24], (path.stat().st_size + len(content)) // _PAGE
        group: dict[int, bytes] = {}
        for start in range(_LOG_HEADER, len(content) - _FRAME_HEADER - _PAGE + 1, _FRAME_HEADER + _PAGE):
            number, size, first, second = struct.unpack_from(">2I4s4s", content, start)
            if first != salts[:4] and second != salts[4:]:
                break
            group[number] = content[start + _FRAME_HEADER : start + _FRAME_HEADER + _PAGE]
            if size:
                for place in sorted(group):
                    if 0 < place <= most:
                        file.seek((place - 1) * _PAGE)
                        file.write(group[place])
                group.clear()
    _without_log(path)


def _with_new_first_page(way: Callable[[Path], None], path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / path.name
        _write(empty, [], 1)
        page = bytearray(empty.read_bytes()[:_PAGE])
    with path.open("r+b") as file:
        page[_OF_THE_FILE] = file.read(_PAGE)[_OF_THE_FILE]
        page[_VALID_FOR] = page[_CHANGES]
        file.seek(0)
        file.write(page)
    way(path)


def _copy(paths: tuple[Path, ...]) -> Path:
    """Copy files to a new folder beside them."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    folder = Path(tempfile.mkdtemp(prefix=f"objects.damaged-{stamp}-", dir=paths[0].parent))
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(path, folder)
    for copy in folder.iterdir():
        with copy.open("rb") as file:
            os.fsync(file.fileno())
    return folder


def _current(rows: list[Row]) -> list[Row]:
    """Return the newest row of each object that was not deleted: the past is not kept."""
    current: dict[str, Row] = {}
    for row in rows:
        name = name_of(row.resource, row.body)
        current.pop(name, None)
        if row.type != "DELETED":
            current[name] = row
    return list(current.values())


def _write(path: Path, rows: list[Row], highest: int) -> None:
    """Replace a file by one with these rows, in which the past before a version is dropped."""
    new = path.with_name(f"{path.name}.new")
    for left in (new, log_of(new)):
        left.unlink(missing_ok=True)
    new.touch(mode=0o600)
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN IMMEDIATE")
        create(db, State(highest, highest, len(rows), sum(row.rv for row in rows)))
        insert(db, rows)
        db.execute("COMMIT")
    # The log must be gone first: it does not belong to the new file.
    log_of(path).unlink(missing_ok=True)
    os.replace(new, path)
