"""Objects on disk: acknowledged writes are durable, watches resume, damage is reported."""

import asyncio
import contextlib
import http.client
import json
import signal
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow.apiserver import StartError
from kubestow.apiserver.store.records import Row
from kubestow.apiserver.store.sqlite import SqliteJournal
from kubestow.apiserver.store.store import Store
from support.apiserver.running import TOKEN, Running, Watching, pod

PODS = "/api/v1/namespaces/default/pods"
MAIN = "from kubestow.cli import main; main()"


class Process:
    """An API server in its own process, to be killed."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        arguments = ["apiserver", "--port", str(port), "--data-dir", str(folder), "--token", TOKEN]
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments, "--no-kubelets", "--controllers=none"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self._context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
        self.connection = self.connect()

    def connect(self) -> http.client.HTTPSConnection:
        """Open another connection."""
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self._context, timeout=300)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed."""
        data = json.dumps(body) if body is not None else None
        self.connection.request(method, path, data, {"Authorization": f"Bearer {TOKEN}"})
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        assert response.status < 300, answer
        return answer

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.connection.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def processes() -> Iterator[Callable[..., Process]]:
    """Start processes; kill the remaining ones at the end."""
    started: list[Process] = []

    def start(folder: Path, port: int = 0) -> Process:
        started.append(Process(folder, port))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.kill()


def test_kill_loses_nothing_that_was_acknowledged(processes: Callable[..., Process], tmp_path: Path) -> None:
    """After SIGKILL during writes, all acknowledged objects exist with their versions, and a watch resumes."""
    server = processes(tmp_path)
    acknowledged = [server.call("POST", PODS, pod(f"p{number}")) for number in range(40)]
    server.call("DELETE", f"{PODS}/p0")
    server.call("POST", f"{PODS}/p1/binding", {"metadata": {"name": "p1"}, "target": {"name": "n"}})
    flying = server.connect()
    for number in range(5):  # written, perhaps not answered: may or may not survive
        with contextlib.suppress(http.client.HTTPException, OSError):
            flying.request("POST", PODS, json.dumps(pod(f"late{number}")), {"Authorization": f"Bearer {TOKEN}"})
            flying.sock.setblocking(False)
            flying.getresponse()
    flying.close()
    server.kill()
    server = processes(tmp_path)
    listed = {one["metadata"]["name"]: one for one in server.call("GET", PODS)["items"]}
    assert {f"p{number}" for number in range(1, 40)} <= set(listed)
    assert "p0" not in listed
    assert listed["p1"]["spec"]["nodeName"] == "n"
    assert listed["p7"] == acknowledged[7]
    seen = acknowledged[38]["metadata"]["resourceVersion"]
    connection = server.connect()
    connection.request("GET", f"{PODS}?watch=1&resourceVersion={seen}", headers={"Authorization": f"Bearer {TOKEN}"})
    response = connection.getresponse()
    events = [json.loads(response.readline()) for _ in range(3)]
    assert [(one["type"], one["object"]["metadata"]["name"]) for one in events] == [
        ("ADDED", "p39"),
        ("DELETED", "p0"),
        ("MODIFIED", "p1"),
    ]
    connection.close()
    later = server.call("POST", PODS, pod("later"))
    assert int(later["metadata"]["resourceVersion"]) > int(events[-1]["object"]["metadata"]["resourceVersion"])


def test_a_restart_keeps_identity_and_token(start: Callable[..., Running], tmp_path: Path) -> None:
    """Certificates and the generated token are kept, so that a kubeconfig remains valid."""
    first = start(data_dir=tmp_path, token=None)
    token, ca = first.control_plane.admin_token, first.control_plane.ca.read_bytes()
    first.stop()
    second = start(data_dir=tmp_path, token=None)
    assert (second.control_plane.admin_token, second.control_plane.ca.read_bytes()) == (token, ca)


def stored(api_version: str, kind: str, name: str, spec: dict[str, Any], **metadata: str) -> bytes:
    """Return an object as an earlier version stored it."""
    metadata = {"name": name, "uid": f"{kind}-{name}", **metadata}
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}).encode()


