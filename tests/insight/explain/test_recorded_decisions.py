"""`kubestow explain` reproduces recorded decisions of kube-scheduler: rejections, scores and messages."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubestow.cli import main
from support.reference import case_file, with_cases

GATES = "SchedulerAsyncPreemption=false"
"""The feature gates with which the cases were recorded."""


FILES = (
    *("basic", "dra", "images", "interpod", "large", "mixed", "nodeaffinity", "nominated", "ports", "preemption"),
    *("profiles", "resources", "scoring", "services", "spread", "taints", "volumes"),
)


def cases(name: str) -> list[dict[str, Any]]:
    """Return the decisions in a file, without those whose configuration is invalid."""
    with gzip.open(case_file(name), "rt") as lines:
        found = [json.loads(line) for line in lines]
    return [case for case in found if "setupError" not in case]


def explained(case: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Return the command's output for the pods of a case, which are scheduled one after the other."""
    arguments = ["-o", "json", "--feature-gates", GATES]
    files = {"-f": {"apiVersion": "v1", "kind": "List", "items": case["pods"]}}
    files["--cluster"] = {"apiVersion": "v1", "kind": "List", "items": case["objects"]}
    if "config" in case:
        files["--config"] = case["config"]
    for option, content in files.items():
        path = folder / f"{option.strip('-')}.json"
        path.write_text(json.dumps(content))
        arguments += [option, str(path)]
    done = CliRunner().invoke(main, ["explain", *arguments])
    assert done.exit_code == 0, done.output
    output = json.loads(done.stdout)
    items: list[dict[str, Any]] = output.get("items", [output])
    return items


def in_command_format(expected: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded decision in the format of the command."""
    nodes: dict[str, Any] = {name: {"rejected": status} for name, status in expected.get("rejected", {}).items()}
    nodes |= expected.get("scores", {})
    return {
        "pod": expected["pod"],
        "outcome": "scheduled" if "chosen" in expected else "unschedulable",
        "chosen": expected.get("chosen"),
        "message": expected.get("message", ""),
        "nodes": nodes,
    }


def recorded_parts(decision: dict[str, Any], *, with_nodes: bool) -> dict[str, Any]:
    """Return the parts of the command's output that were recorded."""
    nodes: dict[str, Any] = {}
    for name, result in decision["nodes"].items() if with_nodes else ():
        if "rejected" in result:
            rejected = result["rejected"]
            nodes[name] = {"rejected": {**rejected, "reasons": sorted(rejected["reasons"])}}
        else:
            nodes[name] = {"total": result["total"], "plugins": result["plugins"]}
    return {field: decision[field] for field in ("pod", "outcome", "chosen", "message")} | {"nodes": nodes}


@with_cases
@pytest.mark.parametrize("name", FILES)
def test_the_command_reproduces_recorded_decisions(name: str, tmp_path: Path) -> None:
    """It has the same rejection or scores for each node, and the same message of the pod."""
    for case in cases(name):
        for decision, expected in zip(explained(case, tmp_path), case["expect"], strict=True):
            if "error" in expected:
                assert decision["outcome"] == "error", case["id"]
                continue
            # Rejections and scores of large clusters were not recorded.
            has_nodes = "feasibleCount" not in expected
            failed = any(status["code"] == "Error" for status in expected.get("rejected", {}).values())
            wanted, found = in_command_format(expected), recorded_parts(decision, with_nodes=has_nodes)
            if failed and "chosen" not in expected:
                wanted["outcome"] = "error"
            assert found == wanted, case["id"]
            assert decision.get("feasible", 0) == expected.get("feasibleCount", len(expected.get("feasible", ()))), (
                case["id"]
            )
