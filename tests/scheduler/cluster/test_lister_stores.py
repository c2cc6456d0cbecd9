"""Stores: received and assumed objects, groups, and what has changed."""

from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, StorageClass
from kubestow.scheduler.cluster.listers import Store, VolumeStore
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster


def storage_class(name: str, provisioner: str = "p") -> StorageClass:
    return convert(StorageClass, {"metadata": {"name": name}, "provisioner": provisioner})


def test_changes_since_a_version_are_listed() -> None:
    """Objects received or removed are listed in order; assumptions are no changes."""
    store: Store[StorageClass] = Store()
    start = store.version
    store.set(storage_class("a"))
    store.set(storage_class("b"))
    middle = store.version
    store.remove(storage_class("a"))
    store.remove(storage_class("never-there"))
    store.assume(storage_class("b", "assumed"))
    assert store.changed_since(start) == ["a", "b", "a"]
    assert store.changed_since(middle) == ["a"]
    assert store.changed_since(store.version) == []


def test_old_changes_are_not_listed() -> None:
    """The number of recorded changes is limited; for an older version, the caller must read all objects."""
    store: Store[StorageClass] = Store()
    start = store.version
    for _ in range(10_000):
        store.set(storage_class("a"))
    assert store.changed_since(start) is None
    recent = store.version
    store.set(storage_class("b"))
    assert store.changed_since(recent) == ["b"]


def test_volumes_are_found_by_the_claims_they_may_be_bound_to() -> None:
    """Free volumes of the class and those reserved for the claim are found, also if an annotation names the class."""
    store = VolumeStore()
    for name, spec in {
        "free": {"storageClassName": "c"},
        "other-class": {"storageClassName": "d"},
        "kept": {"storageClassName": "c", "claimRef": {"namespace": "n", "name": "x"}},
        "kept-elsewhere": {"storageClassName": "c", "claimRef": {"namespace": "n", "name": "y"}},
        "kept-other-class": {"storageClassName": "d", "claimRef": {"namespace": "n", "name": "x"}},
    }.items():
        store.set(convert(PersistentVolume, {"metadata": {"name": name}, "spec": spec}))
    noted = {"volume.beta.kubernetes.io/storage-class": "c"}
    store.set(convert(PersistentVolume, {"metadata": {"name": "old", "annotations": noted}}))
    assert [volume.metadata.name for volume in store.candidates("c", "n/x")] == ["free", "old", "kept"]


def test_a_claim_named_twice_is_used_once() -> None:
    """A pod may mount one claim as two volumes, and be removed from its node again."""
    cluster = Cluster()
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": "x"}} for name in ("a", "b")]
    meta = {"namespace": "n", "name": "p", "uid": "u"}
    pod = PodInfo(convert(Pod, {"metadata": meta, "spec": {"volumes": volumes}}))
    cluster.assume(pod, "node")
    assert cluster.claim_users == {"n/x": {"u"}}
    cluster.forget("u")
    assert cluster.claim_users == {}


def test_plugins_see_whether_objects_can_be_read() -> None:
    """A change of that counts as a change of listed objects, so that no earlier result is reused."""
    cluster = Cluster()
    before = cluster.listed_version
    cluster.set_unreadable(StorageClass, "the API server does not have them")
    assert cluster.listers.storage_classes.unreadable == "the API server does not have them"
    assert cluster.listed_version > before
    before = cluster.listed_version
    cluster.set_unreadable(StorageClass, "")
    assert cluster.listers.storage_classes.unreadable == ""
    assert cluster.listed_version > before
