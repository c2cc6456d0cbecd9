"""The metrics of pod groups, attempt by attempt."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.config import Features
from kubestow.telemetry.metrics.registry import Registry
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.gangs import add_gang, add_nodes, features
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


def test_without_groups_the_metrics_are_not_served() -> None:
    """While the feature gate is disabled."""
    registry = Registry()
    SchedulerMetrics(registry, Features())
    assert values(registry, "scheduler_podgroup_") == {}
