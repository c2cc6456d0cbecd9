"""Trees of pod groups preempt, and are preempted, by the priority and the disruption modes of their groups."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import CompositePodGroup
from kubestow.testing import SchedulerHarness, make_composite_pod_group, make_pod
from support.scenarios.gangs import TREE_GATES, add_gang, add_nodes, bound, condition, features
from support.scenarios.start import Start


@pytest.fixture
def harness(start: Start) -> SchedulerHarness:
    return start(features=features(*TREE_GATES))


def add_tree(harness: SchedulerHarness, name: str, pods: int = 1, groups: int = 2, **options: Any) -> list[str]:
    """Add a composite pod group and its gangs; return the names of the gangs."""
    of_gangs = {"disruption_mode": options.pop("of_gangs", None), "priority": options.get("priority")}
    harness.cluster.add(make_composite_pod_group(name, groups, **options))
    names = [f"{name}-{number}" for number in range(groups)]
    for one in names:
        add_gang(harness, one, pods, parent=name, **of_gangs)
    return names


def on_nodes(harness: SchedulerHarness, names: list[str]) -> int:
    return sum(len(bound(harness, name)) for name in names)


def test_a_tree_evicts_only_necessary_pods(harness: SchedulerHarness) -> None:
    """It preempts as a whole, under the UID of its root."""
    add_nodes(harness, 3)
    for number in range(6):
        harness.cluster.add(make_pod(f"low{number}", cpu="1", grace_seconds=0))
    harness.run_until_idle()
    groups = add_tree(harness, "top", pods=2, priority=10)
    harness.run_for(0.01)
    found = "pod group preemption: found a placement for podgroup, preempting 4 victims"
    assert all(condition(harness, name).message.endswith(f", {found}") for name in groups)
    harness.run_until_idle()
    assert on_nodes(harness, groups) == 4
    assert sum(bool(pod.spec.nodeName) for pod in harness.cluster.all(Pod)) == 6
    notes = harness.events.notes("Preempted")
    root = harness.cluster.get(CompositePodGroup, "default/top")
    assert root is not None
    assert set(notes) == {f"Preempted by compositepodgroup {root.metadata.uid} on node cluster"}


def test_pods_of_a_tree_have_the_priority_of_its_root(harness: SchedulerHarness) -> None:
    """A pod of a higher one evicts a pod of a tree; one of the same priority does not."""
    add_nodes(harness, 1)
    groups = add_tree(harness, "top", priority=10)
    harness.run_until_idle()
    harness.cluster.add(make_pod("same", cpu="1", priority=10))
    harness.run_for(2.0)
    assert on_nodes(harness, groups) == 2
    harness.cluster.add(make_pod("higher", cpu="1", priority=11))
    harness.run_for(60.0)
    assert harness.bindings["default/higher"] == "n0"
    assert on_nodes(harness, groups) == 1


@pytest.mark.parametrize(
    ("of_tree", "of_gangs", "left"), [(None, None, 3), (None, "all", 2), ("all", None, 0), ("all", "all", 0)]
)
def test_the_highest_group_that_is_disrupted_as_a_whole_is_evicted(
    harness: SchedulerHarness, of_tree: str | None, of_gangs: str | None, left: int
) -> None:
    add_nodes(harness, 2)
    groups = add_tree(harness, "top", pods=2, disruption_mode=of_tree, of_gangs=of_gangs)
    harness.run_until_idle()
    assert on_nodes(harness, groups) == 4
    harness.cluster.add(make_pod("higher", cpu="1", priority=1))
    harness.run_for(0.5)
    terminating = sum(pod.metadata.deletionTimestamp is not None for pod in harness.cluster.all(Pod))
    assert 4 - terminating == left


def test_single_pods_are_evicted_before_groups_and_groups_before_trees(harness: SchedulerHarness) -> None:
    add_nodes(harness, 1, cpu="6")
    tree = add_tree(harness, "top", pods=1, disruption_mode="all")
    add_gang(harness, "gang", pods=2, disruption_mode="all")
    for number in range(2):
        harness.cluster.add(make_pod(f"single{number}", cpu="1", grace_seconds=0))
    harness.run_until_idle()
    add_gang(harness, "high", pods=2, priority=10)
    harness.run_for(60.0)
    assert (on_nodes(harness, tree), len(bound(harness, "gang")), len(bound(harness, "high"))) == (2, 2, 2)
    add_gang(harness, "higher", pods=2, priority=20, min_count=2)
    harness.run_for(60.0)
    assert (on_nodes(harness, tree), len(bound(harness, "gang"))) == (2, 0)


def test_a_tree_waits_until_its_victims_are_evicted(harness: SchedulerHarness) -> None:
    """Its pods are gated until then, and are placed on the nominated nodes."""
    add_nodes(harness, 2)
    for number in range(4):
        harness.cluster.add(make_pod(f"low{number}", cpu="1", grace_seconds=30))
    harness.run_until_idle()
    groups = add_tree(harness, "top", pods=2, priority=10)
    harness.run_for(5.0)
    nominated = {pod.key: pod.status.nominatedNodeName for pod in harness.cluster.all(Pod) if pod.spec.schedulingGroup}
    assert len(nominated) == 4
    assert all(nominated.values())
    harness.run_for(120.0)
    assert on_nodes(harness, groups) == 4
    assert {key: harness.bindings[key] for key in nominated} == nominated
