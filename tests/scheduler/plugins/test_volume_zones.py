"""VolumeZone: nodes in the zones and regions of a pod's volumes."""

import pytest

from kubestow.scheduler.framework.results import SKIP, Code, Rejection
from kubestow.scheduler.plugins.volume_zone import VolumeZone
from support.plugins.volume_world import ZONE, World, pod

FAR = ("node(s) had no available volume zone",)
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def world_with_zones() -> World:
    made = World()
    made.node("near", zone="z1")
    made.node("far", zone="z2")
    made.node("nowhere")
    made.claim("data", volume="disk")
    return made


@pytest.mark.parametrize(
    ("labels", "rejected"),
    [
        ({ZONE: "z1"}, {"far"}),
        ({BETA_ZONE: "z1"}, {"far"}),
        ({ZONE: "z1__z2"}, set()),
        ({ZONE: " z1 __z3"}, {"far"}),
        ({ZONE: "z3"}, {"near", "far"}),
        ({ZONE: "z1", REGION: "r1"}, {"near", "far"}),
    ],
)
def test_nodes_in_other_zones_are_rejected(labels: dict[str, str], rejected: set[str]) -> None:
    """Every label of the volume must match, also by its successor; unlabelled nodes pass."""
    made = world_with_zones()
    made.volume("disk", labels=labels)
    answer = made.evaluate(made.make(VolumeZone), pod("new", "data"))
    assert answer == dict.fromkeys(rejected, FAR)


def test_the_beta_label_of_a_node_takes_precedence() -> None:
    """A node that still has the beta label is compared by it."""
    made = world_with_zones()
    made.node("old", zone="z1", **{BETA_ZONE: "z9"})
    made.volume("disk", labels={BETA_ZONE: "z1"})
    assert made.evaluate(made.make(VolumeZone), pod("new", "data")) == {"far": FAR, "old": FAR}


@pytest.mark.parametrize("labels", [{}, {ZONE: "z1__"}, {"other": "z1"}])
def test_volumes_without_zone_labels_are_skipped(labels: dict[str, str]) -> None:
    """A missing or invalid label rejects no node."""
    made = world_with_zones()
    made.volume("disk", labels=labels)
    assert made.evaluate(made.make(VolumeZone), pod("new", "data")) is SKIP


def test_unusable_claims_reject_the_pod() -> None:
    """Missing claims, volumes and classes, and unbound immediate claims, reject the pod as a whole."""
    made = world_with_zones()
    made.storage_class("late", delayed=True)
    made.storage_class("now", delayed=False)
    made.storage_class("vague", volumeBindingMode=None)
    made.claim("waits", "late")
    made.claim("unbound", "now")
    made.claim("classless", None)
    made.claim("lost-class", "nosuch")
    made.claim("unclear", "vague")
    plugin = made.make(VolumeZone)

    def reason(*claims: str) -> object:
        answer = made.evaluate(plugin, pod("new", *claims))
        if not isinstance(answer, Rejection):
            return answer
        assert answer.code is Code.UNRESOLVABLE
        return answer.message

    assert reason("waits") is SKIP
    assert reason("") == "PersistentVolumeClaim had no name"
    assert reason("gone") == 'persistentvolumeclaim "gone" not found'
    assert reason("data") == 'persistentvolume "disk" not found'
    assert reason("classless") == "PersistentVolumeClaim had no pv name and storageClass name"
    assert reason("lost-class") == 'storageclass.storage.k8s.io "nosuch" not found'
    assert reason("unclear") == 'VolumeBindingMode not set for StorageClass "vague"'
    assert reason("waits", "unbound") == "PersistentVolume had no name"


def test_filter_works_without_pre_filter() -> None:
    """A profile may enable Filter without PreFilter."""
    made = world_with_zones()
    plugin = made.make(VolumeZone)
    new = made.running("new", "near", "data")
    assert made.rejected(plugin, None, new).keys() == {"near", "far", "nowhere"}
    made.volume("disk", labels={ZONE: "z1"})
    assert made.rejected(plugin, None, new) == {"far": FAR}
    made.volume("disk")
    assert made.rejected(plugin, None, new) == {}


def test_hints() -> None:
    """Delaying classes, the pod's claims, and volumes whose labels have changed requeue the pod."""
    made = world_with_zones()
    hints = {r.event.resource: r.hint for r in made.make(VolumeZone).requeue_on()}
    waiting = pod("new", "data")
    here = made.volume("disk", labels={ZONE: "z1"})
    assert hints["PersistentVolume"](waiting, None, here)
    assert hints["PersistentVolume"](waiting, here, made.volume("disk", labels={ZONE: "z2"}))
    assert not hints["PersistentVolume"](waiting, here, made.volume("disk", labels={ZONE: "z1", "more": "x"}))
    assert hints["PersistentVolumeClaim"](waiting, None, made.claim("data"))
    assert not hints["PersistentVolumeClaim"](waiting, None, made.claim("other"))
    for delayed in (True, False):
        made.storage_class("new", delayed=delayed)
        added = made.cluster.listers.storage_classes.get("new")
        assert hints["storage.k8s.io/StorageClass"](waiting, None, added) is delayed
