"""decisions.jsonl: the decisions of a simulation with their nodes, in the schema of live decisions."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kubestow.cli import main
from kubestow.insight.decisions.schema import Decision

SCENARIO = """apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  duration: 10m
  nodes:
  - {count: 6, name: "node-{}", cpu: 4, memory: 32Gi}
  arrivals:
  - name: p
    pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}}
    times: [10, 11, 12, 13, 14, 15, 16, 599.993]
    run: 5m
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Eight pods for six nodes; the last one is being bound at the end of the run."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    return path


def _decisions(scenario: Path, *options: str) -> list[Decision]:
    out = scenario.parent / "out"
    ran = CliRunner().invoke(main, ["simulate", str(scenario), "--out", str(out), *options])
    assert ran.exit_code == 0, ran.output
    return [msgspec.json.decode(line, type=Decision) for line in (out / "decisions.jsonl").read_bytes().splitlines()]


def _nodes(decision: Decision) -> dict[str, Any]:
    assert isinstance(decision.nodes, dict)
    return decision.nodes


def test_a_decision_has_the_score_of_every_node(scenario: Path) -> None:
    """By plugin; the chosen node has the highest one. Rejected nodes have their plugin, and the binding its result."""
    first, second, *_ = _decisions(scenario)
    assert _nodes(first).keys() == {f"node-{number}" for number in range(6)}
    for decision in (first, second):
        nodes = _nodes(decision)
        assert decision.chosen is not None
        totals = {name: one.total for name, one in nodes.items() if one.total is not None}
        assert totals[decision.chosen] == max(totals.values()) == sum(nodes[decision.chosen].plugins.values())
        assert decision.binding is not None
        assert decision.binding.state == "bound"
        assert decision.seconds == 0
    assert [one.rejected.plugin for one in _nodes(second).values() if one.rejected] == ["NodeResourcesFit"]


def test_unschedulable_pods_and_unfinished_bindings_are_written(scenario: Path) -> None:
    """The seventh pod is rejected by all nodes and then pending; the eighth has a node and no binding yet."""
    decisions = _decisions(scenario)
    refused = next(one for one in decisions if one.outcome == "unschedulable")
    assert (refused.pod, refused.rejectedBy, len(_nodes(refused))) == ("default/p-6", ("NodeResourcesFit",), 6)
    last = decisions[-1]
    assert last.binding is not None
    assert (last.pod, last.binding.state) == ("default/p-7", "binding")


@pytest.mark.parametrize(("count", "nodes"), [("3", 3), ("0", 0)])
def test_the_number_of_nodes_can_be_limited(scenario: Path, count: str, nodes: int) -> None:
    """The best nodes, and the number of omitted ones; or none."""
    first = _decisions(scenario, "--decision-nodes", count)[0]
    assert (len(_nodes(first)) if isinstance(first.nodes, dict) else 0) == nodes
    assert first.nodesCut == 6 - nodes


def test_time_in_plugins_on_request(scenario: Path) -> None:
    """The report has it with --timings only, and says so; the work of plugins is always included."""
    page = scenario.parent / "out" / "report.html"
    _decisions(scenario)
    assert "Not measured, so that" in page.read_text()
    assert "Work of plugins" in page.read_text()
    timed = _decisions(scenario, "--timings")
    assert "Measured on the machine that ran the simulation" in page.read_text()
    assert all(one.seconds > 0 for one in timed)


@pytest.mark.parametrize("command", ["simulate", "replay"])
@pytest.mark.parametrize("flag", ["--timings", "--decision-nodes=10"])
def test_flags_without_effect(scenario: Path, command: str, flag: str) -> None:
    """Without --out they would have no effect."""
    ran = CliRunner().invoke(main, [command, str(scenario), flag])
    assert ran.exit_code == 2
    assert f"{flag.partition('=')[0]}: has no effect without --out, the folder of reports and decisions" in ran.output


def test_only_nodes_that_are_written_are_named_as_the_best(scenario: Path) -> None:
    """In a large cluster of equal nodes, their names would be the longest part of a line."""
    first, *_ = _decisions(scenario, "--decision-nodes", "2")
    assert first.choice is not None
    assert (first.choice.reason, first.nodesCut) == ("random", 4)
    assert set(first.choice.best) == _nodes(first).keys()
    assert first.chosen in first.choice.best
