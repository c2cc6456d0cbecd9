"""`kubestow view`: valid and broken results of simulations and recordings."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubestow.cli import main
from kubestow.insight.page.api import Api
from kubestow.insight.page.pages import Site
from kubestow.simulator.comparing import compare
from kubestow.simulator.page_files import MOMENTS, ViewError, read
from kubestow.simulator.recording.files import RecordingWriter
from support.insight.page_harness import Reader, ask
from support.insight.simulated import PACKING, SCENARIO


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return results of the same scenario with two configurations."""
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "s.yaml").write_text(SCENARIO)
    (folder / "c.yaml").write_text(PACKING)
    for name, options in (("spread", []), ("packed", ["--config", str(folder / "c.yaml")])):
        ran = CliRunner().invoke(main, ["simulate", str(folder / "s.yaml"), "--out", str(folder / name), *options])
        assert ran.exit_code == 0, ran.output
        assert f"kubestow view {folder / name}" in ran.output
    return folder / "spread", folder / "packed"


def site(*folders: Path) -> Site:
    return Site(Api([read(folder) for folder in folders]))


def test_a_simulation_is_shown_at_any_time(folders: tuple[Path, Path]) -> None:
    """Three nodes are full at the beginning, and a pod waits; at the end only that pod exists."""
    page = site(folders[0])
    (about,) = ask(page, "")
    assert (about["live"], about["to"] - about["from"]) == (False, 600.0)
    early = f"?at={about['from'] + 60}"
    cluster, queue, times = ask(page, f"/cluster{early}", f"/queue{early}", "/times")
    assert cluster["requested"]["cpu"] == [3000, 3000, 3000]
    assert [row[1:3] for row in queue["rows"]] == [["default/p-3", "unschedulable"]]
    assert (sum(times["bound"]), max(times["pending"]["unschedulable"])) == (6, 1)
    end, node = ask(page, "/cluster", f"/nodes/node-0{early}")
    assert sum(end["pods"]) == 1
    assert len(node["pods"]["rows"]) == 1
    assert node["refusals"][0]["pods"] == ["default/p-3"]


def test_decisions_of_a_simulation(folders: tuple[Path, Path]) -> None:
    """They are found by pod and plugin, with all attempts and the results of nodes."""
    page = site(folders[0])
    found, rejected, others = ask(
        page, "/decisions/default/p-3", "/decisions?plugin=NodeResourcesFit", "/decisions?limit=2"
    )
    assert [attempt["outcome"] for attempt in found["attempts"]] == ["unschedulable", "scheduled"]
    assert found["decision"]["outcome"] == "scheduled"
    assert found["matrix"]["nodes"][0] == found["decision"]["chosen"]
    assert {item["pod"] for item in rejected["items"]} == {"default/p-3"}
    assert [item["pod"] for item in others["items"]] == ["default/small-1", "default/small-0"]
    (one,) = ask(page, f"/decisions/default/p-3?id={found['attempts'][0]['id']}")
    assert one["matrix"]["refusals"][0]["count"] == 3


def test_decisions_of_a_simulation_are_found_by_the_plugin_that_rejected_a_node(folders: tuple[Path, Path]) -> None:
    """As in records, the plugin rejected that node, whether or not the pod found another one."""
    query = "/decisions?outcome=scheduled&refusedNode={}&plugin={}"
    nodes = [f"node-{number}" for number in range(3)]
    found = ask(site(folders[0]), *(query.format(node, "NodeResourcesFit") for node in nodes))
    assert any(one["items"] for one in found)
    assert not any(one["items"] for one in ask(site(folders[0]), *(query.format(node, "NodeName") for node in nodes)))


def test_two_runs_are_compared(folders: tuple[Path, Path]) -> None:
    """The comparison has the moved pods and the plugins that made the difference; both runs can be shown."""
    compared, first, second = ask(site(*folders), "/compare", "", "?run=1")
    assert (compared["a"], compared["b"], compared["pods"]) == (str(folders[0]), str(folders[1]), 6)
    (group,) = [group for group in compared["groups"] if group["kind"] == "score"]
    assert group["plugin"] == "NodeResourcesFit"
    assert "default/small-1" in {pod["pod"] for pod in group["pods"]}
    assert {"name": "pods bound", "a": 6, "b": 6} in compared["figures"]
    assert (first["name"], second["name"]) == (str(folders[0]), str(folders[1]))


def ignore_progress(*_: object) -> None:
    """Ignore the progress."""


