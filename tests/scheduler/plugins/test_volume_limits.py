"""NodeVolumeLimits: the number of volumes that nodes can attach."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.framework.results import SKIP, Code, Rejection
from kubestow.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from support.plugins.volume_world import World, pod

FULL = ("node(s) exceed max volume count",)
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def world_with_a_limit(limit: int | None = 2, **features: bool) -> World:
    """Return node `small` with a limit, `large` without; claims c0.. have volumes v0.. of their own."""
    made = World(**features)
    made.node("small")
    made.node("large")
    made.csi_node("small", disks=limit)
    made.csi_node("large", disks=None)
    for i in range(5):
        made.volume(f"v{i}", handle=f"h{i}", claim=f"c{i}")
        made.claim(f"c{i}", volume=f"v{i}")
    return made


def test_a_full_node_is_rejected() -> None:
    """Attached and new volumes together exceed the limit."""
    made = world_with_a_limit()
    plugin = made.make(NodeVolumeLimits)
    made.running("one", "small", "c0")
    assert made.evaluate(plugin, pod("new", "c1")) == {}
    assert made.evaluate(plugin, pod("new", "c1", "c2")) == {"small": FULL}
    made.running("two", "small", "c3")
    assert made.evaluate(plugin, pod("new", "c1")) == {"small": FULL}


def test_a_shared_volume_counts_once() -> None:
    """Neither a second pod with the same claim nor a second claim on the same handle adds to the count."""
    made = world_with_a_limit()
    plugin = made.make(NodeVolumeLimits)
    made.running("one", "small", "c0")
    made.running("two", "small", "c0", "c1")
    assert made.evaluate(plugin, pod("new", "c1")) == {}
    assert made.evaluate(plugin, pod("new", "c1", "c2")) == {"small": FULL}


def test_counts_follow_changes_of_pods_and_claims() -> None:
    """Deleting a pod frees its attachments."""
    made = world_with_a_limit(1)
    plugin = made.make(NodeVolumeLimits)
    made.running("one", "small", "c0")
    assert made.evaluate(plugin, pod("new", "c1")) == {"small": FULL}
    made.cluster.remove_pod("uid-one")
    assert made.evaluate(plugin, pod("new", "c1")) == {}
    made.running("one", "small", "c0")
    made.volume("v0", claim="c0")
    assert made.evaluate(plugin, pod("new", "c1")) == {}
    made.volume("v0", handle="h0", claim="c0")
    assert made.evaluate(plugin, pod("new", "c1")) == {"small": FULL}
    made.csi_node("small", disks=5)
    assert made.evaluate(plugin, pod("new", "c1")) == {}


def test_what_if_views_count_their_own_pods() -> None:
    """A pod that is removed from a what-if view frees its attachments there only."""
    made = world_with_a_limit(1)
    plugin = made.make(NodeVolumeLimits)
    one = made.running("one", "small", "c0")
    new = made.running("new", "large", "c1")
    row = made.cluster.nodes.row_of["small"]
    view = what_if(made.cluster.nodes, [row])
    rows = slice(0, 1)
    assert plugin.filter_rows(None, new, view, rows).kinds.tolist() == [1]
    view.remove_pod(0, one)
    assert plugin.filter_rows(None, new, view, rows).kinds.tolist() == [0]
    assert made.rejected(plugin, None, new) == {"small": FULL}


def test_claims_without_a_volume_count_by_their_class() -> None:
    """A claim to be provisioned by the driver counts; one of another driver or an unknown class does not."""
    made = world_with_a_limit(1)
    made.storage_class("mine", provisioner="disks")
    made.storage_class("other", provisioner="elsewhere")
    for name, of in (("w0", "mine"), ("w1", "mine"), ("x", "other"), ("y", "nosuch"), ("z", None)):
        made.claim(name, of)
    made.claim("orphan", "mine", volume="vanished")
    plugin = made.make(NodeVolumeLimits)
    made.running("one", "small", "w0")
    assert made.evaluate(plugin, pod("new", "w0")) == {}
    assert made.evaluate(plugin, pod("new", "w1")) == {"small": FULL}
    assert made.evaluate(plugin, pod("new", "orphan")) == {"small": FULL}
    assert made.evaluate(plugin, pod("new", "x", "y", "z")) == {}


def test_attachments_count_until_they_are_deleted() -> None:
    """A volume that is still attached counts without a pod; the volume of the pod itself is counted again."""
    made = world_with_a_limit(1)
    plugin = made.make(NodeVolumeLimits)
    made.attachment("still", "small", "v0")
    made.attachment("elsewhere", "large", "v1")
    made.attachment("unknown", "small", "vanished")
    assert made.evaluate(plugin, pod("new", "c1")) == {"small": FULL}
    assert made.evaluate(plugin, pod("new", "c0")) == {"small": FULL}
    made.running("user", "small", "c0")
    assert made.evaluate(plugin, pod("new", "c0")) == {}
    made.cluster.remove_object(made.cluster.listers.volume_attachments.get("still"))
    made.cluster.remove_pod("uid-user")
    assert made.evaluate(plugin, pod("new", "c1")) == {}


def test_volumes_of_migrated_drivers_count_for_their_successors() -> None:
    """In pods, in persistent volumes and as provisioners, if the node has a CSINode."""
    made = World()
    made.node("small")
    made.node("unknown")
    made.csi_node("small", ebs=1)
    made.volume("old", claim="bound", awsElasticBlockStore={"volumeID": "aws://zone/vol-1"})
    made.volume("odd", claim="broken", awsElasticBlockStore={"volumeID": "aws://zone/nonsense"})
    made.claim("bound", volume="old")
    made.claim("broken", volume="odd")
    made.storage_class("ebs", provisioner="kubernetes.io/aws-ebs")
    made.claim("later", "ebs")
    plugin = made.make(NodeVolumeLimits)
    made.running("one", "small", volumes=[{"name": "x"} | EBS])
    assert made.evaluate(plugin, pod("new", "bound")) == {}
    assert made.evaluate(plugin, pod("new", "broken")) == {}
    assert made.evaluate(plugin, pod("new", "later")) == {"small": FULL}
    other = {"name": "y", "awsElasticBlockStore": {"volumeID": "vol-2"}}
    assert made.evaluate(plugin, pod("new", volumes=[other])) == {"small": FULL}


def test_other_volumes_are_skipped() -> None:
    """Volumes that no driver attaches do not count."""
    made = world_with_a_limit()
    plugin = made.make(NodeVolumeLimits)
    assert made.evaluate(plugin, pod("new")) is SKIP
    assert made.evaluate(plugin, pod("new", volumes=[{"name": "x", "rbd": {"image": "i"}}])) is SKIP


def test_a_missing_claim_rejects_every_node() -> None:
    """The missing claim of a running pod does not count."""
    made = world_with_a_limit(0)
    plugin = made.make(NodeVolumeLimits)
    gone = ('looking up PVC default/gone: persistentvolumeclaim "gone" not found',)
    assert made.evaluate(plugin, pod("new", "gone")) == {"small": gone, "large": gone}
    made.running("one", "small", "gone")
    assert made.evaluate(plugin, pod("new", "c0")) == {"small": FULL}


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"persistentVolumeClaim": {"claimName": ""}}, "PersistentVolumeClaim had no name"),
        ({"ephemeral": {}}, r"PVC default/new-x was not created for pod default/new \(pod is not owner\)"),
        (
            {"awsElasticBlockStore": {"volumeID": "aws://zone/odd"}},
            r"converting volume\(x\) from inline to csi: .* Invalid format for AWS volume",
        ),
    ],
)
def test_invalid_volumes_are_errors(volume: dict[str, Any], message: str) -> None:
    """Their attachments cannot be determined."""
    made = world_with_a_limit()
    made.claim("new-x")
    with pytest.raises(ValueError, match=message):
        made.evaluate(made.make(NodeVolumeLimits), pod("new", volumes=[{"name": "x"} | volume]))


def test_drivers_can_require_installation() -> None:
    """With VolumeLimitScaling, a driver can have nodes without it rejected."""
    made = world_with_a_limit(volume_limit_scaling=True)
    made.node("bare")
    plugin = made.make(NodeVolumeLimits)
    assert made.evaluate(plugin, pod("new", "c0")) == {}
    made.driver("disks", preventPodSchedulingIfMissing=True)
    assert made.evaluate(plugin, pod("new", "c0")) == {"bare": ("disks CSI driver is not installed on the node",)}


def test_the_rejection_can_be_resolved_by_preemption() -> None:
    """Evicted pods free their attachments."""
    made = world_with_a_limit(0)
    plugin = made.make(NodeVolumeLimits)
    new = made.running("new", "large", "c0")
    answer = plugin.filter_rows(None, new, made.cluster.nodes, slice(0, 1))
    assert answer.words(1) == Rejection(FULL, Code.UNSCHEDULABLE)


def test_hints() -> None:
    """Higher limits, deleted pods with volumes, claims the pod uses, deleted attachments."""
    made = world_with_a_limit()
    hints = {(r.event.resource, r.event.action.name): r.hint for r in made.make(NodeVolumeLimits).requeue_on()}
    waiting = pod("new", "c0")
    grown = hints["storage.k8s.io/CSINode", "UPDATE"]
    assert hints["storage.k8s.io/CSINode", "ADD"] is None
    assert grown(waiting, made.csi_node("small", disks=2), made.csi_node("small", disks=3))
    assert grown(waiting, made.csi_node("small", disks=2), made.csi_node("small", disks=2, more=1))
    assert not grown(waiting, made.csi_node("small", disks=2), made.csi_node("small", disks=1))
    assert not grown(waiting, made.csi_node("small", disks=2), made.csi_node("small", disks=None))
    left = hints["AssignedPod", "DELETE"]
    assert left(waiting, pod("old", "any", node="small"), None)
    assert left(waiting, pod("old", volumes=[{"name": "x"} | EBS], node="small"), None)
    assert not left(waiting, pod("old", node="small"), None)
    used = hints["PersistentVolumeClaim", "ADD"]
    assert used(waiting, None, made.claim("c0"))
    assert used(pod("new", volumes=[{"name": "x", "ephemeral": {}}]), None, made.claim("new-x"))
    assert not used(waiting, None, made.claim("c1"))


def test_deleted_attachments_requeue() -> None:
    """A pod with claims always; a pod with an in-tree disk if the attacher is its successor."""
    made = world_with_a_limit()
    made.attachment("ours", "small", "v0", driver="ebs.csi.aws.com")
    made.attachment("other", "small", "v0", driver="disks")
    ours = made.cluster.listers.volume_attachments.get("ours")
    other = made.cluster.listers.volume_attachments.get("other")
    resource = "storage.k8s.io/VolumeAttachment"
    freed = next(r.hint for r in made.make(NodeVolumeLimits).requeue_on() if r.event.resource == resource)
    disk = pod("new", volumes=[{"name": "x"} | EBS])
    assert freed(pod("new", "c0"), other, None)
    assert freed(disk, ours, None)
    assert not freed(disk, other, None)
    assert not freed(pod("new"), ours, None)


def _change(made: World, what: str, i: int, j: int) -> None:
    """Apply a change to object i, related to object j."""
    cluster = made.cluster
    if what == "node":
        made.node(f"n{i}")
    elif what == "no node":
        cluster.remove_node(f"n{i}")
    elif what == "limit":
        made.csi_node(f"n{i}", disks=j or None, ebs=1)
    elif what == "pod":
        made.running(f"p{i}", f"n{j}", f"c{i}", f"c{j}")
    elif what == "no pod":
        cluster.remove_pod(f"uid-p{i}")
    elif what == "volume":
        made.volume(f"v{i}", handle=f"h{j}" if j else None)
    elif what == "no volume":
        cluster.remove_object(made.volume(f"v{i}"))
    elif what == "claim":
        made.claim(f"c{i}", "cloud", volume=f"v{j}" if j else "")
    elif what == "no claim":
        cluster.remove_object(made.claim(f"c{i}"))
    elif what == "attachment":
        made.attachment(f"a{i}", f"n{j}", f"v{i}")
    elif what == "no attachment":
        made.attachment(f"a{i}", "n0", "v0")
        cluster.remove_object(cluster.listers.volume_attachments.get(f"a{i}"))
    else:
        made.storage_class("cloud", provisioner="disks" if j else "others")


CHANGES = ["node", "limit", "pod", "volume", "claim", "attachment"]
WHAT = [*CHANGES, *(f"no {what}" for what in CHANGES if what != "limit"), "class"]
STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_incremental_counts_equal_fresh_counts(steps: list[tuple[str, int, int]]) -> None:
    """After any changes, the plugin, a new plugin and a what-if view return the same result."""
    made = World()
    for i in range(4):
        made.node(f"n{i}")
        made.csi_node(f"n{i}", disks=1)
        made.claim(f"c{i}", "elsewhere", volume=f"v{i}")
        made.running(f"p{i}", f"n{i}", f"c{i}")
    made.storage_class("cloud")
    following = made.make(NodeVolumeLimits)
    made.claim("fresh", "cloud")
    new = made.running("new", "elsewhere", "fresh")
    for what, i, j in steps:
        _change(made, what, i, j)
        found = made.rejected(following, None, new)
        assert found == made.rejected(made.make(NodeVolumeLimits), None, new)
        nodes = made.cluster.nodes
        for row in range(nodes.size):
            if nodes.live[row]:
                alone = following.filter_rows(None, new, what_if(nodes, [row]), slice(0, 1)).kinds.item()
                assert alone == (nodes.names[row] in found)
