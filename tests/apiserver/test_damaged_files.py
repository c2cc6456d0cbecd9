"""Damaged data files: reported in words and not changed, or repaired; sound objects are never served changed."""

import contextlib
import os
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubestow.apiserver import StartError
from kubestow.apiserver.store.layout import StorageError, access_problem
from kubestow.cli import main
from support.apiserver.data_files import (
    Written,
    contents,
    flip,
    opened,
    require_detection_and_repair,
    to_former_layout,
)
from support.apiserver.running import Running, pod

STRANGER = 54321
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The files of a killed server, with objects in the database and in the write-ahead log."""
    return Written(tmp_path_factory.mktemp("files") / "killed", 90, restart=True)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The files of a stopped server: all objects are in the database."""
    return Written(tmp_path_factory.mktemp("files") / "stopped", 90, stop=True)


def change(folder: Path, name: str) -> None:
    """Change a letter of the first object of a name in the database."""
    path = folder / "objects.db"
    content = path.read_bytes()
    place = content.index(f'"name":"{name}"'.encode())
    at = content.index(b"pause:3.10", place)
    path.write_bytes(content[:at] + b"qause:3.10" + content[at + 10 :])


def test_a_changed_object_is_reported_and_not_served(start: Callable[..., Running], tmp_path: Path) -> None:
    """The error names resource, object and version, and what to do; nothing is changed."""
    first = start(data_dir=tmp_path)
    rv = {name: first.client().create(PODS, pod(name))["metadata"]["resourceVersion"] for name in "abc"}["b"]
    first.stop()
    change(tmp_path, "b")
    before = contents(tmp_path)
    message = rf"objects\.db is damaged; .* --repair .*\n  pods default/b, version {rv}$"
    with pytest.raises(StartError, match=message):
        start(data_dir=tmp_path)
    assert contents(tmp_path) == before
    assert not (tmp_path / "objects.check").exists()


def test_repair_keeps_sound_objects_and_a_copy(start: Callable[..., Running], tmp_path: Path) -> None:
    """What is lost is listed beside the copy; watches from before get 410; versions continue."""
    first = start(data_dir=tmp_path)
    created = {name: first.client().create(PODS, pod(name)) for name in "abc"}
    first.client().delete(f"{PODS}/c")
    first.stop()
    change(tmp_path, "b")
    before = contents(tmp_path)
    again = start(data_dir=tmp_path, repair=True)
    client = again.client()
    assert client.get(PODS)["items"] == [created["a"]]
    (copy,) = tmp_path.glob("objects.damaged-*")
    assert contents(copy) == before
    assert (copy / "lost.txt").read_text() == f"pods default/b, version {created['b']['metadata']['resourceVersion']}\n"
    assert {path.stat().st_mode & 0o077 for path in (copy, tmp_path / "objects.db", tmp_path / "objects.mark")} == {0}
    seen = int(created["c"]["metadata"]["resourceVersion"])
    assert client.call("GET", f"{PODS}?watch=1&resourceVersion={seen}")[0] == 410
    assert int(client.create(PODS, pod("d"))["metadata"]["resourceVersion"]) > seen + 1
    again.stop()
    assert len(start(data_dir=tmp_path).client().get(PODS)["items"]) == 2


def test_repair_of_a_sound_file_changes_nothing(stopped: Written, tmp_path: Path) -> None:
    """No copy is made, and all objects are served."""
    folder = stopped.copy(tmp_path / "copy")
    before = contents(folder)
    assert opened(folder, repairs=True) == stopped.state
    assert contents(folder)["objects.db"] == before["objects.db"]
    assert {path.name for path in folder.iterdir()} == set(before)


def test_acknowledged_writes_that_are_missing_are_reported(killed: Written, tmp_path: Path) -> None:
    """SQLite ignores its log from the first damaged frame on; repair reads what follows it."""
    folder = killed.copy(tmp_path / "copy")
    log = folder / "objects.db-wal"
    content = bytearray(log.read_bytes())
    content[32 + 8] ^= 1
    log.write_bytes(content)
    before = contents(folder)
    with pytest.raises(StorageError, match=r"versions \d+ to \d+: acknowledged, but not in the file"):
        opened(folder)
    assert contents(folder) == before
    assert opened(folder, repairs=True) == killed.state


