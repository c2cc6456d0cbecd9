"""Recordings: contents of the file, recovery after a kill, and replays with the recorded decisions."""

import asyncio
import csv
import gc
import gzip
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kubestow.api.files import ObjectsError
from kubestow.cli import main
from kubestow.cli.simulate import commands
from kubestow.client.access import Access
from kubestow.simulator.recording import files, following
from kubestow.simulator.recording.files import RecordingWriter
from kubestow.simulator.recording.replaying import Replay
from kubestow.simulator.recording.scrubbing import Hasher, scrubbed
from support.client.doubles import SkewedClock
from support.client.virtualtime import run
from support.integration.cluster import node, pod, priority_class, running_cluster, running_scheduler
from support.integration.misbehaviour import refuse
from support.simulator.objects import nodes

Object = dict[str, Any]


def _pods(count: int) -> list[Object]:
    rng = random.Random(3)
    found = []
    for number in range(count):
        one = pod(f"p{number:02}", rng.choice(["300m", "700m", "1"]), restartPolicy="Never")
        if number % 7 == 6:
            one["spec"]["priorityClassName"] = "high"
        one["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
        found.append(one)
    return found


async def _record(path: Path, hasher: Hasher | None = None) -> dict[str, str]:
    """Record a cluster with a scheduler, from before its first pod until after its last; return the bindings."""
    placed: dict[str, str] = {}
    async with running_cluster() as cluster:
        await cluster.add(priority_class("high", 100), *(node(f"n{number}", "2") for number in range(4)))
        async with running_scheduler(cluster) as instance:
            writer = RecordingWriter(path)
            notes: list[str] = []
            recording = asyncio.create_task(
                following.follow(instance.link.access, writer, SkewedClock(), hasher, notes.append)
            )
            await asyncio.sleep(5)
            for number, one in enumerate(_pods(14)):
                await cluster.add(one)
                await asyncio.sleep(7.3)
                placed |= {name: where for name, where in (await cluster.nodes_of_pods()).items() if where}
                if number % 4 == 3:
                    await cluster.delete(f"/api/v1/namespaces/default/pods/p{number - 2:02}")
                    await asyncio.sleep(7.3)
            recording.cancel()
            await asyncio.wait({recording})
            assert notes == ["recording"]
    return placed


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A recording, and the node of each pod."""
    path = tmp_path_factory.mktemp("recorded") / "r.gz"
    return path, run(_record(path))


def test_a_replay_decides_as_the_recorded_scheduler_did(recorded: tuple[Path, dict[str, str]]) -> None:
    """With the same seed and configuration every pod goes to its recorded node, evictions included."""
    path, placed = recorded
    replay = Replay(path)
    found: dict[str, str] = {}
    with replay.simulation(seed=1, checked=True) as simulation:
        simulation.on_decision.append(
            lambda one, outcome: found.update({one.metadata.name: getattr(outcome, "node", "")})
        )
        simulation.run_for(replay.duration)
    assert {name: where for name, where in found.items() if where} == placed
    assert {key.removeprefix("default/"): where for key, where in replay.bindings.items()} == placed
    assert len(placed) >= 10


def test_nothing_secret_is_recorded(recorded: tuple[Path, dict[str, str]]) -> None:
    """Neither values nor names of the environment."""
    content = gzip.decompress(recorded[0].read_bytes())
    assert b"hunter2" not in content
    assert b"PASSWORD" not in content
    assert b'"p00"' in content


def test_names_can_be_hashed_and_decisions_stay_the_same(tmp_path: Path) -> None:
    """A hashed recording contains no name, and its pods go to the hashes of the same nodes."""
    hasher = Hasher(b"salt")
    placed = run(_record(tmp_path / "h.gz", hasher))
    content = gzip.decompress((tmp_path / "h.gz").read_bytes())
    assert b'"p00"' not in content
    assert b'"n0"' not in content
    replay = Replay(tmp_path / "h.gz")
    hashed = hasher.hash_name
    expected = {f"{hashed('default')}/{hashed(name)}": hashed(node) for name, node in placed.items()}
    assert replay.bindings == expected


def test_references_are_hashed_like_names() -> None:
    """Hostnames in labels and affinity, too; otherwise pods would require nodes that do not exist."""
    hasher = Hasher(b"salt")
    tree = {"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1", "tier": "n1"}},
            "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}],
            "status": {"addresses": [{"type": "Hostname", "address": "n1"}]}}  # fmt: skip
    found = hasher.hashed(tree)
    word = hasher.hash_name("n1")
    assert found["metadata"] == {"name": word, "labels": {"kubernetes.io/hostname": word, "tier": "n1"}}
    assert found["matchExpressions"][0]["values"] == [word]
    assert found["status"]["addresses"] == [{"type": "Hostname", "address": word}]


def test_hashed_statuses_contain_no_names() -> None:
    """Messages are removed; addresses of pods and of their nodes have the same hashes as those in nodes."""
    hasher = Hasher(b"salt")
    ended = {"exitCode": 1, "reason": "Error", "message": "web cannot reach db"}
    status = {"phase": "Running", "message": "web was low", "hostIP": "10.0.0.1", "podIP": "10.1.0.1",
              "hostIPs": [{"ip": "10.0.0.1"}], "podIPs": [{"ip": "10.1.0.1"}],
              "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                              "message": "containers with unready status: [web]"}],
              "containerStatuses": [{"name": "web", "imageID": "example.com/web@sha256:1", "containerID": "cri://web",
                                     "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "web failed"}},
                                     "lastState": {"terminated": ended}}]}  # fmt: skip
    host, own = hasher.hash_name("10.0.0.1"), hasher.hash_name("10.1.0.1")
    assert hasher.hashed({"addresses": [{"address": "10.0.0.1"}]}) == {"addresses": [{"address": host}]}
    assert hasher.hashed({"spec": {"providerID": "10.0.0.1"}}) == {"spec": {"providerID": host}}
    assert hasher.hashed({"status": {"networkData": {"ips": ["10.1.0.1"]}}})["status"]["networkData"] == {"ips": [own]}
    assert hasher.hashed({"status": status})["status"] == {
        "phase": "Running",
        "hostIP": host,
        "podIP": own,
        "hostIPs": [{"ip": host}],
        "podIPs": [{"ip": own}],
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [
            {
                "name": hasher.hash_name("web"),
                "imageID": hasher.hash_name("example.com/web@sha256:1"),
                "containerID": hasher.hash_name("cri://web"),
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
            }
        ],
    }


def test_addresses_and_messages_outside_statuses_are_kept() -> None:
    """Conflicts of host ports depend on the address, and labels may have any key."""
    tree = {"metadata": {"labels": {"message": "web", "ip": "no"}},
            "spec": {"containers": [{"ports": [{"hostPort": 80, "hostIP": "127.0.0.1"}]}]}}  # fmt: skip
    assert Hasher(b"salt").hashed(tree) == tree


def test_pod_names_in_budgets_are_hashed() -> None:
    """Pods about to be evicted are keys of a map."""
    hasher, when = Hasher(b"salt"), "2026-11-16T12:00:00Z"
    found = hasher.hashed({"kind": "PodDisruptionBudget", "status": {"disruptedPods": {"web": when}}})
    assert found["status"] == {"disruptedPods": {hasher.hash_name("web"): when}}


@pytest.mark.parametrize(
    ("named", "referring"),
    [
        ({"metadata": {"name": "X"}}, {"podAffinityTerm": {"namespaces": ["X"]}}),
        ({"metadata": {"name": "X"}}, {"matchLabels": {"kubernetes.io/metadata.name": "X"}}),
        ({"metadata": {"name": "X"}}, {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "values": ["X"]}]}),
        ({"metadata": {"name": "X"}}, {"source": {"persistentVolumeName": "X"}}),
        ({"devices": [{"name": "X"}]}, {"allocation": {"devices": {"results": [{"device": "X"}]}}}),
        ({"sharedCounters": [{"name": "X"}]}, {"consumesCounters": [{"counterSet": "X"}]}),
        ({"requests": [{"name": "X"}]}, {"constraints": [{"requests": ["X"], "matchAttribute": "a"}]}),
        ({"requests": [{"name": "X"}]}, {"results": [{"request": "X"}]}),
        ({"requests": [{"name": "X"}]}, {"containers": [{"resources": {"claims": [{"request": "X"}]}}]}),
    ],
)
def test_names_and_references_stay_equal(named: Object, referring: Object) -> None:
    """Otherwise a replay would decide differently."""
    hasher = Hasher(b"salt")
    for tree in (named, referring):
        assert hasher.hashed(tree) == json.loads(json.dumps(tree).replace('"X"', f'"{hasher.hash_name("X")}"'))


def test_parts_of_requests_are_hashed_one_by_one() -> None:
    """Both parts of such a name occur in allocations of devices."""
    hasher = Hasher(b"salt")
    expected = f"{hasher.hash_name('gpu')}/{hasher.hash_name('large')}"
    assert hasher.hashed({"request": "gpu/large"}) == {"request": expected}


def test_claims_of_ephemeral_volumes_are_still_found() -> None:
    """By name: the hash of a combined name differs from the combined hashes."""
    hasher = Hasher(b"salt")
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", "ephemeral": {}}]}}
    claim = {"claimName": hasher.hash_name("p-v")}
    assert hasher.hashed(pod)["spec"] == {"volumes": [{"name": hasher.hash_name("v"), "persistentVolumeClaim": claim}]}


def test_driver_names_and_labels_are_kept() -> None:
    """Drivers of volumes are referred to by provisioners, and labels by selectors of any form."""
    hasher = Hasher(b"salt")
    driver = {"kind": "CSIDriver", "metadata": {"name": "ebs.csi.aws.com"}}
    labelled = {"labels": {"name": "web"}, "selector": {"name": "web"}, "annotations": {"image": "web"}}
    assert hasher.hashed(driver | labelled) == driver | labelled
    node = {"kind": "CSINode", "spec": {"drivers": [{"name": "ebs.csi.aws.com", "nodeID": "i-1"}]}}
    assert hasher.hashed(node)["spec"]["drivers"] == [{"name": "ebs.csi.aws.com", "nodeID": hasher.hash_name("i-1")}]


def test_a_recording_with_hashed_names_is_not_continued(tmp_path: Path) -> None:
    """Its names would have other hashes from then on."""
    (tmp_path / "rec.gz").write_bytes(b"anything")
    done = CliRunner().invoke(commands.record, [str(tmp_path / "rec.gz"), "--hash-names"])
    assert done.exit_code == 2
    assert "rec.gz exists and has hashes with another salt: name a new file" in done.output


def test_scrubbing_leaves_what_scheduling_needs() -> None:
    """Commands and managed fields are removed; resources remain."""
    container = {"name": "c", "command": ["sh"], "args": ["-p", "x"], "resources": {"requests": {"cpu": "1"}}}
    tree = {"metadata": {"managedFields": [1]}, "spec": {"containers": [container]}}
    assert scrubbed(tree) == {
        "metadata": {},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }


def _write(path: Path, *ops: tuple[float, str, Any]) -> None:
    writer = RecordingWriter(path)
    for op in ops:
        writer.add(*op)
        writer.flush()
    writer.close()


def test_two_recorders_cannot_share_a_file(tmp_path: Path) -> None:
    """Neither a new file nor a continued one, until the first recorder is done."""
    path = tmp_path / "r.gz"
    for _ in range(2):
        first = RecordingWriter(path)
        with pytest.raises(ObjectsError, match=r"r\.gz: another process is recording to it; choose another file"):
            RecordingWriter(path)
        first.add(1.0, "start")
        first.close()
    assert [entry.op for entry in files.entries(path)] == ["start", "start"]


def test_a_killed_recorder_loses_only_what_it_was_writing(tmp_path: Path) -> None:
    """Wherever the file is cut off, the complete members are read, and recording can continue."""
    path = tmp_path / "r.gz"
    ops = [(float(number), "put", one) for number, one in enumerate(nodes(5))]
    _write(path, (0.0, "start", None), *ops)
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, len(whole) // 2, -7):
        path.write_bytes(whole[:cut])
        kept = [entry.time for entry in files.entries(path)]
        assert kept == sorted(kept)
        assert 2 <= len(kept) <= 5
    _write(path, (9.0, "start", None))
    assert [entry.op for entry in files.entries(path)][-1] == "start"


def test_a_damaged_file_is_rejected(tmp_path: Path) -> None:
    """Reading on would lose the rest silently, and a recorder would lose it for ever: both refuse to."""
    path = tmp_path / "r.gz"
    _write(path, (0.0, "start", None))
    good = path.stat().st_size
    _write(path, (1.0, "start", None))
    damaged = bytearray(path.read_bytes())
    damaged[good] = 0
    path.write_bytes(damaged)
    notes = rf"r\.gz: is damaged from byte {good} on; `truncate -s {good} .*r\.gz` leaves what is before"
    for use in (files.read, RecordingWriter):
        with pytest.raises(ObjectsError, match=notes):
            use(path)
    assert path.read_bytes() == damaged


def test_objects_missing_from_a_later_session_are_deleted(tmp_path: Path) -> None:
    """A session lists all objects; others do not exist any more."""
    path, (first, second) = tmp_path / "r.gz", nodes(2)
    _write(path, (0.0, "start", None), (0.0, "put", first), (0.0, "put", second), (1.0, "synced", None))
    _write(path, (9.0, "start", None), (9.0, "put", second), (9.5, "synced", None))
    found = [(entry.time, entry.op, entry.object["metadata"]["name"]) for entry in files.read(path).changes]
    assert found == [(0, "put", "node-0"), (0, "put", "node-1"), (9, "put", "node-1"), (9.5, "delete", "node-0")]


def _samples(path: Path, out: Path) -> list[dict[str, str]]:
    ran = CliRunner().invoke(main, ["replay", str(path), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    return list(csv.DictReader((out / "samples.csv").read_text().splitlines()))


def test_a_replay_begins_with_the_initial_objects(tmp_path: Path) -> None:
    """However long the recorder took to list them."""
    path, found = tmp_path / "r.gz", nodes(4)
    listed = [(10.0 + number, "put", node) for number, node in enumerate(found)]
    _write(path, (10.0, "start", None), *listed, (14.0, "synced", None), (16.0, "end", None))
    samples = _samples(path, tmp_path / "out")
    assert {one["nodes"] for one in samples} == {"4"}
    assert float(samples[-1]["time"]) == 6.0
    path.unlink()
    _write(path, (10.0, "start", None), *listed, (14.0, "end", None))
    assert {entry.time for entry in files.read(path).changes} == {0.0}


def test_a_replay_lasts_as_long_as_was_recorded(tmp_path: Path) -> None:
    """A quiet end counts, a killed recorder's last line is the end, and a continued recording ends later."""
    path, (node,) = tmp_path / "r.gz", nodes(1)
    _write(path, (10.0, "start", None), (10.0, "put", node), (10.5, "synced", None), (13.0, "put", node))
    assert Replay(path).duration == 3.0 + 1.0
    errors = CliRunner().invoke(main, ["replay", str(path)]).stderr
    assert (
        errors
        == f"{path}: is incomplete: its recorder was killed or is still running, and the last changes may be missing.\n"
    )
    _write(path, (20.0, "start", None), (20.0, "put", node), (20.5, "synced", None), (26.0, "end", None))
    assert Replay(path).duration == 16.0
    with Replay(path).simulation(seed=None) as simulation:
        assert simulation.settings.seed == 0
    assert [entry.time for entry in files.read(path).changes] == [0.0, 3.0, 10.0]


def test_a_recorder_writes_its_end(recorded: tuple[Path, dict[str, str]]) -> None:
    """With its last line."""
    *_, change, last = files.entries(recorded[0])
    assert last.op == "end"
    assert last.time > change.time
    assert Replay(recorded[0]).duration == pytest.approx(last.time - next(files.entries(recorded[0])).time)


async def _notes(access: Access, path: Path) -> list[str]:
    """Return the notes of a recorder in twenty seconds."""
    notes: list[str] = []
    recording = asyncio.create_task(following.follow(access, RecordingWriter(path), SkewedClock(), None, notes.append))
    await asyncio.sleep(20)
    recording.cancel()
    await asyncio.wait({recording})
    return notes


def test_forbidden_resources_are_skipped(tmp_path: Path) -> None:
    """With a note; the rest is recorded, including pods."""

    async def main() -> list[str]:
        hidden = refuse("/api/v1/persistentvolumes", 403, "Forbidden")
        async with running_cluster() as cluster, running_scheduler(cluster, wrap=hidden) as instance:
            await cluster.add(node("n1"), pod("p1"))
            return await _notes(instance.link.access, tmp_path / "r.gz")

    *output, last = run(main())
    assert last == "recording"
    assert output == [
        "persistentvolumes cannot be recorded: persistentvolumes: the API server forbids to list and watch them"
    ]
    assert {"p1", "n1"} <= {change.object["metadata"]["name"] for change in files.read(tmp_path / "r.gz").changes}


def test_a_recorder_reports_what_it_waits_for(tmp_path: Path) -> None:
    """A recorder without progress reports what it waits for."""

    async def main() -> list[str]:
        async with running_cluster() as cluster, running_scheduler(cluster) as instance:
            await instance.link.disconnect()
            return await _notes(instance.link.access, tmp_path / "r.gz")

    (notes,) = run(main())
    assert notes.startswith("waiting for pods, nodes, ")


def test_a_clock_that_was_set_back_does_not_change_the_order(tmp_path: Path) -> None:
    """Later lines stay later."""
    path, (node,) = tmp_path / "r.gz", nodes(1)
    _write(path, (10.0, "start", None), (10.0, "synced", None), (15.0, "put", node), (12.0, "delete", node))
    assert [(entry.time, entry.op) for entry in files.read(path).changes] == [(5.0, "put"), (5.0, "delete")]


def _bound(name: str, created: str, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created}
    return {"apiVersion": "v1", **pod(name, "1", nodeName="node-0", **spec), "kind": "Pod", "metadata": metadata}


def test_new_pods_are_detected_by_a_slow_recorder(tmp_path: Path) -> None:
    """A pod created after the recording began is scheduled again, even if it was first seen with a node."""
    path, begin = tmp_path / "r.gz", 1_800_000_000.0
    old, new = _bound("old", "2027-01-15T07:59:59Z"), _bound("new", "2027-01-15T08:00:01Z")
    _write(path, (begin, "start", None), (begin, "put", nodes(1)[0]), (begin + 2, "put", old), (begin + 2, "put", new))
    decided: list[str] = []
    with Replay(path).simulation() as simulation:
        simulation.on_decision.append(lambda one, _outcome: decided.append(one.metadata.name))
        simulation.run_for(3)
        assert (simulation.node_of("old"), simulation.node_of("new")) == ("node-0", "node-0")
    assert decided == ["new"]
    ran = CliRunner().invoke(main, ["replay", str(path)])
    assert "Pods bound at the start: 1; scheduled again: 1.\n" in ran.output
    new["metadata"]["creationTimestamp"] = "yesterday"
    _write(path, (begin + 3, "put", {**new, "metadata": {**new["metadata"], "uid": "other"}}))
    with pytest.raises(ObjectsError, match="Pod default/new: creationTimestamp: 'yesterday' is not a time"):
        Replay(path)


def test_pods_of_another_scheduler_keep_their_nodes(tmp_path: Path) -> None:
    """It uses its resources at the same times."""
    path = tmp_path / "r.gz"
    bound = _bound("p", "2027-01-15T08:00:00Z", schedulerName="theirs")
    waiting = {**bound, "spec": {key: value for key, value in bound["spec"].items() if key != "nodeName"}}
    ops = ((0.0, "put", nodes(1)[0]), (1.0, "put", waiting), (2.0, "put", bound), (9.0, "delete", bound))
    _write(path, (0.0, "start", None), *ops)
    with Replay(path).simulation() as simulation:
        simulation.run_for(1.5)
        assert simulation.node_of("p") == ""
        simulation.run_for(1.0)
        assert simulation.node_of("p") == "node-0"
        assert simulation.core.cluster.pod_count == 1
        simulation.run_for(7.0)
        assert simulation.pod_names() == []


def _lines(*lines: str) -> bytes:
    return gzip.compress("\n".join(['{"kubestow":"recording","version":1}', *lines]).encode())


def test_files_that_are_not_recordings_are_rejected(tmp_path: Path) -> None:
    """Other content, another version, an empty file: each error names the file."""
    path = tmp_path / "r.gz"
    for content, problem in (
        (gzip.compress(b"hello\n"), "not a recording: line 1: "),
        (_lines('{"time":1,"op":"start"}', '{"time":2,"op":"dance"}'), "line 3: Invalid enum value 'dance'"),
        (gzip.compress(b'{"kubestow":"recording","version":9}\n'), "is of version 9; this program reads version 2"),
        (gzip.compress(b"{}\n"), "not a recording of kubestow"),
        (b"\x1f\x8b", "truncated before its first line"),
        (_lines('{"time":1,"op":"start"}'), "has no objects"),
        (_lines('{"time":1,"op":"put","object":{"kind":"Node"}}'), "a `put` at 1.0 names no object"),
        (_lines('{"time":1,"op":"put","object":{"kind":["Node"],"metadata":{"name":"a"}}}'), "names no object"),
    ):
        path.write_bytes(content)
        with pytest.raises(ObjectsError, match=f"r.gz: .*{problem}"):
            Replay(path)


def test_the_command_replays(recorded: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """kubestow replay writes the same files as kubestow simulate."""
    ran = CliRunner().invoke(main, ["replay", str(recorded[0]), "--seed", "1", "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes())
    assert results["pods"]["bound"] == len(recorded[1])


def test_replaying_something_else_is_an_error(tmp_path: Path) -> None:
    """The error explains how to create a recording."""
    (tmp_path / "x.yaml").write_text("a: 1")
    ran = CliRunner().invoke(main, ["replay", str(tmp_path / "x.yaml")])
    assert ran.exit_code == 1
    assert "kubestow record creates recordings" in ran.output


def test_an_unopenable_file_is_reported_in_one_line(
    recorded: tuple[Path, dict[str, str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing recording; a folder that cannot be created, which leaves no process running."""
    ran = CliRunner().invoke(main, ["replay", str(tmp_path / "missing")])
    assert (ran.exit_code, ran.output) == (1, f"Error: {tmp_path / 'missing'}: No such file or directory\n")
    (tmp_path / "file").touch()
    ran = CliRunner().invoke(main, ["replay", str(recorded[0]), "--out", str(tmp_path / "file" / "out")])
    assert (ran.exit_code, ran.output) == (1, f"Error: {tmp_path / 'file' / 'out'}: Not a directory\n")
    gc.collect()
    assert "Task was destroyed" not in caplog.text


@pytest.mark.parametrize("when", [1.0, 3.0])
def test_an_invalid_object_is_reported_with_file_and_time(tmp_path: Path, when: float) -> None:
    """Whether it was there from the beginning or came later."""
    path, (good, bad) = tmp_path / "r.gz", nodes(2)
    bad["status"]["allocatable"]["cpu"] = "-1"
    _write(
        path, (1.0, "start", None), (1.0, "put", good), (1.0, "synced", None), (when, "put", bad), (9.0, "end", None)
    )
    ran = CliRunner().invoke(main, ["replay", str(path)])
    notes = 'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0'
    output = f'Error: {path}: at {when - 1:g} s: Node node-1: Node "node-1" is invalid: {notes}\n'
    assert (ran.exit_code, ran.stderr) == (1, output)
