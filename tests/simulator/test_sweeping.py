"""Sweeps: what is varied, that one goes on after a kill, and that it runs on a Dask cluster which loses a worker."""

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
    """A file of a small one."""
    (tmp_path / "s.yaml").write_text(SCENARIO)
    return str(tmp_path / "s.yaml")


def _sweep(scenario: str, out: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["sweep", scenario, "--out", str(out), "--workers", "1", *args])


def test_lists_are_combined_and_ranges_drawn_from() -> None:
    """A grid has every combination; chance draws as many as it is told."""
    varied = dict(map(parse_vary, ["config.a=1,2", "scenario.b=x,y"]))
    assert len(grid(varied, [1, 2, 3], 0)) == 12
    drawn = grid(dict([parse_vary("config.a=5..9")]), [1], 20)
    assert {one["config.a"] for one in drawn} <= {5, 6, 7, 8, 9}
    assert drawn == grid(dict([parse_vary("config.a=5..9")]), [1], 20)
    with pytest.raises(SweepError, match=r"config\.a: a range is drawn from by chance"):
        grid(dict([parse_vary("config.a=5..9")]), [1], 0)
    with pytest.raises(SweepError, match="write config"):
        parse_vary("nodes=3")


def test_more_nodes_do_better(scenario: str, tmp_path: Path) -> None:
    """One table, the best first, and a page with a plot."""
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


def test_a_sweep_goes_on_where_it_was_killed(scenario: str, tmp_path: Path) -> None:
    """Points with a result are not run again, and one that was cut off is."""
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
        ("scenario.spec.nodes[9].count=1", "there is no 9 on the way"),
        ("scenario.spec.nodes[0].count=many", "scenario: Expected `int`, got `str`"),
        ("config.percentageOfNodesToScore=500", "percentageOfNodesToScore"),
    ],
)
def test_fields_that_cannot_be_set_are_named(scenario: str, tmp_path: Path, vary: str, problem: str) -> None:
    """Before anything runs."""
    ran = _sweep(scenario, tmp_path / "out", "--vary", vary)
    assert ran.exit_code == 1
    assert problem in ran.output


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
    """All points are done, and as one process would have done them."""
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
                output, _ = sweep.communicate(timeout=120)
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
def test_an_address_at_which_nobody_answers(scenario: str, tmp_path: Path, flag: str, scheme: str) -> None:
    """Is told at once, and nothing is written."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{nobody.getsockname()[1]}"
        ran = CliRunner().invoke(main, ["sweep", scenario, "--out", str(tmp_path / "out"), flag, address])
    assert ran.exit_code == 1
    assert f"Error: {flag} {address}: nobody answers there: Connection refused" in ran.output
    assert not (tmp_path / "out").exists()


def test_a_point_with_another_plugin_is_another_point() -> None:
    """A sweep that goes on does not take what an earlier version of a plugin came to for its own."""
    point = Point({"seed": 1}, Scenario(Spec()), "", ("p.py",), ("1",))
    assert point.id == replace(point).id
    assert point.id != replace(point, plugin_digests=("2",)).id


def _results(out: Path) -> int:
    return (out / POINTS).read_bytes().strip().count(b"\n") if (out / POINTS).exists() else 0
