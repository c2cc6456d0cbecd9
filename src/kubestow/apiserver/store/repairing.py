"""Repair of a data file: a new one with the sound rows of the damaged one, of which a copy is kept.

The damaged file is read in several ways, and the best result counts: with its write-ahead log, with new checksums in
that log, and without it, since a log that is damaged in the middle may hide newer pages of the database behind older
ones. If nothing can be read, the first page of the database, which has the header and the names of the tables, is
replaced by that of an empty file.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kubestow.apiserver.store.layout import INSERT_VERSION, State, create, row_checksum
from kubestow.apiserver.store.mark import Mark
from kubestow.apiserver.store.reading import View, log_of, name_of, shortened
from kubestow.apiserver.store.records import Row
from kubestow.apiserver.store.resealing import reseal
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_MOST_LINES = 20
_OF_THE_FILE = slice(24, 40)
"""The bytes of the first page with the numbers of pages and free pages."""
_CHANGES, _VALID_FOR = slice(24, 28), slice(92, 96)
"""The number of changes of the file, and that for which the numbers of pages are valid."""
_PAGE = 4096


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
    ways = [_without_log, _with_resealed_log]
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


def _with_resealed_log(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        reseal(log_of(path))


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
        db.executemany(INSERT_VERSION, [(*_fields(row), row_checksum(*_fields(row))) for row in rows])
        db.execute("COMMIT")
    # The log must be gone first: it does not belong to the new file.
    log_of(path).unlink(missing_ok=True)
    os.replace(new, path)


def _fields(row: Row) -> tuple[int, str, str, bytes]:
    return row.rv, row.resource, row.type, row.body
