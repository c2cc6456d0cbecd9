"""Comparison of two configurations on one scenario: moved pods, reasons, and effects on waits and packing."""

import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubestow import __version__
from kubestow.cli import main
from kubestow.insight.decisions.moved import pair_pods

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
PLUGIN = """from kubestow.plugin import PodInfo


class Likes:
    name = "Likes"

    def __init__(self, args, handle):
        pass

    def score(self, state, pod: PodInfo, node) -> int:
        return 100 if node.name == "BEST" else 0
"""
LIKES = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Likes, weight: 100}]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A scenario and two configurations."""
    for name, text in (("s.yaml", SCENARIO), ("packing.yaml", PACKING), ("weight.yaml", WEIGHT)):
        (tmp_path / name).write_text(text)
    return tmp_path


def _compare(folder: Path, a: str, b: str, *more: str) -> Result:
    names = [one if one == "default" else str(folder / one) for one in (a, b)]
    given = [argument for name in names for argument in ("--config", name)]
    return CliRunner().invoke(main, ["compare", str(folder / "s.yaml"), *given, "--seeds", "3", *more])


def test_a_configuration_does_not_differ_from_itself(folder: Path) -> None:
    """No pod moves, and every difference is 0."""
    ran = _compare(folder, "default", "default", "-o", "json")
    assert ran.exit_code == 0, ran.output
    found = msgspec.json.decode(ran.output)
    assert all(moved == [] for moved in found["moved"].values())
    assert all(one["difference"] == one["margin"] == 0 for one in found["figures"])
    assert all(count > 25 for count in found["pods"].values())


def test_notes_of_runs_are_reported(folder: Path) -> None:
    """Once, however many runs have the same note."""
    (folder / "s.yaml").write_text(f"{SCENARIO}  events: [{{at: 1h, fail: {{count: 1}}}}]\n")
    ran = _compare(folder, "default", "default")
    assert ran.output.count("Note: ") == ran.output.count("spec.events[0].at: does not happen") == 1
    assert len(msgspec.json.decode(_compare(folder, "default", "default", "-o", "json").output)["notes"]) == 1


def test_every_pod_that_moved_is_explained(folder: Path) -> None:
    """Grouped by reason over all seeds, with the scores of both sides on both nodes for the first pod of each group."""
    found = msgspec.json.decode(_compare(folder, "default", "packing.yaml", "-o", "json").output)
    moved = [one for pods in found["moved"].values() for one in pods]
    assert len(moved) > 15
    assert Counter(one["why"] for one in moved) == {one["why"]: one["pods"] for one in found["causes"]}
    by_score = next(one for one in found["causes"] if one["why"] == "NodeResourcesFit scores the nodes differently")
    nodes = {by_score["first"]["a"], by_score["first"]["b"]}
    for side in ("a", "b"):
        scores, node = by_score[side], by_score["first"][side]
        assert scores["totals"].keys() == nodes
        assert scores["totals"][node] == max(scores["totals"].values()) == sum(scores["plugins"][node].values())
    assert {one["margin"] is not None for one in found["figures"]} == {True}


REPLACED = """apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  duration: 30m
  nodes: [{count: 6, cpu: 8, memory: 32Gi}]
  events:
  - {at: 2m, remove: {names: [node-0]}}
  - {at: 9m, remove: {names: [node-1]}}
  - {at: 20m, remove: {names: [node-2]}}
"""
DEPLOYMENT = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 7
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1, memory: 2Gi}}}]}
"""


def test_replacements_are_matched_though_their_names_differ(folder: Path) -> None:
    """Each side loses other pods of two Deployments, so that their replacements have different names."""
    (folder / "s.yaml").write_text(REPLACED + "".join(DEPLOYMENT.replace("NAME", name) for name in ("web", "db")))
    spreading = "  plugins: {score: {disabled: [{name: PodTopologySpread}]}}\n"
    (folder / "packing.yaml").write_text(PACKING + spreading)
    ran = _compare(folder, "default", "packing.yaml", "-o", "json", "--out", str(folder / "out"))
    found = msgspec.json.decode(ran.output)
    for seed, moved in found["moved"].items():
        pods = [_pods_by_owner(folder / f"out/seed-{seed}/{side}/decisions.jsonl") for side in "ab"]
        sizes = [[len(side[owner]) for side in pods] for owner in pods[0]]
        assert found["pods"][seed] == sum(map(max, sizes))
        assert sum("the pod does not exist" in one["why"] for one in moved) == sum(abs(a - b) for a, b in sizes)
    renamed = [one for moved in found["moved"].values() for one in moved if one["renamed"]]
    assert renamed
    assert all(one["a"] and one["b"] for one in renamed)
    assert f"{renamed[0]['pod']} ({renamed[0]['renamed']} under B)" in (folder / "out/report.html").read_text()


