"""Pods that share results with equal pods have their own details."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.insight.decisions import schema
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import SKIP
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.records import decisions, nodes_of, recorded

NODES = ("a", "b", "c", "d", "e", "f")
CORDONED = ("node(s) were unschedulable",)
FULL = ("Insufficient cpu",)


class Sometimes:
    """A plugin that skips every other pod, and does not sign pods."""

    name = "Sometimes"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_filter(self, pod: PodInfo) -> object:
        return SKIP if pod.pod.metadata.name[-1] in "02468" else None


def world_of(*nodes: str, **options: Any) -> SchedulerHarness:
    world = recorded(**options)
    for name in nodes:
        world.cluster.add(make_node(name, cpu="64"))
    return world


def schedule(world: SchedulerHarness, *names: str, **pod: Any) -> None:
    """Schedule pods, each after the previous one is bound."""
    for name in names:
        world.cluster.add(make_pod(name, cpu="1", **pod))
        world.run_until_idle()


def last(world: SchedulerHarness, pod: str) -> schema.Decision:
    return decisions(world, pod)[-1]


def test_rejections_are_those_at_the_time_of_the_decision() -> None:
    """A node that is full later was feasible before."""
    with world_of(*NODES) as world:
        world.cluster.update(make_node("a", cpu="64", unschedulable=True))
        schedule(world, "p0", "p1", "p2", "p3")
        world.cluster.add(make_pod("large", cpu="64", node="b"))
        schedule(world, "p4", "p5", "p6")
        found = [last(world, name) for name in ("p3", "p4", "p6")]
    expected = ({"a": CORDONED}, {"a": CORDONED, "b": FULL}, {"a": CORDONED, "b": FULL})
    for decision, reasons in zip(found, expected, strict=True):
        rejected = {name: node.rejected.reasons for name, node in nodes_of(decision).items() if node.rejected}
        scored = {name for name, node in nodes_of(decision).items() if node.total is not None}
        assert (rejected, scored) == (reasons, set(NODES) - set(reasons))
        assert (decision.evaluated, decision.feasible) == (6, 6 - len(reasons))


def test_a_plugin_that_scores_each_pod_separately() -> None:
    """The scores of a soft spread constraint differ from pod to pod, although the pods are equal."""
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
        found = [last(world, f"p{number}") for number in range(8)]
    for number, decision in enumerate(found):
        spread = {name: (node.plugins or {}).get("PodTopologySpread") for name, node in nodes_of(decision).items()}
        used = {earlier.chosen for earlier in found[max(number - number % 5, 0) : number]}
        best = {name for name, score in spread.items() if score == max(filter(None, spread.values()))}
        assert best == {*NODES} - {"a"} - used


def test_pods_of_all_sizes_have_their_own_priority_and_nodes() -> None:
    """A node with a running pod is added in between."""
    with world_of(*NODES) as world:
        world.cluster.add(make_pod("early", cpu="1", node="late"))
        for number in range(12):
            if number == 10:
                world.cluster.add(make_node("late", cpu="64"))
            world.cluster.add(make_pod(f"p{number}", cpu=f"{100 + number}m", priority=number % 2))
            world.run_until_idle()
        found = [last(world, f"p{number}") for number in range(12)]
    assert [decision.priority for decision in found] == [0, 1] * 6
    assert [set(nodes_of(decision)) for decision in found[9:11]] == [{*NODES}, {*NODES, "late"}]
    assert [decision.nodeCount for decision in found[9:11]] == [6, 7]


def test_a_node_in_the_row_of_another_has_its_own_name() -> None:
    """Rows are reused; each decision has the node names at its time."""
    with world_of(*NODES) as world:
        schedule(world, "p0", "p1", "p2", "p3")
        used = {last(world, f"p{number}").chosen for number in range(4)}
        empty = next(name for name in NODES if name not in used)
        world.cluster.delete(make_node(empty))
        world.cluster.add(make_node("fresh", cpu="64"))
        schedule(world, "late")
        before, after = last(world, "p3"), last(world, "late")
    assert set(nodes_of(before)) == set(NODES)
    assert set(nodes_of(after)) == {*NODES, "fresh"} - {empty}


def test_what_pre_filter_skips_is_each_pods_own() -> None:
    """A plugin that signs no pods is called for each of them."""
    with world_of(*NODES, plugins=[Sometimes]) as world:
        schedule(world, *(f"p{number}" for number in range(6)))
        skipped = ["Sometimes" in last(world, f"p{number}").preFilter.skipped for number in range(6)]
    assert skipped == [True, False] * 3


def test_nominated_pods_are_listed_if_all_nodes_pass() -> None:
    """Their requests are reserved even if every node has enough capacity."""
    with world_of(*NODES) as world:
        schedule(world, "p0", "p1", "p2")
        world.cluster.add(make_pod("coming", cpu="2", priority=9, gates=["wait"]))
        world.run_until_idle()
        world.core.queue.nominator.nominate(world.cluster.pod("coming"), "b")
        schedule(world, "late")
        before, after = last(world, "p2"), last(world, "late")
    assert (before.nominated, before.feasible, after.feasible) == ((), 6, 6)
    assert after.nominated == (schema.Nominated("default/coming", "b", 9),)


class Fragile:
    """A plugin that signs pods, and fails on command."""

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
    """Make the plugin fail at a point from now on."""
    return lambda where: monkeypatch.setattr(Fragile, "fails_at", where)


def test_a_filter_fails_when_the_table_of_nodes_grows(fails: Callable[[str], None]) -> None:
    """Decisions before and after the failure have their details."""
    with world_of(*(f"n{number}" for number in range(64)), plugins=[Fragile]) as world:
        schedule(world, "p0", "p1", "p2", "p3")
        world.cluster.add(make_node("n64", cpu="64"))
        fails("filter")
        world.cluster.add(make_pod("failed", cpu="1"))
        world.run_for(0.1)
        fails("")
        schedule(world, "q0", "q1")
        seen = {name: len(nodes_of(last(world, name))) for name in ("p3", "q0", "q1")}
    assert seen == {"p3": 64, "q0": 65, "q1": 65}


@pytest.mark.parametrize("known", [1, 4])
def test_scores_are_normalized_again_after_a_failure(known: int, fails: Callable[[str], None]) -> None:
    """This works with and without shared results of equal pods."""
    with world_of(*NODES, plugins=[Fragile]) as world:
        schedule(world, *(f"p{number}" for number in range(known)))
        for number, name in enumerate(NODES):
            world.cluster.update(make_node(name, cpu="64", labels={"score": str(number)}))
        fails("normalize")
        for name in ("q0", "q1"):
            world.cluster.add(make_pod(name, cpu="1"))
            world.run_for(0.1)
            assert decisions(world, name)[0].outcome == "error"
        fails("")
        schedule(world, "r")
        found = nodes_of(last(world, "r"))
    scores = {name: ((one.plugins or {})["Fragile"], one.raw["Fragile"]) for name, one in found.items()}
    assert scores == {name: (number, number) for number, name in enumerate(NODES)}
