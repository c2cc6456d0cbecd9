"""`kubestow explain` about pod groups of a live cluster: the scheduler's own record, and what would help."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli.explain_files import gang, pod, refused, run_explain
from support.cli.up_running import Up
from support.polling import until
from support.scenarios.gangs import GATES

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"


def members(group: str, count: int, cpu: str) -> list[dict[str, Any]]:
    return [pod(f"{group}-{number}", cpu, schedulingGroup={"podGroupName": group}) for number in range(count)]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two nodes in each of two racks, a gang that runs, one that is too large, and one that is not complete."""
    folder = tmp_path_factory.mktemp("up")
    nodes = folder / "nodes.yaml"
    racks = [f'- {{name: "{rack}-{{}}", count: 2, cpu: 8, labels: {{rack: {rack}}}}}' for rack in ("a", "b")]
    nodes.write_text("\n".join(["nodes:", *racks]))
    gates = ",".join(f"{gate}=true" for gate in GATES)
    started = Up(folder, "--nodes-file", str(nodes), f"--feature-gates={gates}")
    for name, least, cpu, count in (("runs", 2, "1", 2), ("train", 4, "6", 4), ("late", 3, "1", 1)):
        started.create(GROUPS, gang(name, least, "default", topology="rack"))
        for one in members(name, count, cpu):
            started.create(PODS, one)
    started.pods_when("Running", 2)
    until(lambda: started.get(f"{GROUPS}/train").get("status", {}).get("conditions"))
    yield started
    started.stop()


def explain(up: Up, *arguments: str) -> Any:
    done = run_explain(*arguments, "-o", "json", "--kubeconfig", str(up.kubeconfig))
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_a_group_that_was_placed(up: Up) -> None:
    """When it was tried, which placements were, and where its pods went."""
    decision = explain(up, "podgroup/runs")
    assert (decision["source"], decision["outcome"]) == ("scheduler", "scheduled")
    assert decision["chosen"] == {
        f"default/runs-{number}": up.get(f"{PODS}/runs-{number}")["spec"]["nodeName"] for number in range(2)
    }
    assert {one["name"] for one in decision["placements"]} == {"a", "b"}
    screen = run_explain("podgroup/runs", "--kubeconfig", str(up.kubeconfig)).output
    assert screen.startswith(f"Pod group default/runs was placed in {decision['placement']}.\n  Tried last at 20")
    assert max(map(len, screen.splitlines())) <= 80


def test_a_group_that_waits(up: Up) -> None:
    """The scheduler says what stopped it; what would help was tried on the objects that the caller may read."""
    decision = explain(up, "podgroup/train")
    assert (decision["source"], decision["outcome"], decision["missing"], min(decision["members"])) == (
        "scheduler",
        "unschedulable",
        2,
        "default/train-0",
    )
    assert {one["change"] for one in decision["wouldFitIf"]} >= {"topology constraint rack removed"}
    one = explain(up, "train-0")
    assert (one["source"], one["podGroup"], one["placement"]) == (
        "scheduler",
        "default/train",
        {"name": "a", "nodes": 2},
    )
    assert set(one["nodes"]) == {"a-0", "a-1"}
    assert not [note for note in one["notes"] if "would fit now" in note]
    screens = [run_explain(f"train-{number}", "--kubeconfig", str(up.kubeconfig)).output for number in range(4)]
    first_lines = [screen.splitlines()[0].partition(" is pending: ")[2] for screen in screens]
    assert sorted(first_lines) == ["it fits nowhere on 4 nodes."] + ["it waits for its pod group."] * 3
    screen = screens[2]
    assert "       2  not evaluated: outside a, where its pod group was tried\n" in screen
    outside = run_explain("train-2", "--node", "b-0", "--kubeconfig", str(up.kubeconfig)).output
    assert "  was not evaluated: outside a, where its pod group was tried.\n" in outside


def test_a_group_that_was_not_tried_yet(up: Up) -> None:
    """The scheduler knows nothing of it, so it is tried here."""
    decision = explain(up, "podgroup/late")
    assert (decision["source"], decision["message"]) == ("dry run", "the gang waits for 2 more pods to be created")
    assert "has no record of it: no decision about pod group default/late is recorded" in decision["notes"][0]


def test_against_a_rack_it_is_a_dry_run(up: Up) -> None:
    """Of a group that runs already, nothing can be tried."""
    assert explain(up, "podgroup/train", "--against", "b")["source"] == "dry run"
    said = refused("podgroup/runs", "--against", "b", "--kubeconfig", str(up.kubeconfig))
    assert said == ["Error: pod group default/runs has no pending pods; 2 have a node"]


def test_a_group_of_a_manifest_at_the_live_cluster(up: Up, tmp_path: Path) -> None:
    """Pods that would join a group of the cluster are tried with it."""
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": members("late", 3, "1")[1:]}))
    decision = explain(up, "-f", str(path))
    assert (decision["podGroup"], decision["outcome"], decision["pods"]) == ("default/late", "scheduled", 3)
