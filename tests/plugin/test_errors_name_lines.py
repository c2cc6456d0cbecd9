"""The failure of a plugin names file and line wherever an author looks; conditions have kube-scheduler's text."""

import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubestow import config
from kubestow.cli import main
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import explained
from kubestow.insight.explain.world import Setup, World
from kubestow.plugin import Handle, NodeRow, PodInfo
from kubestow.scheduler.framework import caller
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.simulator.in_memory.harness import configured
from kubestow.testing import SchedulerHarness, make_node, make_pod


class Breaks:
    """Looks up what is missing."""

    name = "Breaks"

    def __init__(self, args: None, handle: Handle) -> None: ...

    def filter(self, state: None, pod: PodInfo, node: NodeRow) -> str | None:
        missing: dict[str, str] = {}
        return missing["nope"]


class AnswersWrongly(Breaks):
    name = "AnswersWrongly"

    def filter(self, state: None, pod: PodInfo, node: NodeRow) -> Any:
        return 7


LINE = f"{__file__}:{Breaks.filter.__code__.co_firstlineno + 2}"
DEFINITION = f"{__file__}:{AnswersWrongly.filter.__code__.co_firstlineno}"
BROKEN = "running Filter plugin \"Breaks\": KeyError('nope')"
WRONG = 'running Filter plugin "AnswersWrongly": filter must return a reason (str), a Rejection or None, not int'


@pytest.mark.parametrize(("plugin", "message", "line"), [(Breaks, BROKEN, LINE), (AnswersWrongly, WRONG, DEFINITION)])
def test_an_event_has_file_and_line(plugin: type, message: str, line: str) -> None:
    """The condition of the pod, which kube-scheduler defines, has not."""
    with SchedulerHarness(plugins=[plugin]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p"))
        harness.run_for(0.5)
        assert harness.events.about("p")[0].note == f"{message} ({line})"
        assert harness.cluster.conditions("p")["PodScheduled"].message == message


def test_an_explanation_has_file_and_line() -> None:
    """A dry run says where the plugin failed."""
    registry = in_tree_registry()
    registry.register("Breaks", Breaks)
    setup = Setup(configured(None, [Breaks], config.Features()), config.Features(), registry)
    world = World(setup, [make_node("n1")], 0)
    run = DryRun(world, PodInfo(make_pod("p")), None)
    assert explained(run, "", ()).decision.message == f"{BROKEN} ({LINE})"


PLUGIN = """
class Broken:
    name = "Broken"

    def __init__(self, args, handle):
        {constructor}

    def {method}(self, state, pod, node):
        {body}
"""


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"body": "return pod.missing"}, "AttributeError: 'PodInfo' object has no attribute 'missing'"),
        ({"constructor": "self.x = args['x']"}, "its constructor raises"),
        ({"method": "Filter"}, "Filter is never called: the method is named filter"),
    ],
)
def test_the_check_has_file_and_line(tmp_path: Path, parts: dict[str, str], message: str) -> None:
    """Also for a method that would never be called, and for the constructor."""
    file = tmp_path / "broken.py"
    file.write_text(PLUGIN.format(**{"constructor": "pass", "method": "filter", "body": "return None", **parts}))
    result = CliRunner().invoke(main, ["plugin", "check", str(file)])
    assert result.exit_code == 1
    assert f"({file}:" in result.output


class Slow(Breaks):
    name = "Slow"

    def filter(self, state: None, pod: PodInfo, node: NodeRow) -> str | None:
        return None


def test_a_slow_plugin_is_named_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With its time per pod, its line and the faster form."""
    monkeypatch.setattr(caller, "SLOW_SECONDS", -1.0)
    with SchedulerHarness(plugins=[Slow]) as harness, caplog.at_level(logging.WARNING):
        harness.cluster.add(make_node("n1"))
        for number in range(100):
            harness.cluster.add(make_pod(f"p{number}"))
        harness.run_until_idle()
    (line,) = [record.getMessage() for record in caplog.records if "Plugin is slow" in record.getMessage()]
    assert 'plugin="Slow" extensionPoint="Filter" millisecondsPerPod=0.0 nodes=1' in line
    assert "filter_rows evaluates all nodes at once" in line