def test_objects_of_versions_that_are_no_longer_served_are_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With one warning for each kind; others are converted to the version that is stored now."""
    groups, rules = "podgroups.scheduling.k8s.io", "devicetaintrules.resource.k8s.io"
    alpha = [stored("scheduling.k8s.io/v1alpha2", "PodGroup", name, {}, namespace="default") for name in "ab"]
    rule = {"taint": {"key": "broken", "effect": "NoExecute"}}

    async def load(*rows: Row) -> Store:
        journal = SqliteJournal(tmp_path)
        loaded = Store(journal)
        for row in rows:
            journal.write(row)
        journal.close()
        return loaded

    older = stored("resource.k8s.io/v1beta2", "DeviceTaintRule", "r", rule)
    rows = (Row(2, groups, "ADDED", alpha[0]), Row(3, groups, "ADDED", alpha[1]), Row(4, groups, "DELETED", alpha[1]))
    asyncio.run(load(*rows, Row(5, rules, "ADDED", older)))
    store = asyncio.run(load())
    assert not store.collection(groups).objects
    record = store.get(rules, "", "r")
    assert record is not None
    assert (record.object()["apiVersion"], record.object()["spec"]) == ("resource.k8s.io/v1", rule)
    assert store.rv == 5
    (warning,) = [one.getMessage() for one in caplog.records if "no longer served" in one.getMessage()]
    assert 'apiVersion="scheduling.k8s.io/v1alpha2" kind="PodGroup" objects=1' in warning


def test_old_changes_are_dropped_on_disk(start: Callable[..., Running], tmp_path: Path) -> None:
    """The number of rows is limited; the floor is kept across restarts."""
    plane = start(data_dir=tmp_path, retained_changes=5)
    client = plane.client()
    client.create(PODS, pod())
    for number in range(40):
        client.patch(f"{PODS}/a", {"metadata": {"labels": {"n": str(number)}}})
    floor = plane.control_plane.store.collection("pods").floor
    plane.stop()
    with contextlib.closing(sqlite3.connect(tmp_path / "objects.db")) as db:
        (rows,) = db.execute("SELECT count(*) FROM versions WHERE resource = 'pods'").fetchone()
    assert rows <= 12
    again = start(data_dir=tmp_path, retained_changes=5).client()
    assert again.get(f"{PODS}/a")["metadata"]["labels"]["n"] == "39"
    assert again.call("GET", f"{PODS}?watch=1&resourceVersion={floor - 1}")[0] == 410


def test_watches_receive_only_durable_changes(start: Callable[..., Running], tmp_path: Path) -> None:
    """With a data folder, a watch receives every write once it is acknowledged."""
    plane = start(data_dir=tmp_path)
    watch: Watching = plane.watch(f"{PODS}?watch=1")
    created = plane.client().create(PODS, pod())
    assert watch.next()["object"] == created


def test_a_response_waits_for_the_disk(tmp_path: Path) -> None:
    """Neither watches nor the client get a write before it is in the journal."""

    async def play() -> list[str]:
        journal = SqliteJournal(tmp_path)
        store = Store(journal)
        order: list[str] = []
        done = asyncio.Event()
        store.collection("pods").subscribers.append(lambda change: order.append(f"published {change.rv}"))
        store.put("pods", {"metadata": {"name": "a", "namespace": "d", "uid": "u"}})

        def answered() -> None:
            order.append("answered")
            done.set()

        store.when_durable(store.rv, answered, done.set)
        order.append("written")
        await done.wait()
        journal.close()
        return order

    assert asyncio.run(play()) == ["written", "published 2", "answered"]


def test_a_failed_disk_rejects_writes(start: Callable[..., Running], tmp_path: Path) -> None:
    """No write is acknowledged any more, and the health check reports the failure."""
    plane = start(data_dir=tmp_path)
    client = plane.client()
    client.create(PODS, pod("before"))
    journal = plane.control_plane._journal
    assert journal is not None
    database = journal._db
    assert database is not None
    plane.inside(lambda: database.execute("DROP TABLE versions"))
    status, body = client.call("POST", PODS, pod("after"))
    assert (status, "cannot write" in body["message"]) == (500, True)
    assert client.call("POST", PODS, pod("later"))[0] == 500
    status, text = plane.client(token=None).call("GET", "/readyz")
    assert (status, text) == (500, b"[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")
    status, text = client.call("GET", "/readyz/etcd")
    assert (status, b"cannot write" in text) == (500, True)


def test_a_damaged_file_is_reported_and_kept(start: Callable[..., Running], tmp_path: Path) -> None:
    """The server does not start, does not modify the file, and names a remedy."""
    plane = start(data_dir=tmp_path)
    for number in range(50):
        plane.client().create(PODS, pod(f"p{number}"))
    plane.stop()
    file = tmp_path / "objects.db"
    content = bytearray(file.read_bytes())
    content[4096 : 4096 * 3] = b"\xff" * 8192
    file.write_bytes(content)
    with pytest.raises(StartError, match=r"objects\.db is damaged; .* move them away"):
        start(data_dir=tmp_path)
    assert file.read_bytes() == bytes(content)


def test_only_its_user_can_read_the_file(start: Callable[..., Running], tmp_path: Path) -> None:
    """The file and its log contain secrets."""
    start(data_dir=tmp_path).client().create(PODS, pod("p"))
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.glob("objects.db*")}
    assert modes == {"objects.db": "0o600", "objects.db-wal": "0o600"}


def test_a_file_of_another_program_is_not_modified(start: Callable[..., Running], tmp_path: Path) -> None:
    """Its tables are kept."""
    with contextlib.closing(sqlite3.connect(tmp_path / "objects.db")) as db:
        db.execute("CREATE TABLE theirs (x)")
        db.commit()
    with pytest.raises(StartError, match="belongs to another program"):
        start(data_dir=tmp_path)


def test_two_servers_do_not_share_a_folder(start: Callable[..., Running], tmp_path: Path) -> None:
    """The second one reports that the folder is in use."""
    start(data_dir=tmp_path)
    with pytest.raises(StartError, match="in use by another process"):
        start(data_dir=tmp_path)


def test_a_folder_that_cannot_be_created(start: Callable[..., Running], tmp_path: Path) -> None:
    """There is a file with the same name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot use data folder"):
        start(data_dir=tmp_path / "file" / "below")
