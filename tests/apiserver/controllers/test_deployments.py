"""Deployments: rollouts, rollbacks, pauses, and their status."""

from typing import Any

import pytest

from kubestow.apiserver.store.records import Change
from support.apiserver.world import World, template, workload

DEPLOYMENTS, SETS = "deployments.apps", "replicasets.apps"
REVISION = "deployment.kubernetes.io/revision"


def sizes(world: World) -> dict[str, int]:
    """Return the replicas by revision."""
    return {one["metadata"]["annotations"][REVISION]: one["spec"]["replicas"] for one in world.all(SETS)}


def reasons(world: World) -> dict[str, str]:
    """Return the reasons of conditions by type."""
    return {one["type"]: one["reason"] for one in world.status(DEPLOYMENTS, "w")["conditions"]}


def rolled_out(world: World) -> bool:
    """Return whether all pods have the current template and are available."""
    deployment = world.get(DEPLOYMENTS, "w")
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    counts = [status.get(name) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == [wanted] * 3


def test_a_new_template_is_rolled_out(world: World) -> None:
    """It gets a new set; the old one is kept without pods; each step records an event."""
    world.create(DEPLOYMENTS, "w", workload(replicas=4))
    world.run(10)
    assert reasons(world) == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
    world.set(DEPLOYMENTS, "w", template=template("i:2"))
    world.run(30)
    assert sizes(world) == {"1": 0, "2": 4}
    assert world.get(DEPLOYMENTS, "w")["metadata"]["annotations"][REVISION] == "2"
    messages = [message for reason, message in world.events("Deployment") if reason == "ScalingReplicaSet"]
    first, second = (one["metadata"]["name"] for one in world.all(SETS))
    assert messages[:2] == [f"Scaled up replica set {first} from 0 to 4", f"Scaled up replica set {second} from 0 to 1"]
    assert messages[-1] == f"Scaled down replica set {first} from 1 to 0"


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), (2, 2), ("25%", "25%"), ("100%", 0)])
def test_a_rollout_keeps_the_number_of_pods_in_bounds(world: World, surge: Any, unavailable: Any) -> None:
    """Pods are counted after every change."""
    limits = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    world.create(DEPLOYMENTS, "w", workload(replicas=4, strategy=limits))
    world.until(lambda: rolled_out(world))
    most, least = [], []

    def count(_: Change) -> None:
        pods = world.pods()
        most.append(len(pods))
        least.append(
            sum(
                1
                for one in pods
                for c in one["status"].get("conditions", ())
                if (c["type"], c["status"]) == ("Ready", "True")
            )
        )

    world.watch("pods", count)
    world.set(DEPLOYMENTS, "w", template=template("i:2"))
    world.until(lambda: rolled_out(world))
    extra = {"25%": 1, "100%": 4}.get(str(surge), surge)
    missing = {"25%": 1}.get(str(unavailable), unavailable)
    assert max(most) <= 4 + int(extra)
    assert min(least) >= 4 - int(missing)


def test_recreate_waits_until_the_old_pods_are_gone(world: World) -> None:
    """A deletion that is still in progress is not enough."""
    world.create(DEPLOYMENTS, "w", workload(replicas=2, strategy={"type": "Recreate"}))
    world.until(lambda: rolled_out(world))
    images: set[frozenset[str]] = set()
    world.watch(
        "pods", lambda _: images.add(frozenset(one["spec"]["containers"][0]["image"] for one in world.all("pods")))
    )
    world.set(DEPLOYMENTS, "w", template=template("i:2"))
    world.until(lambda: rolled_out(world))
    assert frozenset({"i:1", "i:2"}) not in images


