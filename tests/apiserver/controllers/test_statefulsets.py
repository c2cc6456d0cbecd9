"""StatefulSets: names, order, claims, partitions, revisions."""

from typing import Any

import pytest

from kubestow.apiserver.store.records import Change
from support.apiserver.world import World, template, workload

SETS, CLAIMS = "statefulsets.apps", "persistentvolumeclaims"
HASH = "controller-revision-hash"


def stateful(image: str = "i:1", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the spec of a StatefulSet."""
    return {"serviceName": "s", **workload(image, annotations, **spec)}


def names(world: World) -> list[str]:
    """Return the sorted names of the pods that are not being deleted."""
    return sorted(one["metadata"]["name"] for one in world.pods())


def images(world: World) -> dict[str, str]:
    """Return the images of pods by name."""
    return {one["metadata"]["name"]: one["spec"]["containers"][0]["image"] for one in world.pods()}


def order(world: World) -> list[tuple[str, str]]:
    """Record the changes of pods: created, ready, deleted."""
    seen: list[tuple[str, str]] = []

    def note(change: Change) -> None:
        pod = change.record.object()
        ready = any((one["type"], one["status"]) == ("Ready", "True") for one in pod["status"].get("conditions", ()))
        what = {"ADDED": "made", "DELETED": "gone"}.get(change.type, "ready" if ready else "")
        if "deletionTimestamp" in pod["metadata"] and change.type != "DELETED":
            what = "going"
        if what and (what, change.record.name) not in seen:
            seen.append((what, change.record.name))

    world.watch("pods", note)
    return seen


def test_pods_are_created_in_order_and_deleted_in_reverse(world: World) -> None:
    """Each waits until the previous one is ready, or removed."""
    seen = order(world)
    world.create(SETS, "w", stateful(replicas=3))
    world.run(20)
    expected = [(what, f"w-{number}") for number in range(3) for what in ("made", "ready")]
    assert seen == expected
    del seen[:]
    world.set(SETS, "w", replicas=1)
    world.run(20)
    assert seen == [("going", "w-2"), ("gone", "w-2"), ("going", "w-1"), ("gone", "w-1")]
    assert ("SuccessfulDelete", "delete Pod w-2 in StatefulSet w successful") in world.events("StatefulSet")


def test_parallel_pods_do_not_wait(world: World) -> None:
    """All are created at the same time, ready or not."""
    world.create(SETS, "w", stateful("i:1", {"ready-seconds": "inf"}, replicas=3, podManagementPolicy="Parallel"))
    world.run(1)
    assert names(world) == ["w-0", "w-1", "w-2"]


def test_pods_have_a_stable_identity(world: World) -> None:
    """Name, host name, labels and service."""
    world.create(SETS, "w", stateful(replicas=1, ordinals={"start": 5}))
    world.run()
    (pod,) = world.pods()
    assert (pod["metadata"]["name"], pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("w-5", "w-5", "s")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "w-5"
    assert labels["apps.kubernetes.io/pod-index"] == "5"
    assert labels[HASH] == world.status(SETS, "w")["updateRevision"]


def test_an_update_goes_from_the_highest_ordinal_down(world: World) -> None:
    """One pod at a time; then the update revision becomes the current one."""
    world.create(SETS, "w", stateful(replicas=3))
    world.run(20)
    first = world.status(SETS, "w")["currentRevision"]
    seen = order(world)
    world.set(SETS, "w", template=template("i:2"))
    world.run(1.5)
    status = world.status(SETS, "w")
    assert (status["currentRevision"], status["currentReplicas"]) == (first, 2)
    world.run(30)
    assert [name for what, name in seen if what == "going"] == ["w-2", "w-1", "w-0"]
    status = world.status(SETS, "w")
    assert status["currentRevision"] == status["updateRevision"] != first
    assert status["currentReplicas"] == status["updatedReplicas"] == 3


def test_a_partition_holds_the_lower_ordinals_back(world: World) -> None:
    """Also when their pods are deleted and created again."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    world.create(SETS, "w", stateful(replicas=3, updateStrategy=rolling))
    world.run(20)
    world.set(SETS, "w", template=template("i:2"))
    world.run(20)
    assert images(world) == {"w-0": "i:1", "w-1": "i:1", "w-2": "i:2"}
    world.delete("pods", "w-1")
    world.run(20)
    assert images(world)["w-1"] == "i:1"
    world.set(SETS, "w", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    world.run(30)
    assert set(images(world).values()) == {"i:2"}


def test_on_delete_replaces_only_deleted_pods(world: World) -> None:
    """The new pods have the new revision."""
    world.create(SETS, "w", stateful(replicas=2, updateStrategy={"type": "OnDelete"}))
    world.run(20)
    world.set(SETS, "w", template=template("i:2"))
    world.run(20)
    assert set(images(world).values()) == {"i:1"}
    world.delete("pods", "w-0")
    world.run(20)
    assert images(world) == {"w-0": "i:2", "w-1": "i:1"}


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_several_pods_may_be_unavailable(world: World, policy: str) -> None:
    """Up to maxUnavailable."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    world.create(SETS, "w", stateful(replicas=5, podManagementPolicy=policy, updateStrategy=rolling))
    world.run(30)
    least = [5]

    def count(_: Change) -> None:
        ready = [one for one in world.pods() if one["status"]["phase"] == "Running"]
        least.append(len(ready))

    world.watch("pods", count)
    world.set(SETS, "w", template=template("i:2"))
    world.run(60)
    assert set(images(world).values()) == {"i:2"}
    assert min(least) == 3


def test_a_pod_that_ended_is_created_again(world: World) -> None:
    """With the same name."""
    world.create(SETS, "w", stateful(replicas=1))
    world.run(10)
    uid = world.get("pods", "w-0")["metadata"]["uid"]
    world.update("pods", "w-0", lambda one: one["status"].update(phase="Failed"), sub="status")
    world.run(10)
    assert world.get("pods", "w-0")["metadata"]["uid"] != uid


def claim() -> dict[str, Any]:
    """Return a claim template."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "data"}, "spec": spec}


@pytest.mark.parametrize(
    ("deleted", "scaled", "after_scaling", "after_deletion"),
    [
        ("Retain", "Retain", [0, 1, 2], [0, 1, 2]),
        ("Retain", "Delete", [0], [0]),
        ("Delete", "Retain", [0, 1, 2], []),
        ("Delete", "Delete", [0], []),
    ],
)
def test_the_retention_policy_decides_about_claims(
    world: World, deleted: str, scaled: str, after_scaling: list[int], after_deletion: list[int]
) -> None:
    """When the set is scaled down, and when it is deleted."""
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    world.create(
        SETS, "w", stateful(replicas=3, volumeClaimTemplates=[claim()], persistentVolumeClaimRetentionPolicy=policy)
    )
    world.run(20)
    assert world.get("pods", "w-1")["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data-w-1"}
    world.set(SETS, "w", replicas=1)
    world.run(20)
    assert sorted(one["metadata"]["name"] for one in world.all(CLAIMS)) == [f"data-w-{n}" for n in after_scaling]
    world.delete(SETS, "w")
    world.run(20)
    assert sorted(one["metadata"]["name"] for one in world.all(CLAIMS)) == [f"data-w-{n}" for n in after_deletion]


def test_revisions_are_kept_and_reused(world: World) -> None:
    """One for each template, up to the limit; a restored template becomes the newest."""
    world.create(SETS, "w", stateful(replicas=1, revisionHistoryLimit=2))
    for number in (2, 3, 4, 5):
        world.run(20)
        world.set(SETS, "w", template=template(f"i:{number}"))
    world.run(20)
    revisions = world.all("controllerrevisions.apps")
    assert sorted(one["revision"] for one in revisions) == [3, 4, 5]
    back = next(one for one in revisions if one["revision"] == 3)
    world.set(SETS, "w", template={k: v for k, v in back["data"]["spec"]["template"].items() if k != "$patch"})
    world.run(20)
    assert world.get("controllerrevisions.apps", back["metadata"]["name"])["revision"] == 6
    assert images(world) == {"w-0": "i:3"}
