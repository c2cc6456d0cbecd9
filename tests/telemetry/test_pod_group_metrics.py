"""The metrics of pod groups, attempt by attempt."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.config import Features
from kubestow.scheduler.cluster.events import UNSCHEDULED_POD_ADD
from kubestow.telemetry.metrics.registry import Registry
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import SchedulerHarness, make_composite_pod_group, make_node, make_pod, make_pod_group
from support.scenarios.gangs import TREE_GATES, add_gang, add_members, add_nodes, features
from support.telemetry.samples import values


class Breaks:
    """Fails for every pod."""

    name = "Breaks"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def pre_filter(self, pod: Any) -> None:
        raise RuntimeError("worn out")


def placed(world: SchedulerHarness) -> None:
    add_nodes(world, 2)
    add_gang(world, "a", 3)


def refused(world: SchedulerHarness) -> None:
    add_nodes(world, 1)
    add_gang(world, "a", 3)


def preempting(world: SchedulerHarness) -> None:
    world.cluster.add(make_node("n", cpu="1"))
    world.cluster.add(make_pod("low", cpu="1", node="n", priority=1, spec={"terminationGracePeriodSeconds": 0}))
    add_gang(world, "a", 1, priority=10)


CASES: dict[str, tuple[Callable[[SchedulerHarness], None], float, dict[str, int]]] = {
    "placed": (placed, 1.0, {"scheduled": 1}),
    "refused": (refused, 1.0, {"unschedulable": 1}),
    "preempting": (preempting, 60.0, {"waiting_on_preemption": 1, "scheduled": 1}),
}
"""The scenario, its duration in seconds, and the expected results."""


def measured(registry: Registry, results: dict[str, int]) -> None:
    found = values(registry, "scheduler_podgroup_")
    labels = {name: f"profile=default-scheduler result={name}" for name in results}
    assert {key: value for key, value in found.items() if key.startswith("schedule_attempts_total")} == {
        f"schedule_attempts_total {labels[name]}": count for name, count in results.items()
    }
    counted = {
        key: value for key, value in found.items() if key.startswith("scheduling_attempt_duration_seconds_count")
    }
    assert counted == {
        f"scheduling_attempt_duration_seconds_count {labels[name]}": count for name, count in results.items()
    }
    assert found["scheduling_algorithm_duration_seconds_count"] == sum(results.values())


@pytest.mark.parametrize("name", CASES)
def test_every_attempt_of_a_group_is_counted_once(name: str) -> None:
    """By its result, independent of the number of its pods."""
    happens, seconds, results = CASES[name]
    registry = Registry()
    with SchedulerHarness(features=features(), metrics=SchedulerMetrics(registry, features())) as world:
        happens(world)
        world.run_for(seconds)
        measured(registry, results)


def test_an_attempt_that_fails() -> None:
    """An attempt with a failing plugin counts as an error."""
    registry = Registry()
    metrics = SchedulerMetrics(registry, features())
    with SchedulerHarness(features=features(), metrics=metrics, plugins=[Breaks]) as world:
        placed(world)
        world.run_for(0.5)
        measured(registry, {"error": 1})


def test_placements_are_counted() -> None:
    """By whether the group fits there."""
    registry = Registry()
    with SchedulerHarness(features=features(), metrics=SchedulerMetrics(registry, features())) as world:
        add_nodes(world, 3, racks=2)
        add_gang(world, "a", 3, topology_key="rack")
        world.run_for(0.5)
    profile = "profile=default-scheduler"
    assert values(registry, "scheduler_generated_placements_") == {f"total {profile}": 2}
    assert values(registry, "scheduler_placement_evaluations_") == {
        f"total {profile} result=feasible": 1,
        f"total {profile} result=infeasible": 1,
    }


def test_each_trial_of_a_group_in_a_placement_is_counted() -> None:
    """In a tree, a group is tried within each placement of its parent; after a failure, once more for preemption."""
    registry = Registry()
    with SchedulerHarness(features=features(*TREE_GATES), metrics=SchedulerMetrics(registry, features())) as world:
        add_nodes(world, 2, cpu="1", racks=2)
        world.cluster.add(make_pod("victim", cpu="1", node="n0"))
        world.cluster.add(make_composite_pod_group("top", topology_key="rack", priority=1))
        add_gang(world, "a", 2, parent="top", priority=1)
        world.run_for(0.5)
    profile = "profile=default-scheduler"
    assert values(registry, "scheduler_generated_placements_") == {f"total {profile}": 4}
    assert values(registry, "scheduler_placement_evaluations_") == {f"total {profile} result=infeasible": 4}


def test_preemptions_by_groups_are_counted() -> None:
    """With their victims, those of them that belong to groups, and violated budgets."""
    registry = Registry()
    with SchedulerHarness(features=features(), metrics=SchedulerMetrics(registry, features())) as world:
        add_nodes(world, 1, cpu="2")
        world.cluster.add(make_pod_group("v", 2, priority=1))
        add_members(world, "v", range(2), priority=1, labels={"app": "db"})
        budget = {"metadata": {"name": "b", "namespace": "default"}}
        world.cluster.add(
            convert(PodDisruptionBudget, {**budget, "spec": {"selector": {"matchLabels": {"app": "db"}}}})
        )
        world.run_for(0.5)
        add_gang(world, "a", 2, priority=10)
        world.run_for(0.5)
    assert values(registry, "scheduler_workload_preemption_attempts_") == {"total result=Success": 1}
    assert values(registry, "scheduler_workload_preemption_victims_")["count"] == 1
    assert values(registry, "scheduler_preemption_workload_disruptions_")["sum preemptor=podgroup"] == 2
    assert values(registry, "scheduler_preemption_pdb_violations_") == {"total preemptor=podgroup": 2}
    evaluated = values(registry, "scheduler_preemption_evaluation_duration_seconds_")
    assert evaluated["count preemptor=podgroup result=Success"] == 1


def test_a_group_that_may_not_preempt_is_not_evaluated() -> None:
    registry = Registry()
    with SchedulerHarness(features=features(), metrics=SchedulerMetrics(registry, features())) as world:
        add_nodes(world, 1, cpu="1")
        world.cluster.add(make_pod_group("a", 2))
        add_members(world, "a", range(2), spec={"preemptionPolicy": "Never"})
        world.run_for(0.5)
    assert values(registry, "scheduler_workload_preemption_attempts_") == {"total result=Unschedulable": 1}
    assert values(registry, "scheduler_preemption_evaluation_duration_seconds_") == {}


def test_groups_in_the_queue_are_counted() -> None:
    """They count once, with their arrivals; their pods count as pending pods."""
    registry = Registry()
    with SchedulerHarness(features=features(), metrics=SchedulerMetrics(registry, features())) as world:
        add_nodes(world, 1, cpu="1")
        world.cluster.add(make_pod("single", cpu="4"))
        add_gang(world, "a", 2)
        add_members(world, "unknown", [0])
        world.run_for(0.5)
        queued = {key: count for key, count in values(registry, "scheduler_queued_").items() if count}
        pending = {key: count for key, count in values(registry, "scheduler_pending_").items() if count}
        arrived = values(registry, "scheduler_queue_incoming_entities_")
    assert queued == {
        "entities queue=unschedulable type=pod": 1,
        "entities queue=backoff type=podgroup": 1,
    }
    assert pending == {"pods queue=unschedulable": 1, "pods queue=backoff": 2, "pods queue=incomplete": 1}
    assert arrived == {
        f"total event={UNSCHEDULED_POD_ADD.label} queue=active type=pod": 1,
        f"total event={UNSCHEDULED_POD_ADD.label} queue=unschedulable type=podgroup": 1,
        f"total event={UNSCHEDULED_POD_ADD.label} queue=active type=podgroup": 1,
        "total event=ScheduleAttemptFailure queue=backoff type=podgroup": 1,
    }


def test_without_groups_the_metrics_are_not_served() -> None:
    """While the feature gate is disabled."""
    registry = Registry()
    SchedulerMetrics(registry, Features())
    assert values(registry, "scheduler_podgroup_") == {}
