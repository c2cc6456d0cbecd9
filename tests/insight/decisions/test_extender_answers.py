"""Recorded answers of extenders are used when the details of a decision are derived."""

import json
from collections.abc import Sequence

from kubestow import config
from kubestow.api.codec import decode
from kubestow.api.node import Node
from kubestow.insight.decisions.reading import newest
from kubestow.scheduler.extenders.extender import Answer, Call
from kubestow.scheduler.extenders.whole_kinds import whole_kinds
from kubestow.testing import SchedulerHarness, make_pod
from support.insight.records import ROOM, archive_of, decisions, nodes_of

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: 'http://127.0.0.1/one', filterVerb: filter}
"""


def whole_node(name: str, heartbeat: str) -> Node:
    """Return a node with its complete JSON."""
    text = {
        "metadata": {"name": name, "uid": name, "resourceVersion": heartbeat[-3:-1]},
        "status": {
            "allocatable": {"cpu": "1", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}],
        },
    }
    return decode(whole_kinds(config.load(CONFIGURATION).extenders)[Node], json.dumps(text).encode())


async def leave_one(calls: Sequence[Call]) -> Sequence[Answer]:
    """Answer like an extender that keeps the first node."""
    bodies = [json.loads(b"".join(call.body)) for call in calls]
    return [json.dumps({"Nodes": {"items": body["Nodes"]["items"][:1]}}).encode() for body in bodies]


def test_a_heartbeat_of_a_node_that_is_sent_to_extenders() -> None:
    """A heartbeat is not in the history, so the derived request has another version of the node than the original."""
    with SchedulerHarness(CONFIGURATION, record_bytes=ROOM, ask=leave_one) as world:
        nodes = [whole_node(name, "2026-01-01T00:00:00Z") for name in ("n0", "n1")]
        for node in nodes:
            world.core.intake.added(node)
        world.cluster.add(make_pod("p"))
        world.run_for(1.0)
        (before,) = decisions(world, "p")
        world.core.intake.updated(nodes[0], whole_node("n0", "2026-01-01T00:00:10Z"))
        assert decisions(world, "p") == [before]
    assert (before.feasible, len(nodes_of(before))) == (1, 2)


def test_fewer_decisions_with_extenders_are_searched_for_a_rejected_node() -> None:
    """All nodes must be evaluated for each of them, in the scheduler's own thread."""
    with SchedulerHarness(CONFIGURATION, record_bytes=ROOM, ask=leave_one) as world:
        world.core.intake.added(whole_node("n0", "2026-01-01T00:00:00Z"))
        for number in range(10):
            world.cluster.add(make_pod(f"p{number}"))
        world.run_for(1.0)
        records = list(archive_of(world))
    assert len(records) == 10
    assert list(newest(records, 199)) == records[:9]
    assert list(newest(records, 10)) == []
