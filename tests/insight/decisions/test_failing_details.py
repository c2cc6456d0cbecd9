"""A failure while a past decision is evaluated again breaks neither the scheduler nor a page."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from kubestow.insight.decisions.log import DecisionLog
from kubestow.insight.decisions.reading import Query, read
from kubestow.insight.decisions.record import Record
from kubestow.insight.page.decisions import Recorded
from kubestow.plugin import unschedulable
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import Rejection, Rejections
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.records import archive_of, recorded


class Once:
    """A plugin that can only be created once, like one that opens a port or a file."""

    name = "Once"
    pure = True
    count = 0

    def __init__(self, args: Any, handle: Any) -> None:
        Once.count += 1
        if Once.count > 1:
            raise OSError("the port is in use")

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        return unschedulable("reserved") if node.name == "n0" else None


class FailsOnMessage:
    """A plugin that fails to build the message of a rejection a second time."""

    name = "FailsOnMessage"
    reads_pods = PodsRead.NOTHING
    pure = True
    is_silent = False

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter_rows(self, state: Any, pod: Any, view: Any, rows: Any) -> Rejections:
        return Rejections(np.ones(len(view.pod_count[rows]), np.int64), self._words)

    def _words(self, kind: int) -> Rejection:
        if self.is_silent:
            raise RuntimeError("no message")
        return unschedulable("reserved")


def world_of(plugin: type) -> SchedulerHarness:
    """Return a harness with a plugin, without pods."""
    Once.count, FailsOnMessage.is_silent = 0, False
    world = recorded(plugins=[plugin])
    for name in ("n0", "n1"):
        world.cluster.add(make_node(name, cpu="1"))
    return world


@pytest.mark.parametrize(
    ("plugin", "text"), [(Once, "the port is in use"), (FailsOnMessage, "no message")], ids=lambda value: str(value)[:8]
)
def test_what_readers_get(plugin: type, text: str) -> None:
    """Readers get the decision without details, and the reason why these are missing."""
    with world_of(plugin) as world:
        world.cluster.add(make_pod("p", cpu="100m"))
        world.run_for(0.1)
        FailsOnMessage.is_silent = True
        archive = archive_of(world)
        decision, *_ = read(archive, Query(nodes=True)).items
        assert (decision.pod, decision.nodes) == ("default/p", {})
        assert text in decision.nodesDropped
        assert read(archive, Query(refusedNode="n0")).items == []
        assert Recorded(archive).refusals("n0", 1e12) == []


@pytest.mark.parametrize("plugin", [Once, FailsOnMessage])
def test_the_scheduler_continues(plugin: type, tmp_path: Path) -> None:
    """A log with details derives them right after each cycle, in the scheduling loop."""
    with world_of(plugin) as world:
        archive = archive_of(world)
        log = DecisionLog(archive, str(tmp_path / "log"), size=0, backups=0, nodes=True)

        def follow(record: Record) -> None:
            assert not Query(refusedNode="n0").matches(record, archive.details())

        archive.recorder.listeners.append(follow)
        FailsOnMessage.is_silent = True
        for name in ("a", "b"):
            world.cluster.add(make_pod(name, cpu="100m"))
            world.run_for(0.1)
        log.close()
    lines = [msgspec.json.decode(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    assert {line["pod"] for line in lines} == {"default/a", "default/b"}
