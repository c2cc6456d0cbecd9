"""Data files for tests: written with chosen content, by an earlier version, or damaged."""

import asyncio
import contextlib
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from kubestow.apiserver.store.layout import StorageError
from kubestow.apiserver.store.records import Row
from kubestow.apiserver.store.sqlite import SqliteJournal
from kubestow.apiserver.store.store import Store

FILES = ("objects.db", "objects.db-wal", "objects.mark")
Version = tuple[str, str, int]
"""Resource, name and version of an object."""


@contextlib.contextmanager
def rewritten(folder: Path) -> Iterator[sqlite3.Connection]:
    """Yield the database of a data folder; its rows are valid afterwards, as if they were written like this."""
    with contextlib.closing(sqlite3.connect(folder / "objects.db")) as db, db:
        yield db
        db.create_function("row_checksum", 4, lambda *row: Row(*row).checksum)
        db.execute("UPDATE versions SET checksum = row_checksum(rv, resource, type, body)")


def to_former_layout(folder: Path) -> None:
    """Replace the files of a data folder by one as it was before rows had checksums."""
    with contextlib.closing(sqlite3.connect(folder / "objects.db")) as db:
        versions = db.execute("SELECT rv, resource, type, body FROM versions").fetchall()
        floors = db.execute("SELECT resource, rv FROM floors").fetchall()
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(folder / "objects.db")) as db, db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA application_id=1263752271")
        db.execute("PRAGMA user_version=1")
        db.execute(
            "CREATE TABLE versions "
            "(rv INTEGER PRIMARY KEY, resource TEXT NOT NULL, type TEXT NOT NULL, body BLOB NOT NULL)"
        )
        db.execute("CREATE TABLE floors (resource TEXT PRIMARY KEY, rv INTEGER NOT NULL)")
        db.executemany("INSERT INTO versions VALUES (?, ?, ?, ?)", versions)
        db.executemany("INSERT INTO floors VALUES (?, ?)", floors)


class Written:
    """The files of a server that was killed after acknowledged writes."""

    def __init__(
        self, folder: Path, writes: int, *, retain: int = 30, restart: bool = False, stop: bool = False
    ) -> None:
        """`restart`: stop and start the server half-way, so that database and write-ahead log contain
        objects; `stop`: stop it at the end, so that there is no log.
        """
        self.folder = folder
        self.versions: dict[Version, bytes] = {}
        """All versions of objects that were ever acknowledged."""
        self.state: dict[Version, bytes] = {}
        asyncio.run(self._write(writes, retain, restart=restart, stop=stop))

    async def _write(self, writes: int, retain: int, *, restart: bool, stop: bool) -> None:
        live = self.folder.with_name(f"{self.folder.name}.live")
        journal = SqliteJournal(live)
        store = Store(journal, retain=retain)
        chance = random.Random(1)
        for number in range(writes):
            name = f"o{chance.randrange(writes // 3)}"
            current = store.get("configmaps", "default", name)
            if current is not None and chance.random() < 0.2:
                store.delete("configmaps", current)
            else:
                metadata = {"name": name, "namespace": "default", "uid": name}
                record = store.put("configmaps", {"metadata": metadata, "data": {"x": "y" * chance.randrange(3000)}})
                self.versions["configmaps", name, record.rv] = record.body
            if number % 5 == 0:
                await durable(store)
            if restart and number == writes // 2:
                # A stop moves the log into the database.
                await durable(store)
                journal.close()
                journal = SqliteJournal(live)
                store = Store(journal, retain=retain)
        await durable(store)
        self.state = served(store)
        if stop:
            journal.close()
        shutil.copytree(live, self.folder)
        journal.close()
        shutil.rmtree(live)

    def copy(self, to: Path) -> Path:
        """Copy the files to another folder, which is replaced."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.folder, to)
        return to


async def durable(store: Store) -> None:
    """Wait until all writes are acknowledged."""
    done = asyncio.Event()
    store.when_durable(store.rv, done.set, done.set)
    await done.wait()


def served(store: Store) -> dict[Version, bytes]:
    """Return the objects that a store serves."""
    return {
        (storage, record.name, record.rv): record.body
        for storage, collection in store.collections.items()
        for record in collection.objects.values()
    }


def opened(folder: Path, *, repairs: bool = False) -> dict[Version, bytes]:
    """Return the objects that a server which starts on a folder would serve. Raises StorageError."""

    async def load() -> dict[Version, bytes]:
        journal = SqliteJournal(folder, repairs=repairs)
        try:
            return served(Store(journal))
        finally:
            journal.close()

    return asyncio.run(load())


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


def flip(path: Path, chance: random.Random, bits: int = 1, size: int | None = None) -> None:
    """Flip bits of a file, or of its first bytes."""
    content = bytearray(path.read_bytes())
    for _ in range(bits):
        content[chance.randrange(size or len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def require_detection_and_repair(written: Written, folder: Path, case: object) -> None:
    """Require that a start serves exactly what was acknowledged, or reports damage, which can be repaired."""
    before, failure = contents(folder), None
    try:
        assert opened(folder) == written.state, case
    except StorageError as error:
        failure = error
    if failure is not None:
        assert "is damaged" in str(failure), case
        assert contents(folder) == before, case
        repaired = opened(folder, repairs=True)
        assert repaired.items() <= written.versions.items(), case
        assert opened(folder) == repaired, case
