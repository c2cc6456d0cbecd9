"""Pods that are placed like others share their findings, and only those that are theirs, too."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from kubestow.cluster.pods import PodInfo
from kubestow.cycle import journal
from kubestow.cycle.sharing.cached import Cached
from kubestow.decisions import schema
from kubestow.decisions.record import RECORD_BYTES, SEARCHED_BYTES, Record
from kubestow.decisions.refused import RefusedNode
from kubestow.decisions.telling import tell
from kubestow.framework.handle import Handle
from kubestow.framework.results import SKIP
from kubestow.testing import SchedulerHarness, make_node, make_pod

NODES = ("a", "b", "c", "d", "e", "f")
CORDONED = ("node(s) were unschedulable",)
FULL = ("Insufficient cpu",)


class Sometimes:
    """Has something to filter for every other pod, and does not say of which."""

    name = "Sometimes"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_filter(self, pod: PodInfo) -> object:
        return SKIP if pod.pod.metadata.name[-1] in "02468" else None


def world_of(*nodes: str, **options: Any) -> SchedulerHarness:
    world = SchedulerHarness(record_bytes=1 << 24, **options)
    for name in nodes:
        world.cluster.add(make_node(name, cpu="64"))
    return world


def schedule(world: SchedulerHarness, *names: str, **pod: Any) -> None:
    """One after the other, so that each is told of."""
    for name in names:
        world.cluster.add(make_pod(name, cpu="1", **pod))
        world.run_until_idle()


def records(world: SchedulerHarness) -> dict[str, Record]:
    """By pod."""
    assert world.decisions is not None
    return {record.name: record for record in world.decisions}


def told(world: SchedulerHarness, pod: str) -> schema.Decision:
    assert world.decisions is not None
    return tell(records(world)[pod], world.decisions)


def test_findings_are_shared() -> None:
    """From the time on that their class is known."""
    with world_of(*NODES) as world:
        schedule(world, *(f"p{number}" for number in range(6)))
        found = records(world)
    assert len({id(found[f"p{number}"].found) for number in range(2, 6)}) == 1


def test_findings_are_shared_where_nodes_are_refused() -> None:
    """As some are in most clusters. Each record tells of nodes as they were then."""
    with world_of(*NODES) as world:
        world.cluster.update(make_node("a", cpu="64", unschedulable=True))
        schedule(world, "p0", "p1", "p2", "p3")
        world.cluster.add(make_pod("large", cpu="64", node="b"))
        schedule(world, "p4", "p5", "p6")
        found, refused = records(world), RefusedNode("b")
        by = [refused.by(found[name]) for name in ("p3", "p4", "p6")]
        decisions = [told(world, name) for name in ("p3", "p4", "p6")]
    assert found["p2"].found is found["p3"].found
    assert found["p4"].found is found["p6"].found
    assert by == [None, ("NodeResourcesFit",), ("NodeResourcesFit",)]
    expected = ({"a": CORDONED}, {"a": CORDONED, "b": FULL}, {"a": CORDONED, "b": FULL})
    for decision, reasons in zip(decisions, expected, strict=True):
        assert isinstance(decision.nodes, dict)
        said = {name: node.rejected.reasons for name, node in decision.nodes.items() if node.rejected is not None}
        scored = {name for name, node in decision.nodes.items() if node.total is not None}
        assert (said, scored) == (reasons, set(NODES) - set(reasons))
        assert (decision.evaluated, decision.feasible) == (6, 6 - len(reasons))


def test_findings_are_shared_where_plugins_score_each_pod() -> None:
    """Those scores are each record's own, and count."""
    soft = {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    with world_of() as world:
        for name in NODES:
            world.cluster.add(make_node(name, cpu="64", labels={"rack": name}))
        world.cluster.update(make_node("a", cpu="64", labels={"rack": "a"}, unschedulable=True))
        for number in range(8):
            schedule(world, f"p{number}", labels={"app": "x"}, spec={"topologySpreadConstraints": [soft]})
        found, decisions = records(world), [told(world, f"p{number}") for number in range(8)]
    assert len({id(found[f"p{number}"].found) for number in range(3, 8)}) == 1
    # What five nodes scored, raw and weighted.
    assert found["p7"].own_bytes == RECORD_BYTES + SEARCHED_BYTES + 2 * 8 * 5
    for number, decision in enumerate(decisions):
        assert isinstance(decision.nodes, dict)
        spread = {name: (node.plugins or {}).get("PodTopologySpread") for name, node in decision.nodes.items()}
        used = {earlier.chosen for earlier in decisions[max(number - number % 5, 0) : number]}
        assert {name for name, score in spread.items() if score == max(filter(None, spread.values()))} == (
            {*NODES} - {"a"} - used
        )


def test_pods_of_all_sizes_have_their_own_priority_and_nodes() -> None:
    """Although what they share about nodes is the same: also of a node that comes when a pod runs on it already."""
    with world_of(*NODES) as world:
        world.cluster.add(make_pod("early", cpu="1", node="late"))
        for number in range(12):
            if number == 10:
                world.cluster.add(make_node("late", cpu="64"))
            world.cluster.add(make_pod(f"p{number}", cpu=f"{100 + number}m", priority=number % 2))
            world.run_until_idle()
        told_of = {name: (record.found.priority, record.found.layers) for name, record in records(world).items()}
        decisions = [told(world, name) for name in ("p9", "p10")]
    assert {name: priority for name, (priority, _) in told_of.items()} == {
        f"p{number}": number % 2 for number in range(12)
    }
    assert told_of["p10"][1] is not None
    nodes = [decision.nodes for decision in decisions]
    assert [set(seen) for seen in nodes if isinstance(seen, dict)] == [{*NODES}, {*NODES, "late"}]
    assert [decision.nodeCount for decision in decisions] == [6, 7]


def test_a_node_in_the_place_of_another_is_told_by_its_own_name() -> None:
    """Although all that is said of it is the same."""
    with world_of(*NODES) as world:
        schedule(world, "p0", "p1", "p2", "p3")
        empty = next(name for name in NODES if all(record.node != name for record in records(world).values()))
        world.cluster.delete(make_node(empty))
        world.cluster.add(make_node("fresh", cpu="64"))
        schedule(world, "late")
        before, after = told(world, "p3"), told(world, "late")
    assert isinstance(before.nodes, dict)
    assert isinstance(after.nodes, dict)
    assert set(before.nodes) == set(NODES)
    assert set(after.nodes) == {*NODES, "fresh"} - {empty}


def test_what_pre_filter_skips_is_each_pods_own() -> None:
    """Where a plugin does not say which pods are alike to it."""
    with world_of(*NODES, plugins=[Sometimes]) as world:
        schedule(world, *(f"p{number}" for number in range(6)))
        skipped = ["Sometimes" in told(world, f"p{number}").preFilter.skipped for number in range(6)]
    assert skipped == [True, False] * 3


def test_nominated_pods_are_told_where_all_nodes_pass() -> None:
    """Of a pod that they leave room for on every node, as well."""
    with world_of(*NODES) as world:
        schedule(world, "p0", "p1", "p2")
        world.cluster.add(make_pod("coming", cpu="2", priority=9, gates=["wait"]))
        world.run_until_idle()
        world.core.queue.nominator.nominate(world.cluster.pod("coming"), "b")
        schedule(world, "late")
        before, after = told(world, "p2"), told(world, "late")
    assert (before.nominated, before.feasible, after.feasible) == ((), 6, 6)
    assert after.nominated == (schema.Nominated("default/coming", "b", 9),)


class Fragile:
    """Signs, and fails when it is told to."""

    name = "Fragile"
    fails_at = ""
    normalizes_scores_alone = True

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> tuple[()]:
        return ()

    def filter(self, state: None, pod: PodInfo, node: Any) -> None:
        self._may_fail("filter")

    def score(self, state: None, pod: PodInfo, node: Any) -> int:
        return int(node.node.metadata.labels.get("score", "5"))

    def normalize(self, state: None, pod: PodInfo, view: Any, rows: Any, scores: Any) -> Any:
        self._may_fail("normalize")
        return scores

    def _may_fail(self, where: str) -> None:
        if self.fails_at == where:
            raise RuntimeError(f"{where} fails")


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the plugin fail from now on."""
    return lambda where: monkeypatch.setattr(Fragile, "fails_at", where)


def test_a_filter_fails_when_the_table_of_nodes_grows(fails: Callable[[str], None]) -> None:
    """What was noted before and after it can be read."""
    with world_of(*(f"n{number}" for number in range(64)), plugins=[Fragile]) as world:
        schedule(world, "p0", "p1", "p2", "p3")
        world.cluster.add(make_node("n64", cpu="64"))
        fails("filter")
        world.cluster.add(make_pod("failed", cpu="1"))
        world.run_for(0.1)
        fails("")
        schedule(world, "q0", "q1")
        seen = {name: len(told(world, name).nodes) for name in ("p3", "q0", "q1")}  # type: ignore[arg-type]
    assert seen == {"p3": 64, "q0": 65, "q1": 65}


@pytest.mark.parametrize("known", [1, 4])
def test_scores_are_normalized_again_after_that_failed(known: int, fails: Callable[[str], None]) -> None:
    """Whether the class of the pod was known before or not."""
    with world_of(*NODES, plugins=[Fragile]) as world:
        schedule(world, *(f"p{number}" for number in range(known)))
        for name in NODES:
            world.cluster.update(make_node(name, cpu="64", labels={"score": "7"}))
        fails("normalize")
        for name in ("q0", "q1"):
            world.cluster.add(make_pod(name, cpu="1"))
            world.run_for(0.1)
            assert told(world, name).outcome == "error"
        fails("")
        schedule(world, "r")
        nodes = told(world, "r").nodes
    assert isinstance(nodes, dict)
    assert {((one.plugins or {})["Fragile"], one.raw["Fragile"]) for one in nodes.values()} == {(7, 7)}


def test_nobody_is_asked_why_a_node_is_refused_that_is_gone() -> None:
    """Once what is left is explained, that is one look for each pod."""
    with world_of(*NODES) as world, patch.object(Cached, "explain", autospec=True, side_effect=Cached.explain) as asked:
        world.cluster.update(make_node("a", cpu="64", unschedulable=True))
        schedule(world, "p0", "p1", "p2")
        world.cluster.delete(make_node("f"))
        schedule(world, "p3")
        before = asked.call_count
        schedule(world, "p4", "p5", "p6")
    assert asked.call_count == before > 0


def test_chapters_end() -> None:
    """After so many changes what is said is another chapter: old records go, and theirs with them."""
    with patch.object(journal, "MOST_CHANGES", 8), world_of(*NODES) as world:
        schedule(world, *(f"p{number}" for number in range(40)))
        found = [record.found for record in records(world).values() if record.found.layers is not None]
    lengths = [len(one.layers.changes) // one.layers.chapter.width for one in found if one.layers is not None]
    chapters = {id(one.layers.chapter) for one in found if one.layers is not None}
    assert len(chapters) >= 4
    assert max(lengths) <= 9
