"""Volumes of claims, and resource claims of pods."""

from typing import Any

import pytest

from support.apiserver.world import World, template

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
DEVICES, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"


def claim(world: World, name: str, class_name: str, **spec: Any) -> None:
    """Create a claim of one gibibyte."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.create(CLAIMS, name, {**wanted, "storageClassName": class_name, **spec})


def volume(world: World, name: str, size: str = "1Gi", **more: Any) -> None:
    """Create a volume of the class manual."""
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    world.create(VOLUMES, name, {**spec, "storageClassName": "manual"}, **more)


def test_the_smallest_matching_volume_is_bound(world: World) -> None:
    """Of the class, and with the labels that the claim selects."""
    volume(world, "big", "10Gi")
    volume(world, "fits", "2Gi")
    volume(world, "small", "1Mi")
    volume(world, "chosen", "20Gi", metadata={"labels": {"pick": "me"}})
    claim(world, "any", "manual")
    claim(world, "choosy", "manual", selector={"matchLabels": {"pick": "me"}})
    world.run(1)
    assert world.get(CLAIMS, "any")["spec"]["volumeName"] == "fits"
    assert world.get(CLAIMS, "choosy")["spec"]["volumeName"] == "chosen"
    phases = {one["metadata"]["name"]: one["status"]["phase"] for one in world.all(VOLUMES)}
    assert phases == {"big": "Available", "fits": "Bound", "small": "Available", "chosen": "Bound"}


def test_a_claim_waits_for_a_volume(world: World) -> None:
    """An event reports the reason."""
    claim(world, "c", "manual")
    world.run(1)
    assert [reason for reason, _ in world.events()] == ["FailedBinding"]
    volume(world, "late")
    world.run(1)
    assert world.status(CLAIMS, "c")["phase"] == "Bound"


def test_a_provisioned_volume_is_deleted_with_its_claim(world: World) -> None:
    """Reclaim policy Delete; a claim whose volume was deleted by force is lost."""
    world.create(CLASSES, "fast", provisioner="example.com/p")
    claim(world, "c", "fast")
    claim(world, "d", "fast")
    world.run(1)
    assert [one["status"]["phase"] for one in world.all(VOLUMES)] == ["Bound", "Bound"]
    assert (
        "ProvisioningSucceeded",
        f"Successfully provisioned volume {world.get(CLAIMS, 'c')['spec']['volumeName']}",
    ) in world.events()
    world.delete(CLAIMS, "c")
    name = world.get(CLAIMS, "d")["spec"]["volumeName"]
    world.update(VOLUMES, name, lambda one: one["metadata"].pop("finalizers"))
    world.delete(VOLUMES, name)
    world.run(1)
    assert world.all(VOLUMES) == []
    assert world.status(CLAIMS, "d")["phase"] == "Lost"


def test_a_waiting_class_follows_the_scheduler(world: World) -> None:
    """A new volume in the zone of the selected node, or the selected volume."""
    world.create(CLASSES, "late", provisioner="example.com/p", volumeBindingMode="WaitForFirstConsumer")
    claim(world, "new", "late")
    claim(world, "named", "late")
    volume(world, "v")
    world.run(1)
    assert {reason for reason, _ in world.events()} == {"WaitForFirstConsumer"}
    assert world.status(CLAIMS, "new")["phase"] == "Pending"
    chosen = {"volume.kubernetes.io/selected-node": "node-1"}
    world.update(CLAIMS, "new", lambda one: one["metadata"].setdefault("annotations", {}).update(chosen))
    reference = {"namespace": "default", "name": "named", "kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    world.set(VOLUMES, "v", claimRef=reference)
    world.run(1)
    assert world.get(CLAIMS, "named")["spec"]["volumeName"] == "v"
    made = world.get(VOLUMES, world.get(CLAIMS, "new")["spec"]["volumeName"])
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["zone-b"]


REQUEST = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}


def device_pod(world: World, name: str) -> None:
    """Create a pod with a claim from the template t."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    world.create("pods", name, template(resourceClaims=claims, restartPolicy="Never")["spec"])


def test_a_claim_is_created_once_its_template_exists() -> None:
    """Its name is added to the status of the pod."""
    world = World(schedules=False)
    device_pod(world, "p")
    world.run(1)
    assert world.all(DEVICES) == []
    assert [reason for reason, _ in world.events()] == ["FailedResourceClaimCreation"]
    world.create(TEMPLATES, "t", {"spec": REQUEST, "metadata": {"labels": {"a": "b"}}})
    world.run(1)
    (made,) = world.all(DEVICES)
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    (status,) = world.status("pods", "p")["resourceClaimStatuses"]
    assert status == {"name": "gpu", "resourceClaimName": made["metadata"]["name"]}


