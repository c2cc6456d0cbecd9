"""VolumeRestrictions: disks and claims that pods cannot share."""

from typing import Any

import pytest

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import SKIP, Code, Rejection
from kubestow.scheduler.plugins.volume_restrictions import VolumeRestrictions
from support.plugins.volume_world import World, pod

DISK = ("node(s) had no available disk",)
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)


def world_of_two_nodes() -> World:
    made = World()
    made.node("a")
    made.node("b")
    return made


GCE = {"gcePersistentDisk": {"pdName": "d"}}
GCE_READ = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
AWS_READ = {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}}
ISCSI = {"iscsi": {"targetPortal": "p", "iqn": "i", "lun": 1}}
ISCSI_READ = {"iscsi": {"targetPortal": "q", "iqn": "i", "lun": 2, "readOnly": True}}
RBD = {"rbd": {"monitors": ["m1", "m2"], "image": "i"}}
RBD_OTHER_MONITOR = {"rbd": {"monitors": ["m3"], "image": "i"}}
RBD_OTHER_POOL = {"rbd": {"monitors": ["m2"], "image": "i", "pool": "other"}}
RBD_READ = {"rbd": {"monitors": ["m2", "m3"], "image": "i", "readOnly": True}}


@pytest.mark.parametrize(
    ("held", "wanted", "conflict"),
    [
        (GCE, GCE, True),
        (GCE_READ, GCE, True),
        (GCE_READ, GCE_READ, False),
        (GCE, {"gcePersistentDisk": {"pdName": "other"}}, False),
        (AWS_READ, AWS_READ, True),
        (ISCSI, ISCSI_READ, True),
        (ISCSI_READ, ISCSI_READ, False),
        (RBD, RBD_READ, True),
        (RBD_READ, RBD_READ, False),
        (RBD, RBD_OTHER_MONITOR, False),
        (RBD, RBD_OTHER_POOL, False),
        (GCE, AWS_READ, False),
    ],
)
def test_a_disk_cannot_be_mounted_twice_on_a_node(held: dict[str, Any], wanted: dict[str, Any], conflict: bool) -> None:
    """The node with the disk is rejected unless both mount it read-only; other nodes pass."""
    made = world_of_two_nodes()
    made.running("holder", "a", volumes=[{"name": "x"} | held])
    plugin = made.make(VolumeRestrictions)
    answer = made.evaluate(plugin, pod("new", volumes=[{"name": "y"} | wanted]))
    assert answer == ({"a": DISK} if conflict else {})


def test_pods_without_such_volumes_are_skipped() -> None:
    """Neither pods without volumes nor pods with an ordinary claim are filtered."""
    made = world_of_two_nodes()
    made.claim("shared")
    made.running("other", "a", "shared")
    plugin = made.make(VolumeRestrictions)
    assert made.evaluate(plugin, pod("new")) is SKIP
    assert made.evaluate(plugin, pod("new", "shared")) is SKIP


def test_a_missing_claim_rejects_the_pod() -> None:
    """Its access mode is unknown."""
    made = world_of_two_nodes()
    assert made.evaluate(made.make(VolumeRestrictions), pod("new", "gone")) == Rejection(
        ('persistentvolumeclaim "gone" not found',), Code.UNRESOLVABLE
    )


def test_an_exclusive_claim_in_use_rejects_every_node() -> None:
    """ReadWriteOncePod means one pod in the whole cluster."""
    made = world_of_two_nodes()
    made.claim("mine", accessModes=["ReadWriteOncePod"])
    plugin = made.make(VolumeRestrictions)
    assert made.evaluate(plugin, pod("new", "mine")) is SKIP
    made.running("holder", "a", "mine")
    assert made.evaluate(plugin, pod("new", "mine")) == {"a": IN_USE, "b": IN_USE}


def test_a_claim_used_on_an_unknown_node_is_free() -> None:
    """Pods on a node that does not exist do not count."""
    made = world_of_two_nodes()
    made.claim("mine", accessModes=["ReadWriteOncePod"])
    made.running("holder", "vanished", "mine")
    assert made.evaluate(made.make(VolumeRestrictions), pod("new", "mine")) is SKIP


def test_removing_the_holder_frees_its_claim() -> None:
    """Preemption evaluates the pod without the holder, and with it again."""
    made = world_of_two_nodes()
    made.claim("mine", accessModes=["ReadWriteOncePod"])
    holder = made.running("holder", "a", "mine")
    plugin, info = made.make(VolumeRestrictions), PodInfo(pod("new", "mine"))
    state = plugin.pre_filter(info)
    gone = plugin.with_changes(state, info, [Change(holder, 0, added=False)])
    back = plugin.with_changes(gone, info, [Change(holder, 0, added=True)])
    assert made.rejected(plugin, gone, info) == {}
    assert made.rejected(plugin, back, info) == {"a": IN_USE, "b": IN_USE}


def test_changes_of_other_pods_keep_the_state() -> None:
    """The same object is returned; added and removed users create a new one."""
    made = world_of_two_nodes()
    made.claim("mine", accessModes=["ReadWriteOncePod"])
    holder = made.running("holder", "a", "mine")
    plugin, info = made.make(VolumeRestrictions), PodInfo(pod("new", "mine"))
    state = plugin.pre_filter(info)
    assert plugin.with_changes(state, info, [Change(PodInfo(pod("other")), 0, added=False)]) is state
    moved = plugin.with_changes(state, info, [Change(holder, 0, added=False), Change(holder, 1, added=True)])
    assert moved is not state


def test_a_filter_without_its_pre_filter_is_an_error() -> None:
    """A profile that enables Filter alone gets an error that explains the fix."""
    made = world_of_two_nodes()
    plugin = made.make(VolumeRestrictions)
    with pytest.raises(ValueError, match="cannot filter without its PreFilter"):
        made.rejected(plugin, None, PodInfo(pod("new", "mine")))


def hint(made: World, resource: str) -> Any:
    plugin = made.make(VolumeRestrictions)
    return next(r.hint for r in plugin.requeue_on() if r.event.resource == resource)


def test_a_deleted_pod_with_the_same_volume_requeues() -> None:
    """The same disk or the same claim, in the same namespace."""
    freed = hint(world_of_two_nodes(), "AssignedPod")
    waiting = pod("new", "mine", volumes=[{"name": "y"} | GCE])
    assert freed(waiting, pod("old", "mine"), None)
    assert freed(waiting, pod("old", volumes=[{"name": "x"} | GCE]), None)
    assert not freed(waiting, pod("old", "other"), None)
    assert not freed(waiting, pod("old", "mine", namespace="elsewhere"), None)


def test_a_new_claim_that_the_pod_names_requeues() -> None:
    """Claims with other names do not."""
    made = world_of_two_nodes()
    named = hint(made, "PersistentVolumeClaim")
    assert named(pod("new", "mine"), None, made.claim("mine"))
    assert not named(pod("new", "mine"), None, made.claim("other"))
    assert not named(pod("new", "mine", namespace="elsewhere"), None, made.claim("mine"))
