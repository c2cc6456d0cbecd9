"""The lines `kubestow up` writes where there is no terminal."""

from collections import deque
from typing import Any

import pytest

from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change, Record, encode
from kubestow.cli.up.lines import Lines
from kubestow.insight.decisions.record import Record as Decision
from kubestow.scheduler.binding.binder import Step
from kubestow.scheduler.cycle.outcome import Failed
from kubestow.scheduler.framework.results import Code
from support.insight.records import made

Decisions = deque[Decision]
"""Newest first."""


@pytest.fixture
def decisions() -> Decisions:
    return deque()


@pytest.fixture
def lines(decisions: Decisions) -> Lines:
    return Lines(decisions)


def taken(lines: Lines) -> list[str]:
    """Return the lines to show, without the time of day."""
    return [line.partition(" ")[2] for line in lines.take()]


def rejected(message: str, time: float = 1.0) -> Decision:
    return made(time, "default/a", "uid-a", message=message)


def stored(storage: str, name: str, **more: Any) -> Record:
    namespace = {"namespace": "default"} if storage == "pods" else {}
    obj = {"metadata": {"name": name, "uid": f"uid-{name}", **namespace}, **more}
    return Record(BY_STORAGE[storage], obj, 1, encode(obj))


def test_decisions_are_shown_once_and_in_order(lines: Lines, decisions: Decisions) -> None:
    """Each refresh shows only what has come since the last one."""
    decisions.appendleft(rejected("no room"))
    decisions.appendleft(made(2.0, "default/b", "uid-b", node="node-1", evaluated=10, feasible=4))
    assert taken(lines) == [
        "pod default/a: unschedulable: no room",
        "pod default/b: goes to node-1, chosen from 4 of 10 nodes",
    ]
    assert taken(lines) == []
    decisions.appendleft(made(3.0, "default/c", "uid-c", nominated_node="node-2", message="no room"))
    assert taken(lines) == ["pod default/c: unschedulable: no room; nominated to node-2"]


def test_the_same_reason_is_not_repeated(lines: Lines, decisions: Decisions) -> None:
    """A pod tried again and again in vain gets one line; another reason gets another."""
    for message in ("no room", "no room", "less room", "less room"):
        decisions.appendleft(rejected(message))
    assert [line.rpartition(": ")[2] for line in taken(lines)] == ["no room", "less room"]
    decisions.appendleft(rejected("less room"))
    assert taken(lines) == []


def test_pods_that_start_and_end_are_shown(lines: Lines) -> None:
    """A change of phase is news, other changes are not."""
    pending = stored("pods", "a", status={"phase": "Pending"})
    bound = stored("pods", "a", spec={"nodeName": "n"}, status={"phase": "Pending"})
    running = stored("pods", "a", spec={"nodeName": "n"}, status={"phase": "Running"})
    lines.pod_changed(Change("ADDED", pending, None))
    lines.pod_changed(Change("MODIFIED", bound, pending))
    lines.pod_changed(Change("MODIFIED", running, bound))
    lines.pod_changed(Change("DELETED", running, running))
    assert taken(lines) == ["pod default/a: Running on n", "pod default/a: gone"]


def test_nodes_that_are_added_removed_or_cordoned_are_shown(lines: Lines) -> None:
    """Heartbeats and the like are not."""
    open_, closed = stored("nodes", "n"), stored("nodes", "n", spec={"unschedulable": True})
    for change in (
        Change("ADDED", open_, None),
        Change("MODIFIED", open_, open_),
        Change("MODIFIED", closed, open_),
        Change("MODIFIED", open_, closed),
        Change("DELETED", open_, open_),
    ):
        lines.node_changed(change)
    assert taken(lines) == ["node n: added", "node n: cordoned", "node n: uncordoned", "node n: removed"]


def test_a_pod_at_a_permit_wait_is_shown_as_waiting(lines: Lines, decisions: Decisions) -> None:
    """Then as placed, or as rejected, with the reason."""
    placed, refused = (made(1.0, f"default/{name}", name, node="n", evaluated=3, feasible=2) for name in "ab")
    for record in (placed, refused):
        record.permits = {"Gate": 10.0, "Quota": 5.0}
        decisions.appendleft(record)
    assert taken(lines) == [f"pod default/{name}: waits for Gate, Quota to go to n" for name in "ab"]
    assert taken(lines) == []
    placed.steps = (Step("WaitOnPermit", "Gate", 0.0, 1.0),)
    refused.binding_failed = Failed(Code.UNSCHEDULABLE, "no quota")
    assert taken(lines) == [
        "pod default/a: goes to n, chosen from 2 of 3 nodes",
        "pod default/b: unschedulable: no quota",
    ]
    assert taken(lines) == []
