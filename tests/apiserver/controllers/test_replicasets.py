"""ReplicaSets and ReplicationControllers keep the number of their pods."""

from typing import Any

import pytest

from support.apiserver.world import LABELS, World, template, workload

SETS = "replicasets.apps"
OPEN = {"type": "x", "status": "True"}


@pytest.mark.parametrize("storage", [SETS, "replicationcontrollers"])
def test_missing_pods_are_created_and_surplus_ones_deleted(world: World, storage: str) -> None:
    """The status counts them, events record them."""
    spec = workload(replicas=3)
    if storage == "replicationcontrollers":
        spec["selector"] = LABELS
    world.create(storage, "w", spec)
    world.run(10)
    assert world.status(storage, "w")["availableReplicas"] == 3
    world.set(storage, "w", replicas=1)
    world.run(10)
    (left,) = world.all("pods")
    assert left["metadata"]["ownerReferences"][0]["name"] == "w"
    assert [reason for reason, _ in world.events()] == ["SuccessfulCreate"] * 3 + ["SuccessfulDelete"] * 2
    world.delete("pods", left["metadata"]["name"])
    world.run(10)
    assert len(world.pods()) == 1


@pytest.mark.parametrize("storage", [SETS, "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch"])
def test_pods_that_a_quota_rejects_are_retried_with_backoff(storage: str) -> None:
    """Reports of the failure do not cause retries; the pods are created once the quota allows them."""
    world = World(nodes=1)
    world.create("resourcequotas", "q", {"hard": {"pods": "0"}})
    world.run()
    before = world.store.rv
    world.create(storage, "w", {"template": template(restartPolicy="Never")} if storage == "jobs.batch" else workload())
    world.run(60)
    assert "FailedCreate" in [reason for reason, _ in world.events()]
    assert world.store.rv - before < 60
    world.delete("resourcequotas", "q")
    world.run(61)
    assert len(world.pods()) == 1


def deleted_pod(world: World, alter: Any) -> str:
    """Return which of three pods is deleted on scaling down, after the second was changed."""
    world.create(SETS, "w", workload(replicas=3))
    world.run(10)
    names = [one["metadata"]["name"] for one in world.pods()]
    alter(names[1])
    world.run(1)
    world.set(SETS, "w", replicas=2)
    world.run(10)
    left = [one["metadata"]["name"] for one in world.pods()]
    (gone,) = [number for number, name in enumerate(names) if name not in left]
    return ["first", "second", "third"][gone]


def test_a_cheap_pod_is_deleted_first(world: World) -> None:
    """The annotation pod-deletion-cost decides between otherwise equal pods."""
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    alter = lambda name: world.update("pods", name, lambda one: one["metadata"].update(annotations=cost))  # noqa: E731
    assert deleted_pod(world, alter) == "second"


def test_an_unready_pod_is_deleted_first(world: World) -> None:
    """A readiness gate of the second pod is not true."""
    world.create(SETS, "w", workload(replicas=3, template=template(readinessGates=[{"conditionType": "x"}])))
    world.run(10)
    names = [one["metadata"]["name"] for one in world.pods()]
    for name in (names[0], names[2]):
        world.update("pods", name, lambda one: one["status"]["conditions"].append(OPEN), sub="status")
    world.run()
    world.set(SETS, "w", replicas=2)
    world.run(10)
    assert [one["metadata"]["name"] for one in world.pods()] == [names[0], names[2]]


def test_many_pods_are_created_in_batches(world: World) -> None:
    """Each run creates a few hundred."""
    world.create(SETS, "w", workload(replicas=1200))
    world.run(10)
    assert world.status(SETS, "w")["availableReplicas"] == 1200


def test_finished_pods_are_replaced(world: World) -> None:
    """A failed pod does not count."""
    world.create(SETS, "w", workload(replicas=1))
    world.run(10)
    (pod,) = world.pods()
    world.update("pods", pod["metadata"]["name"], lambda one: one["status"].update(phase="Failed"), sub="status")
    world.run(10)
    assert world.phases() == ["Failed", "Running"]
    assert world.status(SETS, "w")["replicas"] == 1
