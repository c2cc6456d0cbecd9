"""Records of decisions about pod groups, and the details about nodes in records of their pods."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubestow.insight.decisions import schema
from kubestow.insight.decisions.groups import GroupRecord
from kubestow.insight.decisions.log import DecisionLog
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.records import archive_of, decisions, nodes_of, recorded
from support.scenarios.gangs import add_gang, add_nodes, features


def world_of_groups(**options: Any) -> SchedulerHarness:
    return recorded(features=features(), **options)


def about(world: SchedulerHarness, group: str) -> list[schema.GroupDecision]:
    """Return the decisions about one group, oldest first."""
    archive = archive_of(world)
    found = [archive.group_decision(record) for record in archive.recorder.groups]
    return [one for one in found if one.podGroup == f"default/{group}"][::-1]


@pytest.mark.parametrize("pods", [3, 5], ids=["tried", "counted"])
def test_a_scheduled_group(pods: int) -> None:
    """The decision has the nodes of its pods, the placement, and the number of pods that fit into each placement."""
    with world_of_groups() as world:
        add_nodes(world, 4, cpu="2", racks=2)
        world.cluster.add(make_node("large", cpu="1", labels={"rack": "small"}))
        add_gang(world, "a", pods, min_count=min(pods, 4), topology_key="rack")
        world.run_for(0.5)
        decision, *retried = about(world, "a")
        assert [one.outcome for one in retried] == ["unschedulable"] * (pods > 4)
        bound = world.bindings
    assert (decision.version, decision.outcome, decision.message) == (1, "scheduled", "")
    assert (decision.chosen, decision.placement in ("r0", "r1")) == (bound, True)
    assert decision.members == tuple(f"default/a{number}" for number in range(pods))
    assert (decision.minCount, decision.pods, decision.scheduled, decision.missing) == (min(pods, 4), pods, 0, 0)
    assert {one.name: (one.nodes, one.placed) for one in decision.placements} == {
        "r0": (2, min(pods, 4)),
        "r1": (2, min(pods, 4)),
        "small": (1, 1),
    }
    reasons = {one.name: [reason.partition(" preemption")[0] for reason in one.reasons] for one in decision.placements}
    assert reasons["small"] == ["0/1 nodes are available: 1 Insufficient cpu."]
    assert bool(reasons["r0"]) == (pods > 4)
    assert (decision.profile, decision.id, decision.uid != "") == ("default-scheduler", 1, True)
    assert decision.time.startswith("2026-01-01T00:00:0")


@pytest.mark.parametrize("pods", [3, 6], ids=["tried", "counted"])
@pytest.mark.parametrize("topology_key", ["", "rack"])
def test_an_unschedulable_group(pods: int, topology_key: str) -> None:
    """Each placement has its reasons; each pod has its placement and the rejections of its nodes."""
    with world_of_groups() as world:
        add_nodes(world, 4, cpu="1", racks=2)
        add_gang(world, "a", pods, cpu="1" if topology_key else "2", topology_key=topology_key)
        world.run_for(0.5)
        (decision,), pod_decisions = about(world, "a"), [decisions(world, f"a{number}")[0] for number in range(pods)]
        condition = world.cluster.conditions("a0")["PodScheduled"]
    placed = 2 if topology_key else 0
    assert (decision.outcome, decision.chosen, decision.placement) == ("unschedulable", {}, "")
    assert (decision.pods, decision.missing) == (pods, pods - placed)
    assert decision.rejectedBy == ("NodeResourcesFit",)
    count = 2 if topology_key else 4
    assert [one.name for one in decision.placements] == (["r0", "r1"] if topology_key else [""])
    for one in decision.placements:
        assert (one.nodes, one.placed) == (count, placed)
        assert one.reasons[0].startswith(f"0/{count} nodes are available: {count} Insufficient cpu.")
    within = schema.Placement("r0", 2) if topology_key else None
    for number, of_pod in enumerate(pod_decisions):
        assert (of_pod.podGroup, of_pod.outcome) == ("default/a", "unschedulable")
        if number > placed:
            # The group was given up after the first pod that did not fit.
            assert (of_pod.placement, nodes_of(of_pod), of_pod.evaluated) == (None, {}, 0)
            continue
        assert of_pod.placement == within
        nodes = nodes_of(of_pod)
        assert set(nodes) == ({"n0", "n2"} if topology_key else {"n0", "n1", "n2", "n3"})
        assert (of_pod.evaluated, of_pod.nodeCount) == (count, 4)
        rejected = [name for name, result in nodes.items() if result.rejected is not None]
        assert len(rejected) == (count if number >= placed else 0 if pods > 3 else number)
    assert pod_decisions[0].message == condition.message


@pytest.mark.parametrize("pods", [3, 6], ids=["tried", "counted"])
def test_nodes_outside_of_the_placement_are_not_listed(pods: int) -> None:
    """They are not listed even if every placement would reject them."""
    with world_of_groups() as world:
        add_nodes(world, 6, cpu="1", racks=2)
        for name, rack in (("n0", "r0"), ("n1", "r1")):
            world.cluster.update(make_node(name, cpu="1", labels={"rack": rack}, unschedulable=True))
        add_gang(world, "a", pods, cpu="1", topology_key="rack")
        world.run_for(0.5)
        found = decisions(world, "a0")[0]
    nodes = nodes_of(found)
    assert {name for name, one in nodes.items() if one.rejected is not None} == {"n0"}
    assert (set(nodes), found.evaluated, found.feasible) == ({"n0", "n2", "n4"}, 3, 2)


def test_a_pod_that_was_counted_has_no_scores() -> None:
    """No node was chosen, so no scores were needed."""
    with world_of_groups() as world:
        add_nodes(world, 4, cpu="1", racks=2)
        add_gang(world, "a", 6, cpu="1")
        world.run_for(0.5)
        found = decisions(world, "a0")[0]
    assert (found.feasible, found.weights) == (4, {})
    assert all(result.unscored and result.total is None for result in nodes_of(found).values())


def test_a_pod_has_the_nodes_at_its_attempt() -> None:
    """A pod of an unschedulable group has the state of nodes before the pods after it were placed."""
    with world_of_groups() as world:
        world.cluster.add(make_node("n", cpu="2", memory="1Gi"))
        add_gang(world, "a", 1, min_count=2, cpu="4")
        for name, cpu, memory in (("a1", "1", "64Mi"), ("a2", "4", "64Mi"), ("a3", "1", "2Gi")):
            world.cluster.add(make_pod(name, cpu=cpu, memory=memory, group="a"))
        world.run_for(0.5)
        results = {name: nodes_of(decisions(world, name)[0])["n"] for name in ("a0", "a1", "a2", "a3")}
    reasons = {name: one.rejected.reasons if one.rejected else () for name, one in results.items()}
    assert reasons == {
        "a0": ("Insufficient cpu",),
        "a1": (),
        "a2": ("Insufficient cpu",),
        "a3": ("Insufficient memory",),
    }


def test_a_group_that_preempts() -> None:
    """The decision has the victims, and the nominated node of each pod."""
    with world_of_groups() as world:
        add_nodes(world, 2, cpu="1")
        for number in range(2):
            world.cluster.add(make_pod(f"low{number}", cpu="1", node=f"n{number}", priority=1))
        add_gang(world, "a", 2, priority=10)
        world.run_until_idle()
        first, *_, last = about(world, "a")
    assert first.outcome == "unschedulable"
    assert {one.pod for one in first.victims} == {"default/low0", "default/low1"}
    assert set(first.nominated) == {"default/a0", "default/a1"}
    assert (last.outcome, last.chosen) == ("scheduled", first.nominated)


def test_pods_that_are_added_later() -> None:
    """Pods that have a node already count."""
    with world_of_groups() as world:
        add_nodes(world, 2, cpu="2")
        add_gang(world, "a", 3, min_count=2)
        world.run_until_idle()
        world.cluster.add(make_pod("late", cpu="9", group="a"))
        world.run_for(0.5)
        _, later = about(world, "a")
    assert (later.outcome, later.scheduled, later.pods, later.missing) == ("unschedulable", 3, 1, 1)


def test_the_limit_of_decisions_about_groups() -> None:
    """They take at most an eighth of the limit; the last decision of each pending group is dropped last."""
    with SchedulerHarness(features=features(), record_bytes=100_000) as world:
        add_nodes(world, 1, cpu="1")
        add_gang(world, "stuck", 2)
        world.run_for(0.5)
        for number in range(30):
            add_gang(world, f"g{number}x", 1, cpu="10m")
        world.run_for(0.5)
        recorder = archive_of(world).recorder
        groups = [record.decision.podGroup for record in recorder.groups]
        assert recorder.groups.bytes <= 12_500
        assert recorder.bytes <= 100_000
    assert groups[0] == "default/g29x"
    assert groups[-1] == "default/stuck"
    assert len(groups) < 31


def test_the_log_has_groups(tmp_path: Path) -> None:
    """Groups have separate lines with a podGroup and no pod."""
    path = tmp_path / "decisions.jsonl"
    with world_of_groups() as world:
        log = DecisionLog(archive_of(world), str(path), size=1 << 20, backups=1, nodes=False)
        records: list[GroupRecord] = []
        archive_of(world).recorder.groups.listeners.append(records.append)
        add_nodes(world, 2, cpu="2")
        add_gang(world, "a", 2)
        world.run_until_idle()
        log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (group,) = [line for line in lines if "pod" not in line]
    assert group["podGroup"] == "default/a"
    assert group["chosen"] == records[0].decision.chosen
    assert [line["podGroup"] for line in lines if "pod" in line] == ["default/a"] * 2
