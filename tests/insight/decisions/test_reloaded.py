"""Decisions are explained with the configuration at their time, not with the current one."""

import json
from collections.abc import Sequence

from kubestow import config
from kubestow.scheduler.extenders.extender import Answer, Call
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.records import ROOM, archive_of, decisions, nodes_of
from support.scenarios.gangs import add_gang, features

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: 'http://127.0.0.1/one', filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true}
"""


async def ask(calls: Sequence[Call]) -> Sequence[Answer]:
    """Answer like an extender that keeps two nodes and prefers the last one."""

    def answer(call: Call) -> bytes:
        names = json.loads(b"".join(call.body))["NodeNames"]
        if call.verb == "filter":
            return json.dumps({"NodeNames": [name for name in names if name in ("n0", "n1")]}).encode()
        return json.dumps([{"Host": name, "Score": number} for number, name in enumerate(names)]).encode()

    return [answer(call) for call in calls]


def configure(world: SchedulerHarness, text: str) -> None:
    """Replace the extenders, like a reload."""
    world.core.extenders.configure(config.load(text).extenders, world.core.cluster.nodes)


def test_extenders_that_were_replaced_or_removed() -> None:
    """Their answers are still part of the details."""
    with SchedulerHarness(CONFIGURATION, record_bytes=ROOM, ask=ask) as world:
        for number in range(4):
            world.cluster.add(make_node(f"n{number}", cpu="1"))
        world.cluster.add(make_pod("p", cpu="1m"))
        world.run_for(1.0)
        (before,) = decisions(world, "p")
        configure(world, CONFIGURATION.replace("/one", "/two"))
        assert decisions(world, "p") == [before]
        configure(world, CONFIGURATION[: CONFIGURATION.index("extenders:")])
        assert decisions(world, "p") == [before]
    assert (before.evaluated, before.feasible, len(nodes_of(before))) == (4, 2, 4)
    assert {call.url for call in before.extenders} == {"http://127.0.0.1/one"}


def test_extenders_that_were_added() -> None:
    """They do not affect earlier decisions."""
    with SchedulerHarness(record_bytes=ROOM, ask=ask) as world:
        for number in range(4):
            world.cluster.add(make_node(f"n{number}", cpu="1"))
        world.cluster.add(make_pod("p", cpu="1m"))
        world.run_for(1.0)
        (before,) = decisions(world, "p")
        configure(world, CONFIGURATION)
        assert decisions(world, "p") == [before]
    assert (before.feasible, len(nodes_of(before)), before.extenders) == (4, 4, ())


def test_a_group_whose_extenders_were_removed() -> None:
    """The reasons of its pods depend on the nodes that the extenders kept, not on all nodes."""
    with SchedulerHarness(CONFIGURATION, record_bytes=ROOM, ask=ask, features=features()) as world:
        for number in range(4):
            world.cluster.add(make_node(f"n{number}", cpu="1"))
        add_gang(world, "a", 3, cpu="1")
        world.run_for(1.0)
        archive = archive_of(world)
        record = next(iter(archive.recorder.groups))
        before = archive.group_decision(record)
        configure(world, CONFIGURATION[: CONFIGURATION.index("extenders:")])
        assert archive.group_decision(record) == before
    (placement,) = before.placements
    assert (placement.placed, len(placement.reasons)) == (2, 1)
