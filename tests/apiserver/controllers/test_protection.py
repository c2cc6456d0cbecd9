"""Protection of claims and volumes in use, and ephemeral volumes."""

from typing import Any

import pytest

from support.apiserver.world import World

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}


@pytest.fixture(autouse=True)
def _fast_class(world: World) -> None:
    world.create("storageclasses.storage.k8s.io", "fast", provisioner="example.com/p")


def create_pod(world: World, name: str, volume: dict[str, Any]) -> None:
    """Create a pod with a volume."""
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", **volume}]}
    world.create("pods", name, spec)


def test_a_claim_is_kept_while_a_pod_mounts_it(world: World) -> None:
    """It is removed with the last pod, and its volume with it."""
    world.create(CLAIMS, "c", CLAIM)
    for name in ("a", "b"):
        create_pod(world, name, {"persistentVolumeClaim": {"claimName": "c"}})
    world.run(5)
    assert world.get(CLAIMS, "c")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    world.delete(CLAIMS, "c")
    world.delete("pods", "a")
    world.run(60)
    assert "deletionTimestamp" in world.get(CLAIMS, "c")["metadata"]
    world.delete("pods", "b")
    world.run(60)
    assert world.find(CLAIMS, "c") is None
    assert world.all(VOLUMES) == []


def test_a_pod_without_a_node_does_not_keep_a_claim(world: World) -> None:
    """The claim can be replaced before the pod is scheduled."""
    world.create(CLAIMS, "c", CLAIM)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    gates = {"schedulingGates": [{"name": "wait"}]}
    world.create("pods", "a", {"containers": [{"name": "c", "image": "i"}], "volumes": [volume], **gates})
    world.run(5)
    world.delete(CLAIMS, "c")
    world.run(5)
    assert world.find(CLAIMS, "c") is None


def test_a_volume_is_kept_while_it_is_bound(world: World) -> None:
    """It is removed after its claim."""
    world.create(CLAIMS, "c", CLAIM)
    world.run(1)
    (volume,) = world.all(VOLUMES)
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    world.delete(VOLUMES, volume["metadata"]["name"])
    world.run(10)
    assert world.status(CLAIMS, "c")["phase"] == "Bound"
    world.delete(CLAIMS, "c")
    world.run(10)
    assert (world.all(CLAIMS), world.all(VOLUMES)) == ([], [])


def test_an_ephemeral_volume_lives_as_long_as_its_pod(world: World) -> None:
    """Its claim is created from the template, bound, and collected after the pod."""
    template = {"metadata": {"labels": {"for": "a"}}, "spec": CLAIM}
    create_pod(world, "a", {"ephemeral": {"volumeClaimTemplate": template}})
    world.run(10)
    claim = world.get(CLAIMS, "a-v")
    assert (claim["status"]["phase"], claim["metadata"]["labels"]) == ("Bound", {"for": "a"})
    assert [one["name"] for one in claim["metadata"]["ownerReferences"]] == ["a"]
    world.delete("pods", "a")
    world.run(60)
    assert world.find(CLAIMS, "a-v") is None


def test_a_claim_with_another_owner_is_not_used(world: World) -> None:
    """An event reports the conflict, until the name is free."""
    world.create(CLAIMS, "a-v", CLAIM)
    create_pod(world, "a", {"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}})
    world.run(5)
    assert ("FailedCreate", True) in [
        (why, "was not created for pod default/a" in text) for why, text in world.events()
    ]
