"""The decision log: one line for each settled decision, and files of a limited size."""

import json
from pathlib import Path

import pytest

from kubestow.insight.decisions.log import DecisionLog
from kubestow.testing import SchedulerHarness, make_node, make_pod


def write_log(path: Path | str, pods: int, *, size: int = 1 << 20, backups: int = 2, nodes: bool = False) -> None:
    """Schedule a number of pods, and an unschedulable one, with a log."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        assert world.decisions is not None
        log = DecisionLog(world.decisions, str(path), size=size, backups=backups, nodes=nodes)
        world.cluster.add(make_node("n", cpu="64"))
        world.cluster.add(make_node("m", cpu="64"))
        for number in range(pods):
            world.cluster.add(make_pod(f"p{number}", cpu="10m"))
        world.cluster.add(make_pod("big", cpu="100"))
        world.run_until_idle()
        log.close()


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_decision_is_a_line(tmp_path: Path) -> None:
    """It is written once, when the pod is bound or has failed; an existing file is appended to."""
    path = tmp_path / "decisions.log"
    write_log(path, 3)
    write_log(path, 1)
    found = lines(path)
    assert sorted(str(line["pod"]) for line in found) == sorted(
        ["default/p0", "default/p1", "default/p2", "default/big", "default/p0", "default/big"]
    )
    states = {line["binding"]["state"] for line in found if line["chosen"]}  # type: ignore[index]
    assert states == {"bound"}
    assert not any("nodes" in line for line in found)


def test_nodes_on_request(tmp_path: Path) -> None:
    """With `nodes`, lines have the details about nodes."""
    write_log(tmp_path / "log", 1, nodes=True)
    assert [sorted(line["nodes"]) for line in lines(tmp_path / "log")] == [["m", "n"]] * 2  # type: ignore[call-overload]


def test_files_are_rotated(tmp_path: Path) -> None:
    """No file exceeds the size, the newest line is in the file itself, and the number of backups is limited."""
    path = tmp_path / "log"
    write_log(path, 100, size=10_000)
    files = sorted(entry.name for entry in tmp_path.iterdir())
    assert files == ["log", "log.1", "log.2"]
    assert all((tmp_path / name).stat().st_size <= 10_000 for name in files)
    times = [line["id"] for name in ("log.2", "log.1", "log") for line in lines(tmp_path / name)]
    assert len(times) == len(set(times)) > 10
    write_log(path, 100, size=10_000, backups=0)
    assert lines(path)


def test_a_size_of_0_is_no_limit(tmp_path: Path) -> None:
    """All lines are in one file."""
    write_log(tmp_path / "log", 20, size=0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["log"]
    assert len(lines(tmp_path / "log")) == 21


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A dash selects standard output."""
    write_log("-", 1)
    assert [json.loads(line)["pod"] for line in capfdbinary.readouterr().out.splitlines()] == [
        "default/big",
        "default/p0",
    ]


def test_a_log_that_cannot_be_written_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Scheduling continues, and the log continues when the disk has space again."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        assert world.decisions is not None
        log = DecisionLog(world.decisions, str(tmp_path / "log"), size=1 << 20, backups=1, nodes=False)
        world.cluster.add(make_node("n"))
        with Path("/dev/full").open("ab", buffering=0) as full:
            good, log._file = log._file, full
            for number in range(3):
                world.cluster.add(make_pod(f"p{number}"))
            world.run_until_idle()
        assert [world.cluster.node_of(f"p{number}") for number in range(3)] == ["n"] * 3
        assert sum("Decisions are missing in the decision log" in record.message for record in caplog.records) == 1
        log._file = good
        world.cluster.add(make_pod("later"))
        world.run_until_idle()
        log.close()
    assert [line["pod"] for line in lines(tmp_path / "log")] == ["default/later"]