@pytest.mark.parametrize("lost", ["objects.db", "objects.db-wal"])
def test_a_missing_file_is_reported(killed: Written, tmp_path: Path, lost: str) -> None:
    """An empty cluster is not served instead; without the mark there was no data file before."""
    folder = killed.copy(tmp_path / "copy")
    (folder / lost).unlink()
    with pytest.raises(StorageError, match="is damaged"):
        opened(folder)
    for path in folder.iterdir():
        path.unlink()
    assert opened(folder) == {}


def test_the_mark_survives_damage_of_one_slot(stopped: Written, tmp_path: Path) -> None:
    """Damage of both is reported and repaired without loss; a mark that is missing is written again."""
    folder = stopped.copy(tmp_path / "copy")
    mark = folder / "objects.mark"
    content = mark.read_bytes()
    for slots in (b"x" + content[1:], content[:600] + b"x" + content[601:]):
        mark.write_bytes(slots)
        assert opened(folder) == stopped.state
    mark.write_bytes(b"x" * len(content))
    with pytest.raises(StorageError, match=r"objects\.mark is not valid"):
        opened(folder)
    assert opened(folder, repairs=True) == stopped.state
    mark.unlink()
    assert opened(folder) == stopped.state
    assert mark.exists()


@pytest.mark.parametrize("file", ["objects.db", "objects.db-wal", "objects.mark"])
@pytest.mark.parametrize("bits", [1, 6])
def test_flipped_bits_never_change_what_is_served(killed: Written, tmp_path: Path, file: str, bits: int) -> None:
    """A start serves exactly what was acknowledged, or reports damage in words."""
    for seed in range(12):
        folder = killed.copy(tmp_path / "copy")
        flip(folder / file, random.Random(seed), bits)
        require_detection_and_repair(killed, folder, seed)


def test_flipped_bits_of_a_database_without_log_never_change_what_is_served(stopped: Written, tmp_path: Path) -> None:
    """In the header and the tables, too."""
    for seed in range(25):
        folder = stopped.copy(tmp_path / "copy")
        flip(folder / "objects.db", random.Random(seed), size=4096 if seed % 5 == 0 else None)
        require_detection_and_repair(stopped, folder, seed)


def test_a_file_of_the_former_layout_is_upgraded(stopped: Written, tmp_path: Path) -> None:
    """Without loss; from then on, damage is detected."""
    folder = stopped.copy(tmp_path / "copy")
    to_former_layout(folder)
    assert opened(folder) == stopped.state
    assert opened(folder) == stopped.state
    with contextlib.closing(sqlite3.connect(folder / "objects.db")) as db, db:
        newest = "(SELECT max(rv) FROM versions)"
        db.execute(f"UPDATE versions SET body = replace(body, 'default', 'defaulu') WHERE rv = {newest}")  # noqa: S608
    with pytest.raises(StorageError, match=r"configmaps .*, version \d+"):
        opened(folder)


def test_an_upgrade_that_was_interrupted_is_made_again(stopped: Written, tmp_path: Path) -> None:
    """The tables are upgraded in one transaction; the mark is written after it."""
    folder = stopped.copy(tmp_path / "copy")
    (folder / "objects.mark").unlink()
    assert opened(folder) == stopped.state


