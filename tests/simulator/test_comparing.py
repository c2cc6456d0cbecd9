"""Two configurations on one scenario: what moved, why, and what it did to waits and packing."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubestow.cli import main

SCENARIO = """apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  duration: 30m
  nodes:
  - {count: 6, name: "node-{}", cpu: 8, memory: 32Gi}
  arrivals:
  - name: p
    pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3, memory: 4Gi}}}]}}
    poisson: {every: 30s}
    until: 20m
    run: {exponential: 5m}
"""
PACKING = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
"""
WEIGHT = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
      enabled: [{name: NodeResourcesBalancedAllocation, weight: 50}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A scenario and two configurations."""
    for name, text in (("s.yaml", SCENARIO), ("packing.yaml", PACKING), ("weight.yaml", WEIGHT)):
        (tmp_path / name).write_text(text)
    return tmp_path


def _compare(folder: Path, a: str, b: str, *more: str) -> Result:
    names = [one if one == "default" else str(folder / one) for one in (a, b)]
    return CliRunner().invoke(main, ["compare", *names, "--on", str(folder / "s.yaml"), "--seeds", "3", *more])


def test_a_configuration_does_not_differ_from_itself(folder: Path) -> None:
    """Nothing moves, and every difference is nought."""
    ran = _compare(folder, "default", "default", "-o", "json")
    assert ran.exit_code == 0, ran.output
    found = msgspec.json.decode(ran.output)
    assert all(moved == [] for moved in found["moved"].values())
    assert all(one["difference"] == one["margin"] == 0 for one in found["figures"])
    assert all(count > 25 for count in found["pods"].values())


def test_the_first_decision_that_moved_is_explained(folder: Path) -> None:
    """Both scores of both nodes, by plugin: under A its node wins, under B the other."""
    found = msgspec.json.decode(_compare(folder, "default", "packing.yaml", "-o", "json").output)
    assert all(len(moved) > 5 for moved in found["moved"].values())
    for one in found["first"].values():
        for side in ("a", "b"):
            scores, node = one[side]["totals"], one["moved"][side]
            assert scores.keys() == {one["moved"]["a"], one["moved"]["b"]}
            assert scores[node] == max(scores.values())
            assert sum(one[side]["plugins"][node].values()) == scores[node]
    assert {one["margin"] is not None for one in found["figures"]} == {True}


def test_a_weight_is_visible_as_the_decisions_it_moved(folder: Path) -> None:
    """The explanation shows the plugin's part under both weights."""
    ran = _compare(folder, "default", "weight.yaml")
    assert ran.exit_code == 0, ran.output
    lines = ran.output.splitlines()
    assert any("pods were placed differently" in line and not line.split(": ")[1].startswith("0 ") for line in lines)
    assert any(line.strip().startswith("B scores") and "NodeResourcesBalancedAllocation" in line for line in lines)


def test_the_comparison_is_written_as_a_page(folder: Path) -> None:
    """report.html and results.json."""
    ran = _compare(folder, "default", "packing.yaml", "--out", str(folder / "out"))
    assert ran.exit_code == 0, ran.output
    assert "placed differently" in (folder / "out" / "report.html").read_text()
    assert msgspec.json.decode((folder / "out" / "results.json").read_bytes())["seeds"] == [1, 2, 3]


def test_a_configuration_that_is_wrong_is_named(folder: Path) -> None:
    """With file and field."""
    (folder / "bad.yaml").write_text(PACKING.replace("MostAllocated", "Mostly"))
    ran = _compare(folder, "default", "bad.yaml")
    assert ran.exit_code == 1
    assert "bad.yaml: profiles[0]" in ran.output