def test_a_paused_deployment_changes_nothing_but_its_size(world: World) -> None:
    """The status shows the pause; after resuming, the rollout continues."""
    world.create(DEPLOYMENTS, "w", workload(replicas=2))
    world.run(10)
    world.set(DEPLOYMENTS, "w", paused=True, template=template("i:2"), replicas=3)
    world.run(30)
    assert sizes(world) == {"1": 3}
    assert world.condition(DEPLOYMENTS, "w", "Progressing")["reason"] == "DeploymentPaused"
    world.set(DEPLOYMENTS, "w", paused=False)
    world.run(30)
    assert sizes(world) == {"1": 0, "2": 3}
    assert world.condition(DEPLOYMENTS, "w", "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_going_back_makes_an_old_set_the_newest(world: World) -> None:
    """As with kubectl rollout undo, which writes the old template."""
    world.create(DEPLOYMENTS, "w", workload(replicas=1))
    world.run(10)
    world.set(DEPLOYMENTS, "w", template=template("i:2"))
    world.run(10)
    world.set(DEPLOYMENTS, "w", template=template("i:1"))
    world.run(10)
    assert sizes(world) == {"2": 0, "3": 1}
    back = next(one for one in world.all(SETS) if one["spec"]["replicas"])
    assert back["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"


def test_a_cause_of_change_is_kept_with_its_set(world: World) -> None:
    """kubectl rollout history shows it."""
    cause = "kubernetes.io/change-cause"
    world.create(DEPLOYMENTS, "w", workload(replicas=1), metadata={"annotations": {cause: "first"}})
    world.run()
    world.update(DEPLOYMENTS, "w", lambda one: one["metadata"]["annotations"].update({cause: "second"}))
    world.set(DEPLOYMENTS, "w", template=template("i:2"))
    world.run()
    assert [one["metadata"]["annotations"][cause] for one in world.all(SETS)] == ["first", "second"]


def test_old_sets_are_deleted(world: World) -> None:
    """All but the last revisionHistoryLimit sets, after a rollout has completed."""
    world.create(DEPLOYMENTS, "w", workload(replicas=1, revisionHistoryLimit=1))
    for number in range(2, 6):
        world.run(10)
        world.set(DEPLOYMENTS, "w", template=template(f"i:{number}"))
    world.run(10)
    assert sizes(world) == {"4": 0, "5": 1}


def test_a_rollout_without_progress_fails(world: World) -> None:
    """After progressDeadlineSeconds, with a condition."""
    world.create(DEPLOYMENTS, "w", workload(replicas=2, progressDeadlineSeconds=60))
    world.run(10)
    world.set(DEPLOYMENTS, "w", template=template("i:2", {"ready-seconds": "inf"}))
    world.run(50)
    assert world.condition(DEPLOYMENTS, "w", "Progressing")["reason"] == "ReplicaSetUpdated"
    world.run(20)
    failed = world.condition(DEPLOYMENTS, "w", "Progressing")
    assert (failed["status"], failed["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert failed["message"].endswith("has timed out progressing.")
    world.set(DEPLOYMENTS, "w", template=template("i:3"))
    world.run(20)
    assert world.condition(DEPLOYMENTS, "w", "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_pods_count_once_they_have_been_ready_for_long_enough(world: World) -> None:
    """minReadySeconds delays availability, and with it the rollout."""
    world.create(DEPLOYMENTS, "w", workload(replicas=1, minReadySeconds=30))
    world.run(20)
    status = world.status(DEPLOYMENTS, "w")
    assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (1, 0)
    world.run(20)
    assert world.status(DEPLOYMENTS, "w")["availableReplicas"] == 1


def test_scaling_during_a_rollout_keeps_proportions(world: World) -> None:
    """A stuck rollout of ten pods, eight old and five new, is scaled to thirty: both sets grow."""
    limits = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    world.create(DEPLOYMENTS, "w", workload(replicas=10, strategy=limits))
    world.run(20)
    world.set(DEPLOYMENTS, "w", template=template("i:2", {"ready-seconds": "inf"}))
    world.run(20)
    assert sizes(world) == {"1": 8, "2": 5}
    world.set(DEPLOYMENTS, "w", replicas=30)
    world.run(20)
    assert sizes(world) == {"1": 20, "2": 13}


def test_a_rejected_pod_is_reported_in_the_status(world: World) -> None:
    """The set has a condition, which the Deployment copies."""
    broken = template()
    broken["spec"]["priorityClassName"] = "nobody"
    world.create(DEPLOYMENTS, "w", {**workload(replicas=1), "template": broken})
    world.run()
    assert (
        "no PriorityClass with name nobody was found" in world.condition(DEPLOYMENTS, "w", "ReplicaFailure")["message"]
    )
    assert ("FailedCreate", "Error creating: ") in [
        (reason, message[:16]) for reason, message in world.events("ReplicaSet")
    ]
    world.create("priorityclasses.scheduling.k8s.io", "nobody", value=5)
    world.run(120)
    assert rolled_out(world)
    assert world.condition(DEPLOYMENTS, "w", "ReplicaFailure") == {}


def test_writing_a_default_value_starts_no_rollout(world: World) -> None:
    """`hostNetwork: false` equals a missing field: kubectl rollout undo omits what create sent."""
    world.create(DEPLOYMENTS, "w", workload(replicas=1))
    world.run()
    world.update(
        DEPLOYMENTS, "w", lambda one: one["spec"]["template"]["spec"].update(hostNetwork=False, nodeSelector={})
    )
    world.run()
    assert len(world.all(SETS)) == 1


def test_a_name_in_use_is_avoided(world: World) -> None:
    """A ReplicaSet with the same name and another owner does not block the rollout."""
    world.create(DEPLOYMENTS, "w", workload(replicas=1))
    world.run()
    (taken,) = world.all(SETS)
    world.delete(DEPLOYMENTS, "w", propagation="Orphan")
    world.update(SETS, taken["metadata"]["name"], lambda one: one["metadata"].update(labels={"app": "other"}))
    other = {**workload(replicas=1)}
    world.create(DEPLOYMENTS, "w", other)
    world.run()
    assert len(world.all(SETS)) == 2
    assert world.status(DEPLOYMENTS, "w")["collisionCount"] == 1
