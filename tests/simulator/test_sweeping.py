"""Sweeps: varied fields, continuation after a kill, and a Dask cluster that loses a worker."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubestow.cli import main
from kubestow.simulator.scenario.format import Spec
from kubestow.simulator.scenario.reading import Scenario
from kubestow.simulator.sweeping import POINTS, Point, SweepError, grid, parse_vary

SCENARIO = """apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  duration: 10m
  nodes: [{count: 4, name: "node-{}", cpu: 4}]
  arrivals:
  - name: p
    pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}
    poisson: {every: 10s}
    until: 8m
    run: {exponential: 2m}
"""
COUNT = "scenario.spec.nodes[0].count"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """A file with a small scenario."""
    (tmp_path / "s.yaml").write_text(SCENARIO)
    return str(tmp_path / "s.yaml")


def _sweep(scenario: str, out: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["sweep", scenario, "--out", str(out), "--workers", "1", *args])


def test_lists_are_combined_and_ranges_drawn_from() -> None:
    """A grid has every combination; with `draws`, the given number of random ones."""
    varied = dict(map(parse_vary, ["config.a=1,2", "scenario.b=x,y"]))
    assert len(grid(varied, [1, 2, 3], 0)) == 12
    drawn = grid(dict([parse_vary("config.a=0.5..9")]), [1], 20)
    assert all(0.5 <= float(one["config.a"]) <= 9 for one in drawn)
    assert drawn == grid(dict([parse_vary("config.a=0.5..9")]), [1], 20)
    with pytest.raises(SweepError, match=r"config\.a: a range needs random draws"):
        grid(dict([parse_vary("config.a=5..9")]), [1], 0)
    with pytest.raises(SweepError, match="write config"):
        parse_vary("nodes=3")


@pytest.mark.parametrize(("draws", "combinations"), [(7, 7), (9, 9), (40, 9)])
def test_no_combination_is_drawn_twice(draws: int, combinations: int) -> None:
    """A repeated value counts once; if there are fewer combinations than draws, all of them are run."""
    varied = dict(map(parse_vary, ["config.a=5..7", "scenario.b=x,y,x,z"]))
    drawn = {tuple(one.values()) for one in grid(varied, [1], draws)}
    assert len(drawn) == len(grid(varied, [1], draws)) == combinations


def test_fewer_combinations_than_draws(scenario: str, tmp_path: Path) -> None:
    """A message says so."""
    ran = _sweep(scenario, tmp_path / "out", "--vary", f"{COUNT}=2..3", "--random", "5")
    assert ran.exit_code == 0, ran.output
    assert "--random 5: running all combinations, which are only 2" in ran.output
    assert "2 simulations" in ran.output


def test_more_nodes_do_better(scenario: str, tmp_path: Path) -> None:
    """One table, best first, and a page with a plot."""
    ran = _sweep(scenario, tmp_path / "out", "--vary", f"{COUNT}=2,8", "--seeds", "2")
    assert ran.exit_code == 0, ran.output
    lines = [line for line in ran.output.splitlines() if COUNT in line]
    assert [line.split("=")[-1] for line in lines] == ["8", "2"]
    table = (tmp_path / "out" / "results.csv").read_text().splitlines()
    assert len(table) == 5
    assert table[0].startswith(f"{COUNT},seed,pods bound")
    assert (tmp_path / "out" / "report.html").read_text().count("<circle") == 2


def test_a_configuration_is_varied_too(scenario: str, tmp_path: Path) -> None:
    """From a file of combinations."""
    (tmp_path / "list.csv").write_text(f"config.podMaxBackoffSeconds,{COUNT}\n1,3\n20,3\n")
    ran = _sweep(scenario, tmp_path / "out", "--list", str(tmp_path / "list.csv"))
    assert ran.exit_code == 0, ran.output
    found = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes())
    assert [one["fields"]["config.podMaxBackoffSeconds"] for one in found] == [1, 20]


def test_a_killed_sweep_continues(scenario: str, tmp_path: Path) -> None:
    """Points with a result are not run again; one that was cut off is."""
    out = tmp_path / "out"
    assert _sweep(scenario, out, "--vary", f"{COUNT}=2,3", "--seeds", "1").exit_code == 0
    whole = (out / POINTS).read_bytes()
    first = next(line for line in whole.splitlines() if line).replace(b'"bound":', b'"bound":1000')
    (out / POINTS).write_bytes(first + b"\n" + whole.splitlines()[-1][:50])
    ran = _sweep(scenario, out, "--vary", f"{COUNT}=2,3,4", "--seeds", "1")
    assert ran.exit_code == 0, ran.output
    found = msgspec.json.decode((out / "results.json").read_bytes())
    assert sorted(one["results"]["pods"]["bound"] > 999 for one in found) == [False, False, True]


@pytest.mark.parametrize(
    ("vary", "problem"),
    [
        ("scenario.spec.nodes[9].count=1", "there is no 9 in its path"),
        (f"{COUNT}=many", f"Error: {COUNT}: expected `int`, got `str` (with {COUNT}=many)"),
        (f"{COUNT}=4,-4", f"Error: {COUNT}: must not be negative (with {COUNT}=-4)"),
        ("scenario.spec.nodes[0].cont=4", "Error: scenario.spec.nodes[0].cont: unknown field (with"),
        ("scenario.spec.seed=4", "scenario.spec.seed: seeds are varied with --seeds"),
        ("config.percentageOfNodesToScore=500", "config.percentageOfNodesToScore: must be from 0 to 100"),
        ("config.percentageOfNodesToScore=9..4", "the low end of a range must not exceed the high end"),
        ("config.percentageOfNodesToScore=1.2.3..4", "'1.2.3..4' is neither VALUE,VALUE nor LOW..HIGH"),
        ("config.percentageOfNodesToScore=[1,2]", "'[1,2]' is neither VALUE,VALUE nor LOW..HIGH"),
        ("config.=1", "write config.FIELD=VALUE,VALUE"),
    ],
)
def test_fields_that_cannot_be_set_are_named(scenario: str, tmp_path: Path, vary: str, problem: str) -> None:
    """Before the first run."""
    ran = _sweep(scenario, tmp_path / "out", "--vary", vary)
    assert ran.exit_code == 1
    assert problem in ran.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (f"{COUNT}\n", "list.csv: has no rows"),
        ("nodes\n3\n", "list.csv: line 2: 'nodes': write config.FIELD"),
        (f"{COUNT}\n3,4\n", "list.csv: line 2: 'more values than the first line has'"),
        (f"{COUNT}\n3\n[4\n", "list.csv: line 3: has a value that cannot be read"),
    ],
)
def test_an_invalid_list_of_combinations(scenario: str, tmp_path: Path, rows: str, problem: str) -> None:
    """With its line."""
    (tmp_path / "list.csv").write_text(rows)
    ran = _sweep(scenario, tmp_path / "out", "--list", str(tmp_path / "list.csv"))
    assert (ran.exit_code, problem in ran.output) == (1, True), ran.output


def test_conflicting_options_are_rejected(scenario: str, tmp_path: Path) -> None:
    """A list together with varied fields, and a repeated field."""
    (tmp_path / "list.csv").write_text(f"{COUNT}\n3\n")
    vary = ("--vary", f"{COUNT}=4")
    assert "--list cannot be combined" in _sweep(scenario, tmp_path, "--list", str(tmp_path / "list.csv"), *vary).output
    assert f"{COUNT}: is given more than once" in _sweep(scenario, tmp_path, *vary, *vary).output


def test_errors_of_a_running_point_are_reported(scenario: str, tmp_path: Path) -> None:
    """With file, line and field, from another process; nothing is left behind. Each note is printed once."""
    Path(scenario).write_text(SCENARIO.replace("cpu: 1,", "cpu: -1,"))
    ran = _sweep(scenario, tmp_path / "out", "--vary", f"{COUNT}=2,3")
    assert ran.exit_code == 1
    assert "s.yaml: line 8: spec.arrivals[0].pod.spec.containers[0].resources.requests[cpu]: Invalid" in ran.output
    assert not (tmp_path / "out").exists()
    Path(scenario).write_text(f"{SCENARIO}  events: [{{at: 1h, fail: {{count: 1}}}}]\n")
    ran = _sweep(scenario, tmp_path / "out", "--vary", f"{COUNT}=2,3")
    assert ran.output.count("spec.events[0].at: does not happen") == 1


def test_the_results_of_something_else_are_not_overwritten(scenario: str, tmp_path: Path) -> None:
    """A folder of `simulate` would become a mixture of both."""
    (tmp_path / "results.json").write_text("{}")
    ran = _sweep(scenario, tmp_path, "--vary", f"{COUNT}=2,3")
    assert (ran.exit_code, (tmp_path / "results.json").read_text()) == (1, "{}")
    assert "has results that are not of a sweep; name another folder" in ran.output


def test_custom_plugins_are_swept(scenario: str, tmp_path: Path) -> None:
    """A configuration enables them."""
    plugin, configuration = tmp_path / "p.py", tmp_path / "c.yaml"
    plugin.write_text(
        "class Mine:\n    name = 'Mine'\n\n    def __init__(self, args, handle):\n        pass\n\n"
        "    def score(self, state, pod, node):\n        return 1\n"
    )
    configuration.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Mine}]}}}]\n"
    )
    ran = _sweep(scenario, tmp_path / "out", "--plugin", str(plugin), "--config", str(configuration))
    assert ran.exit_code == 0, ran.output


def test_an_interrupted_sweep_reports_its_progress(scenario: str, tmp_path: Path) -> None:
    """Ctrl-C reaches all its processes; the same command continues."""
    out, vary = tmp_path / "out", ("--vary", f"{COUNT}=2,3,4,5,6,7,8,9", "--seeds", "99")
    # The tests may have been started with SIGINT ignored, as in the background of a shell.
    heeding = ["env", "--default-signal=INT", sys.executable, "-m", "kubestow"]
    command = [*heeding, "sweep", scenario, "--out", str(out), "--workers", "1", *vary]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as sweep:
        while sweep.poll() is None and not _results(out):
            time.sleep(0.05)
        os.killpg(sweep.pid, signal.SIGINT)
        _, output = sweep.communicate(timeout=600)
    assert sweep.returncode == 130
    progress = re.fullmatch(
        r"Stopped: (\d+) of 792 simulations are done and kept in .*/out\. Run the same command .*\n", output
    )
    assert progress is not None, output
    assert 0 < int(progress[1]) == len((out / POINTS).read_text().strip().splitlines())


@contextmanager
def _process(*args: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, *args], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _address(scheduler: subprocess.Popen[str]) -> str:
    assert scheduler.stderr is not None
    for line in scheduler.stderr:
        found = re.search(r"tcp://127\.0\.0\.1:\d+", line)
        if found and "Scheduler at" in line:
            return found[0]
    raise AssertionError("the scheduler did not say where it is")


def test_a_dask_cluster_that_loses_a_worker(scenario: str, tmp_path: Path) -> None:
    """All points are done, with the same results as in one process."""
    pytest.importorskip("distributed")
    here, there = tmp_path / "here", tmp_path / "there"
    vary = ["--vary", f"{COUNT}=2,3,4", "--seeds", "2"]
    ends = "--no-dashboard", "--host", "127.0.0.1"
    with _process("-m", "distributed.cli.dask_scheduler", *ends, "--port", "0") as scheduler:
        address = _address(scheduler)
        worker = ("-m", "distributed.cli.dask_worker", address, *ends, "--nthreads", "1", "--no-nanny")
        with _process(*worker) as first, _process(*worker):
            command = ("-m", "kubestow", "sweep", scenario, "--out", str(there), *vary, "--dask", address)
            with subprocess.Popen(
                [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            ) as sweep:
                while sweep.poll() is None and not _results(there):
                    time.sleep(0.05)
                os.kill(first.pid, signal.SIGKILL)
                output, _ = sweep.communicate(timeout=600)
    assert sweep.returncode == 0, output.decode()
    assert _sweep(scenario, here, *vary).exit_code == 0
    assert (there / "results.json").read_bytes() == (here / "results.json").read_bytes()


def test_a_ray_cluster_does_what_one_process_does(scenario: str, tmp_path: Path) -> None:
    """On a real one of this machine, which Ray starts."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'kubestow[ray]'")
    here, there = tmp_path / "here", tmp_path / "there"
    vary = ["--vary", f"{COUNT}=2,3,4"]
    command = [sys.executable, "-m", "kubestow", "sweep", scenario, "--out", str(there), *vary, "--ray", "local"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert _sweep(scenario, here, *vary).exit_code == 0
    assert (there / "results.json").read_bytes() == (here / "results.json").read_bytes()


def test_a_sweep_runs_in_one_place(scenario: str, tmp_path: Path) -> None:
    """Not on two clusters at once."""
    ran = _sweep(scenario, tmp_path / "out", "--vary", f"{COUNT}=2", "--ray", "auto")
    assert ran.exit_code == 1
    assert "--workers and --ray: a sweep runs in one place" in ran.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("flag", "scheme"), [("--dask", "tcp://"), ("--ray", ""), ("--ray", "ray://")])
def test_an_unreachable_address(scenario: str, tmp_path: Path, flag: str, scheme: str) -> None:
    """Reported at once, and nothing is written."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{unused.getsockname()[1]}"
        ran = CliRunner().invoke(main, ["sweep", scenario, "--out", str(tmp_path / "out"), flag, address])
    assert ran.exit_code == 1
    assert f"Error: {flag} {address}: no server answers: Connection refused" in ran.output
    assert not (tmp_path / "out").exists()


def test_a_point_with_another_plugin_is_another_point() -> None:
    """A continued sweep does not reuse the results of an earlier version of a plugin."""
    point = Point({"seed": 1}, Scenario(Spec()), "", ("p.py",), ("1",))
    assert point.id == replace(point).id
    assert point.id != replace(point, plugin_digests=("2",)).id


def _results(out: Path) -> int:
    return (out / POINTS).read_bytes().strip().count(b"\n") if (out / POINTS).exists() else 0
