"""A pod whose volume is bound on the way: the volume decides the node, is reserved, bound, and waited for."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest

from kubestow.model.codec import convert
from kubestow.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.testing import SchedulerHarness, make_node, make_pod

Start = Callable[..., SchedulerHarness]
T = TypeVar("T")


def local_volume(name: str, node: str) -> PersistentVolume:
    """A disk of one node."""
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
    """An object with some fields changed."""
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


def play_volume_controller(harness: SchedulerHarness) -> None:
    """Completes what the scheduler began: claim and volume know each other."""
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
    play_volume_controller(harness)
    harness.run_until_idle()
    assert harness.bindings == {"default/db": "n1"}
    assert harness.time == 3.0


@pytest.mark.parametrize("problem", ["Conflict", "Timeout", "InternalError"])
@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_volume_that_could_not_be_written(start: Start, problem: str, takes_effect: bool) -> None:
    """The pod goes back, and the next attempt succeeds, whatever became of the first."""
    harness = local_storage(start)
    harness.cluster.faults.fail("update_volume", problem, takes_effect=takes_effect)
    harness.run_for(30.0)
    assert harness.place_of("db") == "binding"
    play_volume_controller(harness)
    harness.run_until_idle()
    assert harness.bindings == {"default/db": "n1"}


def test_a_volume_that_never_gets_ready(start: Start) -> None:
    """After ten minutes the pod gives up its place, says so, and is tried again."""
    harness = local_storage(start)
    harness.run_for(601.0)
    assert "binding volumes" in harness.cluster.conditions("db")["PodScheduled"].message
    assert len(harness.attempts.about("db")) == 1
    harness.run_for(10.0)
    assert harness.place_of("db") == "binding"
    play_volume_controller(harness)
    harness.run_until_idle()
    assert harness.bindings == {"default/db": "n1"}
