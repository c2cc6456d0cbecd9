"""The choice between candidates, the number of candidates, and nominations that are cleared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.scheduler.plugins.default_preemption.choice import first_candidates
from kubestow.scheduler.plugins.default_preemption.findings import BREAKING_CANDIDATE, CANDIDATE, NO_VICTIMS, REJECTED
from kubestow.testing.builders import make_pod
from support.plugins.preemption_world import NOW, World

VIP = make_pod("vip", cpu="4", priority=100)
SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_highest_priority_of_the_victims_counts_first(seed: int) -> None:
    """Many victims of low priority are better than one of a higher priority."""
    world = World("a", "b", seed=seed)
    world.run("higher", "a", cpu="4", priority=6)
    for i in range(4):
        world.run(f"lower-{i}", "b", cpu="1", priority=5)
    assert world.preempt(VIP).nominated_node == "b"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sum_of_priorities_counts_second(seed: int) -> None:
    """Of nodes with the same highest priority, the one with the lower sum is chosen."""
    world = World("a", "b", seed=seed)
    for node, second in (("a", 5), ("b", 4)):
        world.run(f"{node}-1", node, cpu="2", priority=5)
        world.run(f"{node}-2", node, cpu="2", priority=second)
    assert world.preempt(VIP).nominated_node == "b"


@pytest.mark.parametrize("seed", SEEDS)
def test_more_victims_of_negative_priority_are_not_better(seed: int) -> None:
    """Priorities are summed relative to the lowest one, so each further victim increases the cost."""
    world = World("a", "b", seed=seed)
    world.run("a-1", "a", cpu="4", priority=-5)
    world.run("b-1", "b", cpu="2", priority=-5)
    world.run("b-2", "b", cpu="2", priority=-5)
    assert world.preempt(VIP).nominated_node == "a"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_latest_start_counts_last(seed: int) -> None:
    """All else equal, the node is chosen whose longest running victim of the highest priority started last."""
    world = World("a", "b", seed=seed)
    for node, first, second, lower in (("a", 2_000.0, 9_000.0, 9_000.0), ("b", 3_000.0, 4_000.0, 1_000.0)):
        world.run(f"{node}-1", node, cpu="1", priority=5, started=first)
        world.run(f"{node}-2", node, cpu="1", priority=5, started=second)
        world.run(f"{node}-3", node, cpu="2", priority=1, started=lower)
    assert world.preempt(VIP).nominated_node == "b"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_that_has_not_started_counts_as_started_now(seed: int) -> None:
    """This is later than the start of any running pod."""
    world = World("a", "b", seed=seed)
    world.run("running", "a", cpu="4", priority=0, started=NOW - 1)
    world.run("unstarted", "b", cpu="4", priority=0, started=None)
    assert world.preempt(VIP).nominated_node == "b"


def test_equal_candidates_are_chosen_at_random() -> None:
    """The same seed chooses the same node."""

    def chosen(seed: int) -> str | None:
        world = World(*(f"n{i}" for i in range(8)), seed=seed)
        for i in range(8):
            world.run(f"low-{i}", f"n{i}", cpu="4", priority=0)
        return world.preempt(VIP).nominated_node

    assert len({chosen(seed) for seed in range(16)}) > 1
    assert chosen(3) == chosen(3)


FEW_CANDIDATES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 2}
"""


def crowd(seed: int, count: int, best: int, configuration: str = "") -> World:
    """Return a world of feasible nodes, of which one is best."""
    world = World(*(f"n{i}" for i in range(count)), seed=seed, configuration=configuration)
    for i in range(count):
        world.run(f"low-{i}", f"n{i}", cpu="4", priority=0 if i == best else 1)
    return world


def test_up_to_a_hundred_nodes_the_best_is_always_found() -> None:
    """This is the default minimum number of candidates."""
    assert {crowd(seed, 100, best=70).preempt(VIP).nominated_node for seed in SEEDS} == {"n70"}


def test_the_search_ends_when_there_are_enough_candidates() -> None:
    """With two candidates of twenty, the best is found only if the search starts near it."""
    found = [crowd(seed, 20, best=7, configuration=FEW_CANDIDATES).preempt(VIP).nominated_node for seed in range(30)]
    assert "n7" in found
    assert len(set(found)) > 1


