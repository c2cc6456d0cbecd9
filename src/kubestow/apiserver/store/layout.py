"""The tables of a data file, and the checksums of their rows.

    versions  every retained version of an object; a row is written once, and deleted when no watch needs it any more
    floors    the version up to which the changes of a resource were dropped
    state     one row about all others, replaced with every group of writes: see `State`

SQLite verifies the structure of its pages, but not their content; hence every row has a checksum. A file can also lose
whole groups of writes: SQLite ignores its write-ahead log from the first damaged frame on. The mark (see `mark`) shows
this, and `State` shows it if only some of the pages are older ones.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

from kubestow.apiserver.store.records import Row

APPLICATION = 0x4B53544F
LAYOUT = 2
WITHOUT_CHECKSUMS = 1
"""The layout of files of earlier versions: `versions` and `floors` without checksums, no `state`."""

_CREATION = (
    f"PRAGMA application_id={APPLICATION}",
    f"PRAGMA user_version={LAYOUT}",
    """CREATE TABLE IF NOT EXISTS versions
    (rv INTEGER PRIMARY KEY, resource TEXT NOT NULL, type TEXT NOT NULL, body BLOB NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS floors (resource TEXT PRIMARY KEY, rv INTEGER NOT NULL)",
    "ALTER TABLE versions ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE floors ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE state (highest INTEGER, base INTEGER, count INTEGER, total INTEGER, checksum INTEGER)",
    "UPDATE versions SET checksum = row_checksum(rv, resource, type, body)",
    "UPDATE floors SET checksum = checksum(resource, rv)",
)
"""Create the tables, or upgrade those of the former layout; the first page of the file is the same then."""
SET_STATE = "UPDATE state SET highest = ?, base = ?, count = ?, total = ?, checksum = ?"


class StorageError(Exception):
    """The data folder cannot be used; the message contains the cause and the remedy."""


class State(NamedTuple):
    """The row about all others."""

    highest: int = 1
    """The highest version ever written."""
    base: int = 0
    """The version before which changes of all resources were dropped."""
    rows: int = 0
    """Number of rows of `versions`."""
    total: int = 0
    """Sum of their versions."""


def checksum(*fields: int | str) -> int:
    """Return the checksum of a row of numbers and texts."""
    return crc32(" ".join(map(str, fields)).encode())


def insert(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Insert rows into `versions`."""
    db.executemany("INSERT INTO versions VALUES (?, ?, ?, ?, ?)", [(*row, row.checksum) for row in rows])


def access_problem(error: sqlite3.Error) -> str | None:
    """Return why a file cannot be used although it is sound; None if the error means damage."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "is in use by another process; stop it or choose another data folder"
    if code == sqlite3.SQLITE_FULL:
        return "cannot grow: no space is left on the device; free some or choose another data folder"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"cannot be written ({error}); check the permissions of the file and its folder"
    if code == sqlite3.SQLITE_IOERR:
        return f"cannot be read or written ({error}); check the disk"
    return None


def create(db: sqlite3.Connection, state: State) -> None:
    """Create the tables in a transaction of the caller, or upgrade those of the former layout."""
    db.create_function("checksum", 2, checksum, deterministic=True)
    db.create_function("row_checksum", 4, lambda *row: Row(*row).checksum, deterministic=True)
    for statement in _CREATION:
        db.execute(statement)
    db.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?)", (*state, checksum(*state)))
