"""VolumeBinding: the claims of a pod after its node is chosen."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.claims import BIND_COMPLETED, SELECTED_NODE
from kubestow.api.meta import ObjectReference
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.config.plugin_args import VolumeBindingArgs
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.plugins.volume_binding import VolumeBinding
from kubestow.scheduler.plugins.volume_binding.binding import BindingError
from support.plugins.volume_world import HOSTNAME, World, affinity, pod

TIMEOUT = 30


class Attempt:
    """A pod with claims, to be bound on node a. `happen` is what the cluster does while it waits, step by step."""

    def __init__(self, made: World, *claims: str) -> None:
        self.made = made
        self.plugin = made.make(VolumeBinding, VolumeBindingArgs(bindTimeoutSeconds=TIMEOUT))
        self.pod = PodInfo(pod("new", *claims))
        self.state = self.plugin.pre_filter(self.pod)
        self.happen: list[Callable[[], object]] = []
        self.waited: list[float] = []
        made.handle.wait_until = self._wait_until

    async def _wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        self.waited.append(seconds)
        for step in [lambda: None, *self.happen]:
            step()
            if condition():
                return True
        return False

    def reserve(self) -> Any:
        self.made.cluster.assume(self.pod, "a")
        return self.plugin.reserve(self.state, self.pod, "a")

    def bind(self) -> None:
        asyncio.run(self.plugin.pre_bind(self.state, self.pod, "a"))

    def fail(self) -> str:
        with pytest.raises(BindingError) as caught:
            self.bind()
        return str(caught.value)

    def give_up(self) -> None:
        self.plugin.unreserve(self.state, self.pod, "a")
        self.made.cluster.forget(self.pod.uid)


def world_with_a_disk() -> World:
    made = World()
    made.node("a")
    made.node("b")
    made.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    made.storage_class("cloud")
    made.volume("disk", on="a")
    made.claim("data")
    made.claim("new-disk", "cloud")
    return made


def volume(made: World, name: str = "disk") -> PersistentVolume:
    found = made.cluster.listers.volumes.get(name)
    assert found is not None
    return found


def claim(made: World, name: str) -> PersistentVolumeClaim:
    found = made.cluster.listers.claims.get(f"default/{name}")
    assert found is not None
    return found


def seen(made: World, obj: Any, version: int = 200, **spec: Any) -> None:
    """Deliver an object by the watch, with some fields of its spec changed."""
    changed = replace(obj.spec, **spec)
    made.cluster.set_object(replace(obj, metadata=replace(obj.metadata, resourceVersion=str(version)), spec=changed))


def seen_bound(made: World, name: str, volume_name: str) -> None:
    """Deliver a claim that controllers have bound."""
    obj = claim(made, name)
    noted = obj.metadata.annotations | {BIND_COMPLETED: "yes"}
    seen(made, replace(obj, metadata=replace(obj.metadata, annotations=noted)), volumeName=volume_name)


def test_a_reserved_volume_is_not_offered_again() -> None:
    """The next pod does not find it; after unreserve it is free again."""
    made = world_with_a_disk()
    made.claim("other")
    first = Attempt(made, "data")
    assert first.reserve() is None
    assert volume(made).spec.claimRef == ObjectReference(
        apiVersion="v1",
        kind="PersistentVolumeClaim",
        namespace="default",
        name="data",
        uid="uid-data",
        resourceVersion="1",
    )
    plugin = made.make(VolumeBinding, VolumeBindingArgs())
    assert made.evaluate(plugin, pod("second", "other")).keys() == {"a", "b"}
    first.give_up()
    assert volume(made).spec.claimRef is None
    assert made.evaluate(plugin, pod("second", "other")).keys() == {"b"}


def test_a_reserved_claim_restricts_other_pods_to_its_node() -> None:
    """A second pod with the claim must use the same node, until unreserve."""
    made = world_with_a_disk()
    first = Attempt(made, "new-disk")
    first.reserve()
    assert claim(made, "new-disk").metadata.annotations == {SELECTED_NODE: "a"}
    plugin = made.make(VolumeBinding, VolumeBindingArgs())
    assert made.evaluate(plugin, pod("second", "new-disk")).keys() == {"b"}
    first.give_up()
    assert made.evaluate(plugin, pod("second", "new-disk")) == {}


def test_the_smallest_matching_volume_is_used() -> None:
    """Each claim gets the smallest volume that earlier claims left."""
    made = world_with_a_disk()
    made.volume("tight", on="a", size="6Gi")
    made.volume("roomy", on="a", size="90Gi")
    made.claim("large", size="8Gi")
    attempt = Attempt(made, "large", "data")
    attempt.reserve()
    kept = {name: volume(made, name).spec.claimRef for name in ("tight", "disk", "roomy")}
    assert {name: reference and reference.name for name, reference in kept.items()} == {
        "tight": "data",
        "disk": "large",
        "roomy": None,
    }


def test_bound_claims_need_no_binding() -> None:
    """A pod with bound claims does not wait."""
    made = world_with_a_disk()
    made.volume("bound", claim="ready")
    made.claim("ready", volume="bound")
    attempt = Attempt(made, "ready")
    assert attempt.reserve() is None
    assert not attempt.plugin.pre_bind_needed(attempt.state, attempt.pod, "a")
    attempt.bind()
    attempt.give_up()
    assert made.api.updates == []


def test_reserve_rejects_a_node_that_is_no_longer_feasible() -> None:
    """Volumes may change before the node is chosen."""
    made = world_with_a_disk()
    attempt = Attempt(made, "data")
    made.node("a", **{HOSTNAME: "renamed"})
    rejected = attempt.reserve()
    assert rejected.reasons == ("node(s) didn't find available persistent volumes to bind",)


def test_a_volume_that_changed_meanwhile_is_not_assumed() -> None:
    """Reserve fails, and earlier assumptions are undone."""
    made = world_with_a_disk()
    attempt = Attempt(made, "data", "new-disk")
    seen(made, claim(made, "new-disk"), version=7)
    with pytest.raises(BindingError, match=r'"default/new-disk" is out of sync \(stored: 7, assume: 1\)'):
        attempt.reserve()
    assert volume(made).spec.claimRef is None


def test_volumes_and_claims_are_written_and_waited_for() -> None:
    """The volume gets its claim, the claim its node; then all must be bound before the timeout."""
    made = world_with_a_disk()
    attempt = Attempt(made, "data", "new-disk")
    attempt.reserve()
    assert attempt.plugin.pre_bind_needed(attempt.state, attempt.pod, "a")

    def provisioned() -> None:
        made.volume("made", "cloud", nodeAffinity=affinity(HOSTNAME, "a"))
        seen_bound(made, "new-disk", "made")

    attempt.happen = [
        lambda: seen(made, volume(made)),
        lambda: seen_bound(made, "data", "disk"),
        lambda: seen(made, claim(made, "new-disk")),
        provisioned,
    ]
    attempt.bind()
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "data",
        "uid": "uid-data",
        "resourceVersion": "1",
    }
    bound_by = {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}
    assert made.api.updates == [
        ("disk", {"metadata": bound_by, "spec": {"claimRef": reference}}),
        ("new-disk", {"metadata": {"annotations": {SELECTED_NODE: "a"}}}),
    ]
    assert attempt.waited == [TIMEOUT]


def test_a_reserved_volume_gets_only_missing_fields() -> None:
    """A volume that a user reserved by name lacks the annotation of the controller."""
    made = world_with_a_disk()
    made.volume("disk", on="a", claimRef={"namespace": "default", "name": "data"})
    attempt = Attempt(made, "data")
    attempt.reserve()
    attempt.happen = [lambda: seen(made, volume(made)), lambda: seen_bound(made, "data", "disk")]
    attempt.bind()
    ((name, changes),) = made.api.updates
    assert name == "disk"
    assert changes.keys() == {"spec"}


def test_binding_timeout() -> None:
    """The pod is then tried again from the start."""
    made = world_with_a_disk()
    attempt = Attempt(made, "new-disk")
    attempt.reserve()
    assert attempt.fail() == "binding volumes: context deadline exceeded"


def test_written_changes_are_not_undone() -> None:
    """After a failed wait, the written objects stay assumed until the watch delivers others."""
    made = world_with_a_disk()
    attempt = Attempt(made, "data")
    attempt.reserve()
    attempt.fail()
    attempt.give_up()
    assert volume(made).spec.claimRef is not None


def test_a_failed_write_undoes_the_following_changes() -> None:
    """No change stays assumed that will not be written; the error of the write is raised."""
    made = world_with_a_disk()
    made.api.failing_update = "new-disk"
    attempt = Attempt(made, "data", "new-disk")
    attempt.reserve()
    with pytest.raises(ConnectionError, match="changed by another client"):
        attempt.bind()
    assert volume(made).spec.claimRef is not None
    assert SELECTED_NODE not in claim(made, "new-disk").metadata.annotations
    assert attempt.waited == []


def lose_volume(made: World) -> None:
    made.cluster.remove_object(volume(made))


def lose_claim(made: World, name: str) -> None:
    made.cluster.remove_object(claim(made, name))


def reset_reference(made: World) -> None:
    seen(made, volume(made), claimRef=None)


def move_volume(made: World) -> None:
    elsewhere = made.volume("moved", nodeAffinity=affinity(HOSTNAME, "b")).spec.nodeAffinity
    seen(made, volume(made), nodeAffinity=elsewhere)


def drop_annotation(made: World, **others: str) -> None:
    obj = claim(made, "new-disk")
    seen(made, replace(obj, metadata=replace(obj.metadata, annotations=others)))


def provision_elsewhere(made: World) -> None:
    made.volume("made", "cloud", on="b")
    seen_bound(made, "new-disk", "made")


@pytest.mark.parametrize(
    ("name", "event", "message"),
    [
        ("data", lambda made: made.cluster.remove_node("a"), 'failed to get node "a": node "a" not found'),
        (
            "data",
            lambda made: made.cluster.remove_pod("uid-new"),
            'pod does not exist any more: pod "new" not found',
        ),
        ("data", lose_volume, 'failed to check binding: persistentvolumes "disk" not found'),
        (
            "data",
            lambda made: lose_claim(made, "data"),
            'failed to check binding: persistentvolumeclaims "default/data" not found',
        ),
        ("data", reset_reference, 'ClaimRef got reset for pv "disk"'),
        (
            "data",
            move_volume,
            'pv "disk" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
        ),
        (
            "new-disk",
            lambda made: lose_claim(made, "new-disk"),
            'failed to check provisioning pvc: persistentvolumeclaims "default/new-disk" not found',
        ),
        ("new-disk", drop_annotation, 'selectedNode annotation reset for PVC "new-disk"'),
        ("new-disk", lambda made: drop_annotation(made, other="x"), 'provisioning failed for PVC "new-disk"'),
        (
            "new-disk",
            provision_elsewhere,
            'pv "made" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
        ),
    ],
)
def test_waiting_ends_on_failure(name: str, event: Callable[[World], None], message: str) -> None:
    """Node, pod, volume or claim is deleted, was changed by others, or is not usable on the node."""
    made = world_with_a_disk()
    attempt = Attempt(made, name)
    attempt.reserve()
    attempt.happen = [lambda: event(made), lambda: pytest.fail("still waiting")]
    assert attempt.fail() == f"binding volumes: {message}"


def test_a_provisioned_volume_may_arrive_after_its_claim() -> None:
    """Binding waits if a claim names a volume that is not known yet."""
    made = world_with_a_disk()
    attempt = Attempt(made, "new-disk")
    attempt.reserve()
    attempt.happen = [lambda: seen_bound(made, "new-disk", "made"), lambda: made.volume("made", "cloud")]
    attempt.bind()


def test_an_older_version_is_ignored() -> None:
    """The watch may deliver an object from before the update."""
    made = world_with_a_disk()
    attempt = Attempt(made, "data")
    attempt.reserve()
    attempt.happen = [
        lambda: seen(made, volume(made), version=50, claimRef=None),
        lambda: made.claim("data", volume="disk", version="300"),
        lambda: made.volume("disk", on="a", claim="data", version="300"),
    ]
    attempt.bind()
    assert key_of(volume(made)) == "disk"


def test_hints() -> None:
    """Classes with other topologies, the pod's claims, more storage, drivers that stop reporting it, migration."""
    made = world_with_a_disk()
    hints = {
        r.event.resource.removeprefix("storage.k8s.io/"): r.hint
        for r in made.make(VolumeBinding, VolumeBindingArgs()).requeue_on()
    }
    listers, waiting = made.cluster.listers, pod("new", "data", volumes=[{"name": "x", "csi": {"driver": "disks"}}])

    def changed(store: Any, name: str, change: Callable[[], object]) -> tuple[Any, Any]:
        old = store.get(name)
        change()
        return old, store.get(name)

    assert hints["PersistentVolume"] is None
    assert hints["Node"] is None
    assert hints["PersistentVolumeClaim"](waiting, None, made.claim("data"))
    assert not hints["PersistentVolumeClaim"](waiting, None, made.claim("other"))
    assert hints["StorageClass"](waiting, None, listers.storage_classes.get("cloud"))
    same = changed(listers.storage_classes, "cloud", lambda: made.storage_class("cloud"))
    assert not hints["StorageClass"](waiting, *same)
    wider = changed(listers.storage_classes, "cloud", lambda: made.storage_class("cloud", allowedTopologies=[{}]))
    assert hints["StorageClass"](waiting, *wider)
    assert hints["CSINode"](waiting, None, made.csi_node("a"))
    assert hints["CSINode"](waiting, made.csi_node("a"), made.csi_node("a", migrated="kubernetes.io/cinder"))
    assert not hints["CSINode"](waiting, made.csi_node("a"), made.csi_node("a", disks=3))
    made.driver("disks", storageCapacity=True)
    off = changed(listers.csi_drivers, "disks", lambda: made.driver("disks", storageCapacity=False))
    assert hints["CSIDriver"](waiting, *off)
    assert not hints["CSIDriver"](pod("new", "data"), *off)
    assert not hints["CSIDriver"](waiting, *reversed(off))
    made.pool("p", "cloud", "1Gi")
    assert hints["CSIStorageCapacity"](waiting, None, listers.csi_capacities.get("kube-system/p"))
    more = changed(listers.csi_capacities, "kube-system/p", lambda: made.pool("p", "cloud", "2Gi"))
    assert hints["CSIStorageCapacity"](waiting, *more)
    assert not hints["CSIStorageCapacity"](waiting, *reversed(more))
