"""Pod groups when the API server fails, and when the scheduler is killed while it binds one."""

import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup
from kubestow.testing import SchedulerHarness, make_pod
from support.scenarios.gangs import add_gang, add_nodes, bound, condition, features
from support.scenarios.start import Start

PROBLEMS = ["Conflict", "NotFound", "Timeout", "InternalError", "TooManyRequests", "ConnectionLost"]
CALLS = ["bind", "patch_pod_status", "delete_pod", "patch_pod_group_status"]


def crowded(start: Start, **options: float) -> SchedulerHarness:
    """Start a scheduler that makes every call: a group is bound, one does not fit, and one must preempt."""
    harness = start(features=features(), **options)
    add_nodes(harness, 3)
    for number in range(6):
        harness.cluster.add(make_pod(f"low{number}", cpu="1", priority=0, grace_seconds=5))
    add_gang(harness, "huge", pods=9, priority=5)
    harness.run_for(0.5)
    add_gang(harness, "a", pods=4, priority=10)
    return harness


@pytest.mark.parametrize("takes_effect", [False, True], ids=["refused", "done-all-the-same"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_call_that_fails_once(start: Start, problem: str, call: str, takes_effect: bool) -> None:
    """Every kind of failure is tested for every kind of call: the group is placed, and the other one uses nothing."""
    harness = crowded(start, delay=0.01)
    harness.cluster.faults.fail(call, problem, takes_effect=takes_effect)
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 4
    assert bound(harness, "huge") == []
    assert harness.core.cluster.assumed_count == 0


@pytest.mark.parametrize("skip", range(0, 36, 3))
def test_the_nth_call_is_not_answered(start: Start, skip: int) -> None:
    """Any call of a whole run may be lost."""
    harness = crowded(start, latency=0.1, delay=0.2)
    harness.cluster.faults.fail("*", "Timeout", skip=skip)
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 4


@pytest.mark.parametrize("after", [0.0, 0.05, 0.15, 0.3, 6.0])
def test_the_server_is_unavailable_for_a_minute(start: Start, after: float) -> None:
    """When it is back the group is bound."""
    harness = crowded(start, latency=0.1, delay=0.1)
    harness.run_for(after)
    harness.cluster.go_away_for(60.0)
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 4


def restarted(start: Start, before: SchedulerHarness) -> SchedulerHarness:
    """Start another scheduler with the cluster as the first one left it when it was killed."""
    harness = start(features=features())
    for kind in (Node, PodGroup, Pod):
        for obj in before.cluster.all(kind):
            harness.cluster.add(obj)
    return harness


@pytest.mark.parametrize("bound_before", range(6))
def test_killed_while_a_group_is_being_bound(start: Start, bound_before: int) -> None:
    """The next scheduler binds the pods that have no node yet."""
    first = start(features=features())
    add_nodes(first, 3, racks=1)
    first.cluster.faults.fail("bind", "Timeout", times=None, skip=bound_before)
    add_gang(first, "a", pods=6, topology_key="rack")
    first.run_for(0.1)
    assert len(bound(first, "a")) == bound_before
    second = restarted(start, first)
    second.run_until_idle()
    assert len(bound(second, "a")) == 6
    assert condition(second, "a").status == "True"


def test_killed_while_victims_are_evicted(start: Start) -> None:
    """The next scheduler evicts the remaining victims."""
    first = start(features=features())
    add_nodes(first, 3)
    for number in range(6):
        first.cluster.add(make_pod(f"low{number}", cpu="1", priority=0, grace_seconds=0))
    first.run_until_idle()
    first.cluster.faults.fail("delete_pod", "Timeout", times=None, skip=2)
    add_gang(first, "a", pods=4, priority=10)
    first.run_for(0.1)
    second = restarted(start, first)
    second.run_until_idle()
    assert len(bound(second, "a")) == 4
    assert sum(pod.metadata.name.startswith("low") for pod in second.cluster.all(Pod)) == 2