def _pods_by_owner(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in map(msgspec.json.decode, path.read_text().splitlines()):
        found.setdefault(line["owner"], set()).add(line["pod"])
    return found


@pytest.mark.parametrize(
    ("a", "b", "pairs"),
    [
        ({"d/x": ""}, {"d/x": ""}, [("d/x", "d/x")]),
        ({"d/x": ""}, {"d/y": ""}, [("d/x", ""), ("", "d/y")]),
        (
            {"d/w-aaaaa": "ReplicaSet/w", "d/w-bbbbb": "ReplicaSet/w", "d/w-ccccc": "ReplicaSet/w"},
            {"d/w-bbbbb": "ReplicaSet/w", "d/w-ddddd": "ReplicaSet/w"},
            [("d/w-aaaaa", "d/w-ddddd"), ("d/w-bbbbb", "d/w-bbbbb"), ("d/w-ccccc", "")],
        ),
        ({"d/w-0-aaaaa": "Job/w"}, {"d/w-1-bbbbb": "Job/w"}, [("d/w-0-aaaaa", ""), ("", "d/w-1-bbbbb")]),
        ({"d/w-aaaaa": "ReplicaSet/w"}, {"e/w-bbbbb": "ReplicaSet/w"}, [("d/w-aaaaa", ""), ("", "e/w-bbbbb")]),
        ({"d/w-aaaaa": "DaemonSet/w"}, {"d/w-bbbbb": "DaemonSet/w"}, [("d/w-aaaaa", ""), ("", "d/w-bbbbb")]),
        ({"d/w-10": "StatefulSet/w"}, {"d/w-11": "StatefulSet/w"}, [("d/w-10", ""), ("", "d/w-11")]),
    ],
)
def test_pods_of_both_sides_are_paired(a: dict[str, str], b: dict[str, str], pairs: list[tuple[str, str]]) -> None:
    """By name; generated names by owner and order; every pod once."""
    assert pair_pods(a, b) == pairs


def test_a_changed_weight_explains_moved_pods(folder: Path) -> None:
    """The moved pods are counted, and one shows the plugin's share under both weights."""
    ran = _compare(folder, "default", "weight.yaml")
    assert ran.exit_code == 0, ran.output
    lines = ran.output.splitlines()
    assert any("pods were placed differently" in line and not line.split(": ")[1].startswith("0 ") for line in lines)
    weight = "weight of NodeResourcesBalancedAllocation: 1 under A, 50 under B"
    place = next(number for number, line in enumerate(lines) if line.endswith(f" moved: {weight}"))
    assert any("B scores" in line and "NodeResourcesBalancedAllocation" in line for line in lines[place : place + 6])


def test_plugin_files_of_the_two_may_differ(folder: Path) -> None:
    """Two files with a plugin of the same name: the second one prefers other nodes."""
    for name, best in (("old", "node-1"), ("new", "node-2")):
        (folder / f"{name}.py").write_text(PLUGIN.replace("BEST", best))
    (folder / "likes.yaml").write_text(LIKES)
    plugins = ("--plugin-a", str(folder / "old.py"), "--plugin-b", str(folder / "new.py"))
    ran = _compare(folder, "likes.yaml", "likes.yaml", "-o", "json", *plugins)
    assert ran.exit_code == 0, ran.output
    found = msgspec.json.decode(ran.output)
    first = found["moved"]["1"][0]
    assert (first["a"], first["b"], first["why"]) == ("node-1", "node-2", "Likes scores the nodes differently")


def test_a_side_may_run_in_another_interpreter(folder: Path) -> None:
    """The same version gives the same decisions; its errors are reported."""
    ran = _compare(folder, "packing.yaml", "packing.yaml", "--python-b", sys.executable)
    assert ran.exit_code == 0, ran.output
    assert f"B: {folder / 'packing.yaml'} (kubestow {__version__} of {sys.executable})" in ran.output
    assert ran.output.count(": 0 of ") == 3
    ran = _compare(folder, "default", "missing.yaml", "--python-b", sys.executable)
    assert ran.exit_code == 1
    assert f"Error: {sys.executable}: {folder / 'missing.yaml'}: cannot be read" in ran.output


def test_results_of_another_format_version_are_rejected(folder: Path) -> None:
    """Instead of being misread."""
    fake = folder / "python"
    fake.write_text(
        "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\nmkdir -p $1\n"
        """echo '{"version": 9, "complete": true, "kubestow": "9"}' > $1/results.json; : > $1/decisions.jsonl\n"""
    )
    fake.chmod(0o755)
    ran = _compare(folder, "default", "default", "--python-b", str(fake))
    assert ran.exit_code == 1
    assert "seed-1/b: only results of version 1" in ran.output


def test_the_comparison_is_written_as_a_page(folder: Path) -> None:
    """report.html and results.json."""
    ran = _compare(folder, "default", "packing.yaml", "--out", str(folder / "out"))
    assert ran.exit_code == 0, ran.output
    assert "placed differently" in (folder / "out" / "report.html").read_text()
    assert msgspec.json.decode((folder / "out" / "results.json").read_bytes())["seeds"] == [1, 2, 3]


def test_an_invalid_configuration_is_named(folder: Path) -> None:
    """With file and field."""
    (folder / "bad.yaml").write_text(PACKING.replace("MostAllocated", "Mostly"))
    ran = _compare(folder, "default", "bad.yaml")
    assert ran.exit_code == 1
    assert "bad.yaml: profiles[0]" in ran.output


def test_an_interrupted_comparison(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C the finished runs remain, without the files of a comparison."""

    def stopped(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kubestow.cli.simulate.compare.run", stopped)
    out = str(folder / "out")
    ran = _compare(folder, "default", "default", "--out", out)
    assert ran.exit_code == 130
    assert ran.output == f"Stopped: nothing was compared; the completed runs are in {out}.\n"