def test_no_more_candidates_are_kept_than_wanted() -> None:
    """If every node violates a budget, all are tried, but only the first two are candidates."""
    found = set()
    for seed in range(30):
        world = World(*(f"n{i}" for i in range(20)), seed=seed, configuration=FEW_CANDIDATES)
        for i in range(20):
            world.run(f"low-{i}", f"n{i}", cpu="4", priority=0 if i == 7 else 1, labels={"app": "web"})
        world.budget("web", allowed=0)
        found.add(world.preempt(VIP).nominated_node)
    assert "n7" in found
    assert len(found) > 1


def test_the_search_continues_until_a_node_violates_no_budget() -> None:
    """The number of candidates that violate one does not matter."""
    world = World(*(f"n{i}" for i in range(300)), configuration=FEW_CANDIDATES)
    for i in range(300):
        world.run(
            f"low-{i}", f"n{i}", cpu="4", priority=5 if i == 150 else 0, labels={} if i == 150 else {"app": "web"}
        )
    world.budget("web", allowed=0)
    assert world.preempt(VIP).nominated_node == "n150"


def test_nodes_without_candidates_do_not_end_the_search() -> None:
    """The only node with a potential victim is found, also in a second search."""
    world = World(*(f"n{i}" for i in range(300)))
    for i in range(300):
        world.run(f"pod-{i}", f"n{i}", cpu="4", priority=0 if i == 123 else 100)
    assert world.preempt(VIP).nominated_node == "n123"
    assert world.preempt(VIP).nominated_node == "n123"
    world.cluster.remove_pod("pod-default-pod-123")
    world.run("peer", "n123", cpu="4", priority=100)
    assert "300 No preemption victims found" in world.preempt(VIP).message


def test_nominations_of_lower_priority_are_cleared() -> None:
    """Those of equal or higher priority stay, and so do those to other nodes."""
    world = World("a", "b")
    world.run("low-a", "a", cpu="4", priority=0)
    world.run("low-b", "b", cpu="4", priority=50)
    for name, node, priority in (("lower", "a", 5), ("elsewhere", "b", 5)):
        world.nominator.nominate(make_pod(name, cpu="1", priority=priority), node)
    result = world.preempt(make_pod("vip", cpu="3", priority=100))
    assert result.nominated_node == "a"
    assert [pod.name for pod in result.to_unnominate] == ["lower"]


def test_nominated_pods_are_considered() -> None:
    """The pod must also fit with the pods nominated to the node: more victims, or another node."""
    world = World("a")
    world.run("one", "a", cpu="2", priority=0)
    world.run("two", "a", cpu="2", priority=1)
    pod = make_pod("vip", cpu="2", priority=10)
    assert world.victims(pod) == ["one"]
    world.nominator.nominate(make_pod("expected", cpu="2", priority=10), "a")
    assert world.victims(pod) == ["two", "one"]
    world.nominator.nominate(make_pod("expected-too", cpu="1", priority=10), "a")
    assert "0/1 nodes are available: 1 Insufficient cpu." in world.preempt(pod).message


def test_a_node_that_fails_with_and_without_nominated_pods_is_counted_once() -> None:
    """The reason with nominated pods is reported."""
    world = World("a")
    world.run("peer", "a", cpu="3", priority=10)
    world.run("low", "a", cpu="1", priority=0)
    world.nominator.nominate(make_pod("expected", memory="32Gi", priority=10), "a")
    result = world.preempt(make_pod("vip", cpu="2", memory="1Gi", priority=10))
    assert "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory." in result.message


def test_a_pods_own_nomination_is_ignored() -> None:
    """A pod that was nominated before does not block itself."""
    world = World("a")
    world.run("low", "a", cpu="4", priority=0)
    pod = make_pod("vip", cpu="4", priority=10)
    world.nominator.nominate(pod, "a")
    assert world.victims(pod) == ["low"]


@given(kinds=st.lists(st.sampled_from([NO_VICTIMS, REJECTED, CANDIDATE, BREAKING_CANDIDATE])), wanted=st.integers(0, 6))
def test_the_first_candidates_are_enough(kinds: list[int], wanted: int) -> None:
    """The wanted number, one of them without a violated budget; no more than wanted of those that violate one."""
    breaking: list[int] = []
    non_breaking: list[int] = []
    are_enough = False
    for position, kind in enumerate(kinds):
        if kind == CANDIDATE:
            non_breaking.append(position)
        elif kind == BREAKING_CANDIDATE and len(breaking) < wanted:
            breaking.append(position)
        are_enough = bool(non_breaking) and len(breaking) + len(non_breaking) >= wanted
        if are_enough:
            break
    found, reported_enough = first_candidates(np.array(kinds, np.int8), wanted)
    assert found.tolist() == sorted(breaking + non_breaking)
    assert reported_enough == are_enough
