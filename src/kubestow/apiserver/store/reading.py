"""Reading and verifying a data file without modifying it.

SQLite writes to a file even to close it: it moves its write-ahead log into the database, and with a damaged log that
overwrites newer pages with older ones. So a file is read through a second link to it beside a copy of the log, in a
folder of their own. Removing the link before the end prevents the move.
"""

import contextlib
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from kubestow.apiserver.store.layout import (
    APPLICATION,
    LAYOUT,
    WITHOUT_CHECKSUMS,
    State,
    StorageError,
    access_problem,
    checksum,
)
from kubestow.apiserver.store.records import Row, decode

_FOLDER = "objects.check"
_MOST_FAILURES = 20_000
"""Maximum number of failed queries, after which the rest of a damaged table is given up."""
_LAST = 2**63 - 1
_MOST_VERDICTS = 5
_RECENT = 100
"""Number of findings among which a row is looked for that was read before, as part of a larger range."""
_WAL_FORMATS = b"\2\2"
"""The bytes of the header which say that the database has a write-ahead log."""
_NAMES = re.compile(rb'"(namespace|name)":"([^"]{1,253})"')


class View:
    """The contents of a data file that no process has open."""

    def __init__(self, path: Path, acknowledged: int | None, *, prepare: Callable[[Path], None] | None = None) -> None:
        """Open a file, or copies of database and log that `prepare` modifies, given the path of the database.

        `acknowledged` is the mark, 0 if it is damaged, None if there is none. Raises OSError, and StorageError if the
        file cannot be used for another reason than damage.
        """
        self.path = path
        self.damage: list[str] = []
        """What is wrong with the file: affected objects by resource, name and version, or parts of the file."""
        if acknowledged == 0:
            self.damage.append("objects.mark is not valid")
        self.state = State()
        self.floors: dict[str, int] = {}
        self.is_empty = True
        self.layout = LAYOUT
        self._acknowledged = acknowledged
        self._folder = path.parent / _FOLDER
        self._db: sqlite3.Connection | None = None
        self._failures = 0
        self._highest = 0
        """The version of the last sound row."""
        self._unreadable: list[list[int]] = []
        """The first and last version of each part of the table that cannot be read."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        try:
            self._link(prepare)
            self._open()
        except BaseException:
            self.close()
            raise

    def _link(self, prepare: Callable[[Path], None] | None) -> None:
        link = self._folder / self.path.name
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(log_of(self.path), log_of(link))
        if prepare is not None:
            shutil.copyfile(self.path, link)
            prepare(link)
            return
        try:
            os.link(self.path, link)
        except OSError:  # not supported by the file system
            shutil.copyfile(self.path, link)

    def _open(self) -> None:
        try:
            link = self._folder / self.path.name
            self._db = db = sqlite3.connect(link, check_same_thread=False, isolation_level=None, timeout=0.2)
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._identify(db)
        except sqlite3.Error as error:
            if (problem := access_problem(error)) is not None:
                raise StorageError(f"{self.path} {problem}") from error
            self.damage.append(f"the file cannot be read: {error}")

    def _identify(self, db: sqlite3.Connection) -> None:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        self.is_empty = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        layout = db.execute("PRAGMA user_version").fetchone()[0]
        if self._acknowledged is not None:
            # The mark was written by this program, for this layout.
            with (self._folder / self.path.name).open("rb") as file:
                formats = file.read(20)[18:]
            if self.is_empty or (application, layout, formats) != (APPLICATION, LAYOUT, _WAL_FORMATS):
                self.damage.append("the header of the file is not valid")
        elif self.is_empty:
            return
        elif application != APPLICATION:
            raise StorageError(f"{self.path} belongs to another program; choose another data folder")
        elif layout not in (LAYOUT, WITHOUT_CHECKSUMS):
            raise StorageError(f"{self.path} has layout {layout}, this version reads {LAYOUT}")
        else:
            self.layout = layout
        for (verdict,) in db.execute(f"PRAGMA quick_check({_MOST_VERDICTS})"):
            if verdict != "ok":
                self.damage.append(f"structure of the file: {' '.join(str(verdict).split())}")

    def close(self) -> None:
        """Close the file without a change to it; no effect if it is closed."""
        with contextlib.suppress(OSError):
            (self._folder / self.path.name).unlink()
        if self._db is not None:
            self._db.close()
            self._db = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_tables(self) -> None:
        """Read `state` and `floors`, which are valid before the rows are read."""
        if self._db is None or self.is_empty:
            return
        has_checksums = self.layout == LAYOUT
        try:
            query = f"SELECT resource, rv, {'checksum' if has_checksums else '0'} FROM floors"  # noqa: S608
            for resource, rv, check in self._db.execute(query):
                if has_checksums and check != checksum(resource, rv):
                    self.damage.append(f"the oldest retained version of {resource}")
                else:
                    self.floors[resource] = rv
            if has_checksums:
                rows = self._db.execute("SELECT highest, base, count, total, checksum FROM state").fetchall()
                if len(rows) == 1 and checksum(*rows[0][:4]) == rows[0][4]:
                    self.state = State(*rows[0][:4])
                else:
                    self.damage.append("the row that describes the file")
        except sqlite3.Error as error:
            self.damage.append(f"a table cannot be read: {error}")

    def rows(self) -> Iterator[Row]:
        """Yield the sound rows in the order of versions; `damage` is complete at the end."""
        count = total = 0
        has_checksums = self.layout == LAYOUT
        for *fields, check in self._raw_rows():
            row = Row(*fields)
            if has_checksums and not (isinstance(fields[-1], bytes) and check == row.checksum):
                line = f"{name_of(row.resource, row.body)}, version {row.rv}"
                if line not in self.damage[-_RECENT:]:
                    self.damage.append(line)
            elif row.rv > self._highest:
                count, total, self._highest = count + 1, total + row.rv, row.rv
                yield row
        if self.layout != LAYOUT:
            self.state = State(max(self._highest, 1), 0, count, total)
        for first, last in self._unreadable:
            self.damage.append(f"{versions(first, last)}: cannot be read")
        if self.layout == LAYOUT and not self.damage and (count, total) != (self.state.rows, self.state.total):
            self.damage.append(f"the file has {count} versions of objects, {self.state.rows} were written")
        highest = max(self.state.highest, self._highest)
        if self._acknowledged is not None and self._acknowledged > highest:
            self.damage.append(f"{versions(highest + 1, self._acknowledged)}: acknowledged, but not in the file")

    def _raw_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that SQLite can read; a range of versions with an error is halved until it is found."""
        if self._db is None or self.is_empty:
            return
        check = "checksum" if self.layout == LAYOUT else "0"
        query = f"SELECT rv, resource, type, body, {check} FROM versions WHERE rv BETWEEN ? AND ? ORDER BY rv"  # noqa: S608
        last = _LAST if self.state == State() else self.state.highest
        ranges = [(1, last)]
        while ranges:
            low, high = ranges.pop()
            try:
                yield from self._db.execute(query, (low, high))
            except sqlite3.Error:
                low = max(low, self._highest + 1)
                self._failures += 1
                if self._failures > _MOST_FAILURES:
                    self._unreadable.append([low, last])
                    return
                if low < high:
                    middle = (low + high) // 2
                    ranges += [(middle + 1, high), (low, middle)]
                elif self._unreadable and self._unreadable[-1][1] == low - 1:
                    self._unreadable[-1][1] = low
                else:
                    self._unreadable.append([low, low])


def versions(first: int, last: int) -> str:
    """Return a range of versions in words."""
    if last == _LAST:
        return f"versions from {first} on"
    return f"version {first}" if first == last else f"versions {first} to {last}"


def shortened(lines: list[str], most: int) -> list[str]:
    """Return the first lines, and how many more there are."""
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more"]


def log_of(path: Path) -> Path:
    """Return the path of the write-ahead log of a database."""
    return path.with_name(f"{path.name}-wal")


def name_of(resource: str, body: Any) -> str:
    """Return resource, namespace and name of a stored object, as far as they can be read."""
    try:
        metadata = decode(body)["metadata"]
        found = {"namespace": metadata.get("namespace", ""), "name": metadata["name"]}
    except Exception:
        content = body if isinstance(body, bytes) else b""
        found = {key.decode(): value.decode(errors="replace") for key, value in reversed(_NAMES.findall(content)[:2])}
    name = "/".join(filter(None, (found.get("namespace", ""), found.get("name", ""))))
    return f"{resource} {name or 'of unknown name'}"