def test_comparisons_agree_with_the_command(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """`kubestow compare` finds the same numbers of moved pods for the same reasons."""
    (compared,) = ask(site(*folders), "/compare")

    def copied(folder: Path) -> Callable[[int, Path], None]:
        return lambda _, where: ignore_progress(shutil.copytree(folder, where))

    command = compare(copied(folders[0]), copied(folders[1]), [1], tmp_path, ignore_progress)
    assert compared["moved"] == len(command.moved[1])
    assert compared["pods"] == command.pods[1]
    found = {(group["why"], group["count"]) for group in compared["groups"]}
    assert found == {(cause.why, cause.pods) for cause in command.causes}


def test_the_same_simulation_writes_the_same_files(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """The files are equal byte for byte."""
    ran = CliRunner().invoke(main, ["simulate", str(folders[0].parent / "s.yaml"), "--out", str(tmp_path / "again")])
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "again" / MOMENTS).read_bytes() == (folders[0] / MOMENTS).read_bytes()


def recording(path: Path) -> Path:
    """Write a recording with a node, and a pod that was added later."""
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "c", "image": "i", "resources": resources}
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    metadata = {"name": "p", "namespace": "default", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"containers": [container], "schedulerName": "default-scheduler"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "uid": "u0"},
        "status": {"allocatable": allocatable},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    writer = RecordingWriter(path)
    for time, op, obj in ((0.0, "start", None), (0.0, "put", node), (0.0, "synced", None), (5.0, "put", pod)):
        writer.add(1_767_225_600.0 + time, op, obj)
    writer.close()
    return path


def test_a_recording_is_replayed_and_shown(tmp_path: Path) -> None:
    """A process prints the address, serves the page, and ends with status 0."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kubestow", "view", str(recording(tmp_path / "r.gz"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address, token = process.stdout.readline().split()[-1].split("#token=")
        reader = Reader(int(address.split(":")[2].partition("/")[0]), token)
        found = reader.read("/ui/api/v1/decisions/default/p")
        assert (found.status, found.tree["decision"]["chosen"]) == (200, "n")
        about = reader.read("/ui/api/v1").tree
        assert about["name"] == str(tmp_path / "r.gz")
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "Running" in errors


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "there is no such file or folder"),
        ("empty", "has no moments.jsonl.gz; kubestow simulate --out creates folders"),
        ("text.txt", "is neither a recording nor a folder of results"),
        ("odd.gz", "not a recording"),
    ],
)
def test_files_that_cannot_be_shown_are_named(tmp_path: Path, name: str, message: str) -> None:
    """The message has the problem."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "odd.gz").write_bytes(gzip.compress(b'{"a": 1}\n', mtime=0))
    ran = CliRunner().invoke(main, ["view", str(tmp_path / name)])
    assert ran.exit_code == 1
    assert message in ran.stderr
    assert str(tmp_path / name) in ran.stderr


def changed(folder: Path, into: Path, name: str, content: bytes) -> Path:
    """Copy results and replace one file."""
    into.mkdir()
    for file in folder.iterdir():
        (into / file.name).write_bytes(content if file.name == name else file.read_bytes())
    return into


def lines(*trees: Any) -> bytes:
    return gzip.compress(b"".join(json.dumps(tree).encode() + b"\n" for tree in trees), mtime=0)


HEADER = {"kubestow": "moments", "version": 2, "configuration": {}}
MOMENT = {"type": "moment", "number": 1, "time": 1.0, "figures": {"seconds": 1}}
NODE = {"type": "change", "part": "node", "key": "n", "value": [{"metadata": {"name": "n"}}, 0, ["", 1, 1]]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (MOMENTS, b"hello", "cannot be read"),
        (MOMENTS, lines(HEADER, MOMENT)[:-12], "cannot be read"),
        (MOMENTS, lines({"kubestow": "moments", "version": 1}), "is of version 1, .* run the simulation again"),
        (MOMENTS, lines({"kubestow": "recording", "version": 2}), "not moments of a simulation"),
        (MOMENTS, lines(HEADER), "has no moments"),
        (MOMENTS, lines(HEADER, {"type": "moment", "number": 1}), "not moments of a simulation"),
        (MOMENTS, lines(HEADER, {**NODE, "value": [1]}, MOMENT), "not moments of a simulation"),
        (MOMENTS, lines(HEADER, {**NODE, "part": "Odd"}, MOMENT), "inconsistent change: KeyError"),
        (MOMENTS, lines(HEADER, NODE, {**NODE, "key": "m"}, MOMENT), "inconsistent change"),
        ("decisions.jsonl", b'{"pod": 1}\n', "decisions.jsonl:1: not a decision"),
        ("results.json", b"[]", "not results of a simulation"),
    ],
)
def test_broken_results_are_rejected(
    folders: tuple[Path, Path], tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """The message has the file and its problem."""
    with pytest.raises(ViewError, match=message):
        read(changed(folders[0], tmp_path / "broken", name, content))
