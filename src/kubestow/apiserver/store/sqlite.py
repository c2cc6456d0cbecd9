"""A journal in SQLite: every write is a row; a dedicated thread commits rows in groups.

While one group is being written to disk, the next one accumulates, so groups grow with the rate of writes. The database
uses a write-ahead log with full synchronization: rows reported as durable survive a killed process and a power failure.
A file that is damaged, in use, or belongs to another program is reported and not modified: it is read through a
`reading.View`, and opened for writing once all rows have proved sound.
"""

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from kubestow.apiserver.files import restrict
from kubestow.apiserver.store import repairing
from kubestow.apiserver.store.layout import (
    LAYOUT,
    SET_STATE,
    State,
    StorageError,
    access_problem,
    checksum,
    create,
    insert,
)
from kubestow.apiserver.store.mark import Mark
from kubestow.apiserver.store.reading import View, shortened
from kubestow.apiserver.store.records import Row
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_MOST_LINES = 20


class SqliteJournal:
    """A journal in the files `objects.*` of a data folder: first read with `rows`, then written from `start` on."""

    def __init__(self, folder: Path, *, repairs: bool = False) -> None:
        """`repairs`: replace a damaged file by one with its sound rows. Raises StorageError."""
        # SQLite creates its log beside the file to which a link leads.
        self.path = Path(os.path.realpath(folder / "objects.db"))
        self.failure: str | None = None
        self._mark = Mark(self.path.with_name("objects.mark"))
        self._db: sqlite3.Connection | None = None
        self._queue: queue.SimpleQueue[Row | tuple[str, int, list[int]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # The file contains secrets; SQLite creates the log with the same mode.
            self.path.touch(mode=0o600)
            if not self.path.is_file():
                raise StorageError(f"{self.path} is not a regular file; move it away or choose another data folder")
            if not os.access(self.path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise StorageError(f"{self.path} cannot be read and written; check its permissions")
            for path in self.path.parent.glob("objects.*"):
                if path.is_file():
                    restrict(path, 0o600)
            if repairs:
                repairing.repair(self.path, self._mark)
            self._view = View(self.path, self._mark.read())
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"cannot use data folder {folder}: {error}") from error
        self._view.read_tables()
        self.floors = self._view.floors
        """The version up to which the changes of each resource were dropped."""

    @property
    def state(self) -> State:
        """The state as of the last group; of a file of the former layout, known once all rows are read."""
        return self._view.state

    def rows(self) -> Iterator[Row]:
        """Yield all rows in the order of versions. Raises StorageError at the end if the file is damaged."""
        view = self._view
        yield from view.rows()
        view.close()
        if view.damage:
            raise StorageError(
                f"{self.path} is damaged; nothing was changed. Start with --repair to keep what is sound, and a copy "
                "of the damaged files; or restore a copy of all files objects.*, or move them away to start empty"
                + "".join(f"\n  {line}" for line in shortened(view.damage, _MOST_LINES))
            )

    def write(self, row: Row) -> None:
        """Queue a row; it becomes durable with the next group."""
        self._queue.put(row)

    def drop(self, resource: str, floor: int, versions: list[int]) -> None:
        """Delete versions that are no longer needed, and set the floor of a resource."""
        self._queue.put((resource, floor, versions))

    def start(self, on_durable: Callable[[int], None], on_failure: Callable[[], None]) -> None:
        """Start the thread; it calls both functions on the running event loop. Raises StorageError."""
        self._open()
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._commit_groups, args=(loop, on_durable, on_failure), name="journal", daemon=True
        )
        self._thread.start()

    def _open(self) -> None:
        """Open the file for writing, and create or upgrade its tables."""
        view = self._view
        try:
            self._db = db = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=0.2)
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("BEGIN IMMEDIATE")
            if view.is_empty or view.layout != LAYOUT:
                create(db, view.state)
            elif db.execute("SELECT highest, base, count, total FROM state").fetchone() != view.state:
                raise StorageError(f"{self.path} is in use by another process; stop it or choose another data folder")
            db.execute("COMMIT")
            self._mark.create(view.state.highest)
        except sqlite3.Error as error:
            raise StorageError(f"{self.path} {access_problem(error) or error}") from error
        except OSError as error:
            raise StorageError(f"cannot write {self._mark.path}: {error.strerror}") from error

    def close(self) -> None:
        """Write the queued rows, and close the file."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        self._view.close()
        self._mark.close()
        if self._db is not None:
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
                self._commit(rows, [item for item in group if not isinstance(item, Row | None)])
            except (sqlite3.Error, OSError) as error:
                self.failure = f"cannot write {self.path}: {error}"
                log.error("No more writes are accepted", err=self.failure)
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(on_failure)
                return
            if rows:
                with contextlib.suppress(RuntimeError):  # the loop may be closed while the last group is written
                    loop.call_soon_threadsafe(on_durable, rows[-1].rv)

    def _commit(self, rows: list[Row], dropped: list[tuple[str, int, list[int]]]) -> None:
        db, view = self._db, self._view
        assert db is not None
        highest, base, count, total = view.state
        db.execute("BEGIN IMMEDIATE")
        insert(db, rows)
        count += len(rows)
        total += sum([row.rv for row in rows])
        for resource, floor, versions in dropped:
            db.execute("INSERT OR REPLACE INTO floors VALUES (?, ?, ?)", (resource, floor, checksum(resource, floor)))
            for version in versions:
                if db.execute("DELETE FROM versions WHERE rv = ?", (version,)).rowcount:
                    count -= 1
                    total -= version
        state = State(rows[-1].rv if rows else highest, base, count, total)
        db.execute(SET_STATE, (*state, checksum(*state)))
        db.execute("COMMIT")
        view.state = state
        if rows:
            self._mark.write(state.highest)
