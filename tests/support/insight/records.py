"""Helpers that make records like a recorder, and return the decisions of a harness."""

from typing import Any, cast

from msgspec.structs import replace

from kubestow.insight.decisions import schema
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.record import Record
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.outcome import Failed, SearchedNodes
from kubestow.scheduler.framework.results import Code
from kubestow.testing import SchedulerHarness, make_pod

ROOM = 1 << 24


def made(
    time: float,
    pod: str,
    uid: str,
    *,
    node: str = "",
    message: str = "",
    nominated_node: str = "",
    evaluated: int = 0,
    feasible: int = 0,
    seconds: float = 0.0,
) -> Record:
    """Return the record of a scheduled or an unschedulable pod."""
    namespace, name = pod.split("/")
    failed = None if node else Failed(Code.UNSCHEDULABLE, message, nominated_node=nominated_node)
    found = make_pod(name, namespace=namespace)
    return Record(
        id=0,
        info=PodInfo(replace(found, metadata=replace(found.metadata, uid=uid))),
        by=cast("Any", None),
        attempts=1,
        queued_since=0.0,
        initial_attempt=None,
        time=time,
        seconds=seconds,
        searched=SearchedNodes(0, evaluated=evaluated, feasible=feasible),
        node=node,
        failed=failed,
        permits={},
    )


def recorded(**options: Any) -> SchedulerHarness:
    """Return a harness that records its decisions."""
    return SchedulerHarness(record_bytes=ROOM, **options)


def archive_of(world: SchedulerHarness) -> Archive:
    """Return the recorded decisions of a harness."""
    assert world.decisions is not None
    return world.decisions


def decisions(world: SchedulerHarness, pod: str) -> list[schema.Decision]:
    """Return the decisions about one pod, oldest first."""
    archive = archive_of(world)
    return [archive.decision(record) for record in archive if record.name == pod][::-1]


def nodes_of(decision: schema.Decision) -> dict[str, schema.NodeResult]:
    """Return the details about nodes, which must exist."""
    assert isinstance(decision.nodes, dict)
    return decision.nodes
