"""Volumes for claims, and resource claims for pods."""

from typing import Any

import pytest

from apiserver.world import World, template

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
DEVICES, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"


@pytest.fixture
def world() -> World:
    """Three nodes in three zones."""
    return World()


def claim(world: World, name: str, class_name: str, **spec: Any) -> None:
    """A claim for a gibibyte."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.create(CLAIMS, name, {**wanted, "storageClassName": class_name, **spec})


def volume(world: World, name: str, size: str = "1Gi", **more: Any) -> None:
    """A volume of class manual."""
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    world.create(VOLUMES, name, {**spec, "storageClassName": "manual"}, **more)


def test_the_smallest_volume_that_fits_is_taken(world: World) -> None:
    """Of the class, and with the labels the claim selects."""
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
    """And is told why."""
    claim(world, "c", "manual")
    world.run(1)
    assert [reason for reason, _ in world.events()] == ["FailedBinding"]
    volume(world, "late")
    world.run(1)
    assert world.status(CLAIMS, "c")["phase"] == "Bound"


def test_a_provisioner_makes_a_volume_that_goes_with_its_claim(world: World) -> None:
    """Reclaim policy Delete; a volume that somebody takes by force leaves its claim lost."""
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


def test_a_waiting_class_binds_where_the_scheduler_says(world: World) -> None:
    """To a new volume in the zone of the node, or to the volume the scheduler named."""
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
    """A pod with a claim from the template t."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    world.create("pods", name, template(resourceClaims=claims, restartPolicy="Never")["spec"])


def test_a_claim_is_made_once_there_is_a_template() -> None:
    """The pod learns its name."""
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
    (told,) = world.status("pods", "p")["resourceClaimStatuses"]
    assert told == {"name": "gpu", "resourceClaimName": made["metadata"]["name"]}


def test_a_claim_that_somebody_deletes_is_made_again() -> None:
    """The pod that waits learns the new name."""
    world = World(schedules=False)
    world.create(TEMPLATES, "t", {"spec": REQUEST})
    device_pod(world, "p")
    world.run(1)
    (first,) = world.all(DEVICES)
    world.delete(DEVICES, first["metadata"]["name"])
    world.run(1)
    (second,) = world.all(DEVICES)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    told = world.status("pods", "p")["resourceClaimStatuses"]
    assert told == [{"name": "gpu", "resourceClaimName": second["metadata"]["name"]}]


@pytest.mark.parametrize("first", [True, False])
def test_a_claim_is_reserved_for_a_pod_that_was_bound_by_hand(world: World, first: bool) -> None:
    """Whether it has its devices already or gets them later."""
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
def test_a_pod_that_is_done_frees_its_claims(world: World, finished: bool) -> None:
    """One made for it goes, one that it shares loses its reservation, and its allocation with the last."""
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
    """What the scheduler does to a claim."""
    reserved = {"resource": "pods", "name": pod, "uid": world.get("pods", pod)["metadata"]["uid"]}
    world.update(DEVICES, name, lambda claim: claim["metadata"].update(finalizers=[PROTECTION]))
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": [reserved]}
    world.update(DEVICES, name, lambda claim: claim.update(status=status), sub="status")


def test_a_claim_in_use_goes_when_its_last_pod_is_done(world: World) -> None:
    """Deletion waits for the reservation; then the claim loses devices and protection, and is gone."""
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


def test_a_claim_that_nobody_holds_is_not_protected(world: World) -> None:
    """The scheduler may have allocated it for nobody; it goes at once."""
    world.create(DEVICES, "c", REQUEST, metadata={"finalizers": [PROTECTION]})
    allocation: dict[str, Any] = {"allocation": {"devices": {"results": []}}}
    world.update(DEVICES, "c", lambda claim: claim.update(status=allocation), sub="status")
    world.delete(DEVICES, "c")
    world.run(1)
    assert world.all(DEVICES) == []


def test_a_claim_for_extended_resources_goes_with_its_pod(world: World) -> None:
    """Only the status of the pod names it."""
    world.create("pods", "p", template()["spec"])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": world.get("pods", "p")["metadata"]["uid"]}
    world.create(DEVICES, "c", REQUEST, metadata={"ownerReferences": [owner]})
    reserve(world, "c", "p")
    told = {"resourceClaimName": "c", "requestMappings": []}
    world.update("pods", "p", lambda pod: pod["status"].update(extendedResourceClaimStatus=told), sub="status")
    world.run(3)
    assert world.all(DEVICES)
    world.delete("pods", "p")
    world.run(5)
    assert world.all(DEVICES) == []
