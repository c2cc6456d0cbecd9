"""A pod whose volume is bound during its attempt: the volume decides the node, is reserved, bound, and awaited."""

from typing import Any, TypeVar

import msgspec
import pytest

from kubestow.api.codec import convert
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.start import Start

T = TypeVar("T")


def local_volume(name: str, node: str) -> PersistentVolume:
    """Return a disk of one node."""
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return convert(
        PersistentVolume,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": "/disk"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
            },
            "status": {"phase": "Available"},
        },
    )


def changed(obj: T, **changes: dict[str, Any]) -> T:
    """Return an object with some fields changed."""
    manifest = msgspec.json.decode(obj.source)  # type: ignore[attr-defined]
    for part, fields in changes.items():
        manifest.setdefault(part, {}).update(fields)
    return convert(type(obj), manifest)


def local_storage(start: Start, **options: Any) -> SchedulerHarness:
    harness = start(**options)
    for number in range(3):
        harness.cluster.add(make_node(f"n{number}"))
    harness.cluster.add(
        convert(
            StorageClass,
            {
                "metadata": {"name": "local"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )
    )
    harness.cluster.add(local_volume("disk", "n1"))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "5Gi"}},
        },
        "status": {"phase": "Pending"},
    }
    harness.cluster.add(convert(PersistentVolumeClaim, claim))
    harness.cluster.add(make_pod("db", claims=["data"]))
    return harness


def run_volume_controller(harness: SchedulerHarness) -> None:
    """Complete the binding of claim and volume that the scheduler has begun."""
    volume = harness.cluster.get(PersistentVolume, "disk")
    claim = harness.cluster.get(PersistentVolumeClaim, "default/data")
    assert volume is not None
    assert claim is not None
    assert volume.spec.claimRef is not None
    assert (volume.spec.claimRef.name, volume.spec.claimRef.uid) == ("data", claim.metadata.uid)
    harness.cluster.update(changed(volume, status={"phase": "Bound"}))
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    bound = changed(claim, spec={"volumeName": "disk"}, status={"phase": "Bound"})
    harness.cluster.update(changed(bound, metadata={"annotations": annotations}))


def test_the_pod_is_bound_when_its_volume_is(start: Start) -> None:
    """The scheduler writes the claim into the volume, and waits for the volume's controller before it binds the pod."""
    harness = local_storage(start)
    harness.run_for(3.0)
    assert harness.place_of("db") == "binding"
    assert harness.cluster.pod("db").status.nominatedNodeName == "n1"
    assert [call.call for call in harness.cluster.calls if "patch" not in call.call] == ["update_volume"]
    run_volume_controller(harness)
    harness.run_until_idle()
    assert harness.bindings == {"default/db": "n1"}
    assert harness.time == 3.0


@pytest.mark.parametrize("problem", ["Conflict", "Timeout", "InternalError"])
@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_failed_write_of_a_volume(start: Start, problem: str, takes_effect: bool) -> None:
    """The pod is requeued, and the next attempt succeeds, whether or not the write was carried out."""
    harness = local_storage(start)
    harness.cluster.faults.fail("update_volume", problem, takes_effect=takes_effect)
    harness.run_for(30.0)
    assert harness.place_of("db") == "binding"
    run_volume_controller(harness)
    harness.run_until_idle()
    assert harness.bindings == {"default/db": "n1"}


def test_a_volume_that_is_never_bound(start: Start) -> None:
    """After ten minutes the pod is rejected with a message, and retried."""
    harness = local_storage(start)
    harness.run_for(601.0)
    assert "binding volumes" in harness.cluster.conditions("db")["PodScheduled"].message
    assert len(harness.attempts.about("db")) == 1
    harness.run_for(10.0)
    assert harness.place_of("db") == "binding"
    run_volume_controller(harness)
    harness.run_until_idle()
    assert harness.bindings == {"default/db": "n1"}


SELECTED_NODE = "volume.kubernetes.io/selected-node"


def with_provisioning(start: Start) -> SchedulerHarness:
    """Start a scheduler with a pod whose volume will be provisioned on the only node with capacity."""
    harness = start()
    harness.cluster.add(make_node("full", cpu="1"))
    harness.cluster.add(make_node("free", cpu="4"))
    mode = "WaitForFirstConsumer"
    disks = {"metadata": {"name": "disks"}, "provisioner": "disks.example.com", "volumeBindingMode": mode}
    harness.cluster.add(convert(StorageClass, disks))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disks",
            "resources": {"requests": {"storage": "5Gi"}},
        },
        "status": {"phase": "Pending"},
    }
    harness.cluster.add(convert(PersistentVolumeClaim, claim))
    harness.cluster.add(make_pod("db", cpu="2", claims=["data"]))
    harness.run_for(2.0)
    return harness


def claim_of(harness: SchedulerHarness) -> PersistentVolumeClaim:
    claim = harness.cluster.get(PersistentVolumeClaim, "default/data")
    assert claim is not None
    return claim


def test_a_volume_is_provisioned_on_the_node_of_the_pod(start: Start) -> None:
    """The scheduler writes the chosen node to the claim, and binds the pod when the volume exists."""
    harness = with_provisioning(start)
    assert harness.place_of("db") == "binding"
    claim = claim_of(harness)
    assert claim.metadata.annotations[SELECTED_NODE] == "free"
    harness.cluster.add(changed(local_volume("made", "free"), spec={"storageClassName": "disks"}))
    bound = changed(claim, spec={"volumeName": "made"}, status={"phase": "Bound"})
    annotations = {**claim.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes"}
    harness.cluster.update(changed(bound, metadata={"annotations": annotations}))
    harness.run_until_idle()
    assert harness.bindings == {"default/db": "free"}
    assert harness.time == 2.0


def test_a_provisioner_that_fails_requeues_the_pod(start: Start) -> None:
    """It removes the chosen node from the claim: the pod is rejected, and retried."""
    harness = with_provisioning(start)
    harness.cluster.update(changed(claim_of(harness), metadata={"annotations": {}}))
    harness.run_for(0.5)
    assert 'selectedNode annotation reset for PVC "data"' in harness.cluster.conditions("db")["PodScheduled"].message
    assert harness.place_of("db") == "errorBackoff"
    harness.run_for(5.0)
    assert claim_of(harness).metadata.annotations[SELECTED_NODE] == "free"
    assert harness.place_of("db") == "binding"


def test_a_pod_that_is_deleted_while_its_volume_is_provisioned(start: Start) -> None:
    """The wait ends, and its reservations are released; another pod may use the claim."""
    harness = with_provisioning(start)
    harness.cluster.delete(harness.cluster.pod("db"))
    harness.run_for(1.0)
    assert harness.core.cluster.pod_count == 0
    assert len(harness.core.scheduler.binder) == 0
    harness.cluster.add(make_pod("db2", cpu="2", claims=["data"]))
    harness.run_for(1.0)
    assert harness.place_of("db2") == "binding"
