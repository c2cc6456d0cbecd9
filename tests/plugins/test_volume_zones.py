"""VolumeZone: nodes where a pod's volumes are."""

import pytest

from kubestow.scheduler.framework.results import SKIP, Code, Rejection
from kubestow.scheduler.plugins.volume_zone import VolumeZone
from plugins.volume_world import ZONE, World, pod

FAR = ("node(s) had no available volume zone",)
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def world() -> World:
    made = World()
    made.node("near", zone="z1")
    made.node("far", zone="z2")
    made.node("nowhere")
    made.claim("data", volume="disk")
    return made


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ({ZONE: "z1"}, {"far"}),
        ({BETA_ZONE: "z1"}, {"far"}),
        ({ZONE: "z1__z2"}, set()),
        ({ZONE: " z1 __z3"}, {"far"}),
        ({ZONE: "z3"}, {"near", "far"}),
        ({ZONE: "z1", REGION: "r1"}, {"near", "far"}),
    ],
)
def test_nodes_elsewhere_are_refused(labels: dict[str, str], refused: set[str]) -> None:
    """Every label of the volume must be the node's, old names for new ones included; unlabelled nodes will do."""
    made = world()
    made.volume("disk", labels=labels)
    answer = made.judge(made.make(VolumeZone), pod("new", "data"))
    assert answer == dict.fromkeys(refused, FAR)


def test_an_old_label_of_the_node_comes_before_the_new_one() -> None:
    """A node that still has the old label is judged by it."""
    made = world()
    made.node("old", zone="z1", **{BETA_ZONE: "z9"})
    made.volume("disk", labels={BETA_ZONE: "z1"})
    assert made.judge(made.make(VolumeZone), pod("new", "data")) == {"far": FAR, "old": FAR}


@pytest.mark.parametrize("labels", [{}, {ZONE: "z1__"}, {"other": "z1"}])
def test_volumes_without_a_place_are_skipped(labels: dict[str, str]) -> None:
    """No label, or one that makes no sense, is no reason to refuse nodes."""
    made = world()
    made.volume("disk", labels=labels)
    assert made.judge(made.make(VolumeZone), pod("new", "data")) is SKIP


def test_what_is_wrong_with_claims_is_said_at_once() -> None:
    """Claims, volumes and classes that do not exist, and claims that should be bound, refuse the pod as a whole."""
    made = world()
    made.storage_class("late", delayed=True)
    made.storage_class("now", delayed=False)
    made.storage_class("vague", volumeBindingMode=None)
    made.claim("waits", "late")
    made.claim("unbound", "now")
    made.claim("classless", None)
    made.claim("lost-class", "nosuch")
    made.claim("unclear", "vague")
    plugin = made.make(VolumeZone)

    def said(*claims: str) -> object:
        answer = made.judge(plugin, pod("new", *claims))
        if not isinstance(answer, Rejection):
            return answer
        assert answer.code is Code.UNRESOLVABLE
        return answer.message

    assert said("waits") is SKIP
    assert said("") == "PersistentVolumeClaim had no name"
    assert said("gone") == 'persistentvolumeclaim "gone" not found'
    assert said("data") == 'persistentvolume "disk" not found'
    assert said("classless") == "PersistentVolumeClaim had no pv name and storageClass name"
    assert said("lost-class") == 'storageclass.storage.k8s.io "nosuch" not found'
    assert said("unclear") == 'VolumeBindingMode not set for StorageClass "vague"'
    assert said("waits", "unbound") == "PersistentVolume had no name"


def test_the_filter_alone_finds_out_by_itself() -> None:
    """A profile may enable the filter without the preFilter."""
    made = world()
    plugin = made.make(VolumeZone)
    new = made.running("new", "near", "data")
    assert made.refused(plugin, None, new).keys() == {"near", "far", "nowhere"}
    made.volume("disk", labels={ZONE: "z1"})
    assert made.refused(plugin, None, new) == {"far": FAR}
    made.volume("disk")
    assert made.refused(plugin, None, new) == {}


def test_hints_look_at_what_could_move_the_volumes() -> None:
    """Delaying classes, the pod's claims, and volumes whose place has changed are worth another attempt."""
    made = world()
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