def test_the_database_may_be_a_link(stopped: Written, tmp_path: Path) -> None:
    """Its log and the mark are beside the file to which it leads."""
    real = stopped.copy(tmp_path / "real")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "objects.db").symlink_to(real / "objects.db")
    assert opened(folder) == stopped.state
    assert [path.name for path in folder.iterdir()] == ["objects.db"]
    (real / "objects.db").write_bytes(b"")
    with pytest.raises(StorageError, match=r"real/objects\.db is damaged"):
        opened(folder)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ("PRAGMA max_page_count=1; CREATE TABLE more (x)", "no space is left"),
        ("PRAGMA query_only=1; CREATE TABLE more (x)", "check the permissions"),
        ("ATTACH '/nowhere/x' AS x", "check the permissions"),
    ],
)
def test_problems_other_than_damage_are_explained(tmp_path: Path, statements: str, words: str) -> None:
    """A full disk or missing permissions do not mean that a file is damaged."""
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute("CREATE TABLE some (x)")
        with pytest.raises(sqlite3.Error) as raised:
            db.executescript(statements)
    assert words in (access_problem(raised.value) or "")


def test_a_full_disk_rejects_writes_and_keeps_what_was_acknowledged(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    """The reason is in the responses; after a restart, with more space, everything is there."""
    plane = start(data_dir=tmp_path)
    client = plane.client()
    client.create(PODS, pod("before"))
    journal = plane.control_plane._journal
    assert journal is not None
    database = journal._db
    assert database is not None
    plane.inside(lambda: database.execute("PRAGMA max_page_count=1"))
    answers = [client.call("POST", PODS, pod(f"p{number}", nodeName="x" * 200)) for number in range(20)]
    assert {status for status, _ in answers} == {201, 500}
    assert all("database or disk is full" in body["message"] for status, body in answers if status == 500)
    names = {body["metadata"]["name"] for status, body in answers if status == 201} | {"before"}
    plane.stop()
    assert {one["metadata"]["name"] for one in start(data_dir=tmp_path).client().get(PODS)["items"]} == names


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """Yield a folder of a user for whom permissions count, who runs the test."""
    with tempfile.TemporaryDirectory() as name:
        folder, user = Path(name), os.geteuid()
        if user == 0:
            os.chown(folder, STRANGER, STRANGER)
            os.seteuid(STRANGER)
        yield folder
        os.seteuid(user)


@pytest.mark.parametrize("mode", [0o400, 0o200, 0])
def test_a_file_without_permissions_is_reported(unprivileged: Path, mode: int) -> None:
    """It is not taken for a damaged one."""
    (unprivileged / "objects.db").touch(mode=mode)
    with pytest.raises(StorageError, match=r"objects\.db cannot be read and written; check its permissions"):
        opened(unprivileged)


def test_a_folder_without_permissions_is_reported(unprivileged: Path) -> None:
    """Its files may be written, but no others can be created."""
    (unprivileged / "objects.db").touch()
    unprivileged.chmod(0o500)
    with pytest.raises(StorageError, match=r"cannot use data folder .* Permission denied"):
        opened(unprivileged)
    unprivileged.chmod(0o700)


@pytest.mark.parametrize("create", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_only_regular_files_are_used(tmp_path: Path, create: Callable[[Path], None]) -> None:
    """Neither folders, nor pipes or devices, also behind links."""
    create(tmp_path / "objects.db")
    with pytest.raises(StorageError, match=r"is not a regular file|Is a directory"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["objects.db", "objects.db-wal", "objects.mark"])
def test_links_in_a_circle_are_reported(tmp_path: Path, name: str) -> None:
    """Whichever file is one."""
    (tmp_path / name).symlink_to(name)
    with pytest.raises(StorageError, match="Too many levels of symbolic links"):
        opened(tmp_path)


def test_the_command_reports_damage_in_words(stopped: Written, tmp_path: Path) -> None:
    """Exit status 1, no traceback. Repair needs a data folder."""
    folder = stopped.copy(tmp_path / "copy")
    (folder / "objects.db").write_bytes(b"")
    result = CliRunner().invoke(main, ["apiserver", "--port", "0", "--data-dir", str(folder)])
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert result.output.startswith(f"Error: {folder}/objects.db is damaged; nothing was changed. Start with --repair")
    result = CliRunner().invoke(main, ["apiserver", "--port", "0", "--repair"])
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert "--repair needs --data-dir" in result.output