def test_a_deleted_claim_is_created_again() -> None:
    """The status of the waiting pod gets the new name."""
    world = World(schedules=False)
    world.create(TEMPLATES, "t", {"spec": REQUEST})
    device_pod(world, "p")
    world.run(1)
    (first,) = world.all(DEVICES)
    world.delete(DEVICES, first["metadata"]["name"])
    world.run(1)
    (second,) = world.all(DEVICES)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    status = world.status("pods", "p")["resourceClaimStatuses"]
    assert status == [{"name": "gpu", "resourceClaimName": second["metadata"]["name"]}]


@pytest.mark.parametrize("first", [True, False])
def test_a_claim_is_reserved_for_a_pod_that_was_bound_by_hand(world: World, first: bool) -> None:
    """Whether it is allocated before or after the binding."""
    world.create(DEVICES, "c", REQUEST)
    allocation: dict[str, Any] = {"allocation": {"devices": {"results": []}}}

    def allocate() -> None:
        world.update(DEVICES, "c", lambda claim: claim.update(status=allocation), sub="status")
        world.run(1)

    if first:
        allocate()
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    world.create("pods", "p", template(resourceClaims=claims, nodeName="node-1")["spec"])
    world.run(1)
    if not first:
        assert world.status("pods", "p")["phase"] == "Pending"
        allocate()
    uid = world.get("pods", "p")["metadata"]["uid"]
    assert world.get(DEVICES, "c")["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": uid}]
    world.run(2)
    assert world.status("pods", "p")["phase"] == "Running"


@pytest.mark.parametrize("finished", [True, False])
def test_a_finished_pod_releases_its_claims(world: World, finished: bool) -> None:
    """Its own claim is deleted; a shared one is deallocated with the last pod."""
    world.create(TEMPLATES, "t", {"spec": REQUEST})
    world.create(DEVICES, "shared", REQUEST)
    claims = [{"name": "own", "resourceClaimTemplateName": "t"}, {"name": "s", "resourceClaimName": "shared"}]
    seconds = {"run-seconds": "5" if finished else "inf"}
    pod = template("i", seconds, resourceClaims=claims, restartPolicy="Never")
    world.create("pods", "p", pod["spec"], metadata={"annotations": pod["metadata"]["annotations"]})
    world.run(3)
    uid = world.get("pods", "p")["metadata"]["uid"]
    reserved = {
        "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}],
        "allocation": {"devices": {"results": []}},
    }
    for one in world.all(DEVICES):
        world.update(DEVICES, one["metadata"]["name"], lambda claim: claim.update(status=dict(reserved)), sub="status")
    world.run(1)
    assert len(world.all(DEVICES)) == 2
    if not finished:
        world.delete("pods", "p")
    world.run(10)
    (left,) = world.all(DEVICES)
    assert left["metadata"]["name"] == "shared"
    assert {"reservedFor", "allocation"} & left.get("status", {}).keys() == set()


PROTECTION = "resource.kubernetes.io/delete-protection"


def reserve(world: World, name: str, pod: str) -> None:
    """Allocate and reserve a claim, as the scheduler does."""
    reserved = {"resource": "pods", "name": pod, "uid": world.get("pods", pod)["metadata"]["uid"]}
    world.update(DEVICES, name, lambda claim: claim["metadata"].update(finalizers=[PROTECTION]))
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": [reserved]}
    world.update(DEVICES, name, lambda claim: claim.update(status=status), sub="status")


def test_a_deleted_claim_is_removed_after_its_last_pod(world: World) -> None:
    """Deletion waits for the reservation; then the claim is deallocated and removed."""
    world.create(DEVICES, "c", REQUEST)
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    world.create("pods", "p", template(resourceClaims=claims)["spec"])
    reserve(world, "c", "p")
    world.delete(DEVICES, "c")
    world.run(5)
    assert world.get(DEVICES, "c")["status"]["reservedFor"][0]["name"] == "p"
    world.delete("pods", "p")
    world.run(5)
    assert world.all(DEVICES) == []


def test_a_claim_without_reservations_is_not_protected(world: World) -> None:
    """It is removed at once, also if it is allocated."""
    world.create(DEVICES, "c", REQUEST, metadata={"finalizers": [PROTECTION]})
    allocation: dict[str, Any] = {"allocation": {"devices": {"results": []}}}
    world.update(DEVICES, "c", lambda claim: claim.update(status=allocation), sub="status")
    world.delete(DEVICES, "c")
    world.run(1)
    assert world.all(DEVICES) == []


def test_a_claim_for_extended_resources_is_deleted_with_its_pod(world: World) -> None:
    """Only the status of the pod names it."""
    world.create("pods", "p", template()["spec"])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": world.get("pods", "p")["metadata"]["uid"]}
    world.create(DEVICES, "c", REQUEST, metadata={"ownerReferences": [owner]})
    reserve(world, "c", "p")
    status = {"resourceClaimName": "c", "requestMappings": []}
    world.update("pods", "p", lambda pod: pod["status"].update(extendedResourceClaimStatus=status), sub="status")
    world.run(3)
    assert world.all(DEVICES)
    world.delete("pods", "p")
    world.run(5)
    assert world.all(DEVICES) == []
