"""A journal in SQLite: every write is a row; a dedicated thread commits rows in groups.

While one group is being written to disk, the next one accumulates, so groups grow with the rate of writes. The database
uses a write-ahead log with full synchronization: rows reported as durable survive a killed process and a power failure.
A file that is damaged, in use, or belongs to another program is reported and not modified.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from kubestow.apiserver.files import restrict
from kubestow.apiserver.store.records import Row
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_APPLICATION = 0x4B53544F
_LAYOUT = 1


class StorageError(Exception):
    """The data folder cannot be used; the message contains the cause and the remedy."""


class SqliteJournal:
    """A journal in the file `objects.db` of a data folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "objects.db"
        self.failure: str | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # The file contains secrets; SQLite creates the log with the same mode.
            self.path.touch(mode=0o600)
            for path in folder.glob(f"{self.path.name}*"):
                restrict(path, 0o600)
            self._db = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=0.2)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"cannot use data folder {folder}: {error}") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._db.close()
            raise StorageError(self._explain(error)) from error
        except StorageError:
            self._db.close()
            raise
        self._queue: queue.SimpleQueue[Row | tuple[str, int, list[int]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def _explain(self, error: sqlite3.Error) -> str:
        if "locked" in str(error):
            return f"{self.path} is in use by another process; stop it or choose another data folder"
        return f"{self.path} is damaged ({error}); move it away to start empty, or restore a copy"

    def _prepare(self) -> None:
        db = self._db
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        application = db.execute("PRAGMA application_id").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != _APPLICATION and tables:
            raise StorageError(f"{self.path} belongs to another program; choose another data folder")
        verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            verdict = " ".join(verdict.split())
            raise StorageError(f"{self.path} is damaged ({verdict}); move it away to start empty, or restore a copy")
        layout = db.execute("PRAGMA user_version").fetchone()[0]
        if tables and layout != _LAYOUT:
            raise StorageError(f"{self.path} has layout {layout}, this version reads {_LAYOUT}")
        db.execute("BEGIN IMMEDIATE")
        db.execute(f"PRAGMA application_id={_APPLICATION}")
        db.execute(f"PRAGMA user_version={_LAYOUT}")
        db.execute(
            "CREATE TABLE IF NOT EXISTS versions "
            "(rv INTEGER PRIMARY KEY, resource TEXT NOT NULL, type TEXT NOT NULL, body BLOB NOT NULL)"
        )
        db.execute("CREATE TABLE IF NOT EXISTS floors (resource TEXT PRIMARY KEY, rv INTEGER NOT NULL)")
        db.execute("COMMIT")

    def rows(self) -> Iterator[Row]:
        """Yield all rows in the order of versions."""
        for rv, resource, type_, body in self._db.execute("SELECT rv, resource, type, body FROM versions ORDER BY rv"):
            yield Row(rv, resource, type_, body)

    def floors(self) -> dict[str, int]:
        """Return the version up to which the changes of each resource were dropped."""
        return dict(self._db.execute("SELECT resource, rv FROM floors").fetchall())

    def write(self, row: Row) -> None:
        """Queue a row; it becomes durable with the next group."""
        self._queue.put(row)

    def drop(self, resource: str, floor: int, versions: list[int]) -> None:
        """Delete versions that are no longer needed, and set the floor of a resource."""
        self._queue.put((resource, floor, versions))

    def start(self, on_durable: Callable[[int], None], on_failure: Callable[[], None]) -> None:
        """Start the thread; it calls both functions on the running event loop."""
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._commit_groups, args=(loop, on_durable, on_failure), name="journal", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Write the queued rows, and close the file."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def _commit_groups(
        self, loop: asyncio.AbstractEventLoop, on_durable: Callable[[int], None], on_failure: Callable[[], None]
    ) -> None:
        running = True
        while running:
            group = [self._queue.get()]
            while True:
                try:
                    group.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            running = None not in group
            rows = [item for item in group if isinstance(item, Row)]
            try:
                self._commit(rows, [item for item in group if isinstance(item, tuple)])
            except sqlite3.Error as error:
                self.failure = f"cannot write {self.path}: {error}"
                log.error("No more writes are accepted", err=self.failure)
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(on_failure)
                return
            if rows:
                with contextlib.suppress(RuntimeError):  # the loop may be closed while the last group is written
                    loop.call_soon_threadsafe(on_durable, rows[-1].rv)

    def _commit(self, rows: list[Row], dropped: list[tuple[str, int, list[int]]]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        db.executemany(
            "INSERT INTO versions VALUES (?, ?, ?, ?)",
            [(row.rv, row.resource, row.type, row.body) for row in rows],
        )
        for resource, floor, versions in dropped:
            db.execute("INSERT OR REPLACE INTO floors VALUES (?, ?)", (resource, floor))
            db.executemany("DELETE FROM versions WHERE rv = ?", [(version,) for version in versions])
        db.execute("COMMIT")
