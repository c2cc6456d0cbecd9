"""The status of disruption budgets."""

from typing import Any

import pytest

from support.apiserver.world import LABELS, World, workload

BUDGETS = "poddisruptionbudgets.policy"


def budget(world: World, **spec: Any) -> None:
    """Create a budget for all pods of the workload."""
    world.create(BUDGETS, "b", {"selector": {"matchLabels": LABELS}, **spec})


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "50%"}, 2, 2),
        ({"minAvailable": 3}, 3, 1),
        ({"minAvailable": "25%"}, 1, 3),
        ({"minAvailable": "100%"}, 4, 0),
    ],
)
def test_disruptions_allowed_are_healthy_pods_less_those_needed(
    world: World, spec: dict[str, Any], desired: int, allowed: int
) -> None:
    """Percentages refer to the replicas of the topmost owner."""
    world.create("deployments.apps", "w", workload(replicas=4))
    budget(world, **spec)
    world.run(10)
    status = world.status(BUDGETS, "b")
    figures = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    assert [status[name] for name in figures] == [4, 4, desired, allowed]
    reason = "SufficientPods" if allowed else "InsufficientPods"
    assert world.condition(BUDGETS, "b", "DisruptionAllowed")["reason"] == reason


def test_a_budget_follows_its_pods(world: World) -> None:
    """Pods are deleted, created, and get other labels."""
    world.create("replicasets.apps", "w", workload(replicas=2))
    budget(world, minAvailable=1)
    world.run(10)
    assert world.status(BUDGETS, "b")["currentHealthy"] == 2
    name = world.pods()[0]["metadata"]["name"]
    world.delete("pods", name)
    world.run(0.1)
    assert world.status(BUDGETS, "b")["currentHealthy"] == 1
    world.run(10)
    world.update("pods", world.pods()[0]["metadata"]["name"], lambda one: one["metadata"].update(labels={}))
    world.run(0.1)
    assert world.status(BUDGETS, "b")["currentHealthy"] == 1


def test_a_daemon_set_has_no_expected_number_of_pods(world: World) -> None:
    """It has no scale, so no disruption is allowed."""
    world.create("daemonsets.apps", "w", workload())
    budget(world, maxUnavailable=1)
    world.run(10)
    assert world.condition(BUDGETS, "b", "DisruptionAllowed")["reason"] == "SyncFailed"
    assert world.status(BUDGETS, "b")["disruptionsAllowed"] == 0


def test_a_granted_eviction_is_remembered_for_a_while(world: World) -> None:
    """Until the pod is deleted, or for two minutes."""
    world.create("replicasets.apps", "w", workload(replicas=2))
    budget(world, minAvailable=1)
    world.run(10)
    name = world.pods()[0]["metadata"]["name"]
    granted = {name: world.store.now()}
    world.update(BUDGETS, "b", lambda one: one["status"].update(disruptedPods=granted), sub="status")
    world.run(1)
    assert (world.status(BUDGETS, "b")["currentHealthy"], world.status(BUDGETS, "b")["disruptionsAllowed"]) == (1, 0)
    world.run(130)
    assert "disruptedPods" not in world.status(BUDGETS, "b")
    assert world.status(BUDGETS, "b")["disruptionsAllowed"] == 1
