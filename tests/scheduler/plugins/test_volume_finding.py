"""VolumeBinding: nodes with volumes for the claims of a pod."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import SKIP, Code, Rejection
from kubestow.scheduler.plugins.volume_binding import VolumeBinding
from support.plugins.volume_world import BINDING_ARGS, ZONE, World, affinity, pod

NO_MATCH = ("node(s) didn't match PersistentVolume's node affinity",)
NO_VOLUME = ("node(s) didn't find available persistent volumes to bind",)
NO_SPACE = ("node(s) did not have enough free storage",)
GONE = ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",)


def world_of_two_zones(**features: bool) -> World:
    """Return nodes a and b in zone z1, c in z2; classes local (no provisioner) and cloud."""
    made = World(**features)
    made.node("a", zone="z1")
    made.node("b", zone="z1")
    made.node("c", zone="z2")
    made.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    made.storage_class("cloud")
    return made


def evaluate(made: World, *claims: str, **more: Any) -> Any:
    return made.evaluate(made.make(VolumeBinding, BINDING_ARGS), pod("new", *claims, **more))


def test_pods_without_claims_are_skipped() -> None:
    """Other volumes need no binding."""
    assert evaluate(world_of_two_zones()) is SKIP
    assert evaluate(world_of_two_zones(), volumes=[{"name": "x", "rbd": {"image": "i"}}]) is SKIP


def test_unusable_claims_reject_the_pod() -> None:
    """Each has its own reason, independent of the nodes."""
    made = world_of_two_zones()
    made.storage_class("now", delayed=False)
    made.claim("immediate", "now")
    made.claim("classless", None)
    made.claim("lost", volume="v", phase="Lost")
    made.claim("prebound", volumeName="v")
    made.claim("new-foreign", owner="other")
    made.claim("dying", deleted="2026-01-01T00:00:00Z")

    def reason(*claims: str, **more: Any) -> str:
        answer = evaluate(made, *claims, **more)
        assert isinstance(answer, Rejection)
        assert answer.code is Code.UNRESOLVABLE
        return answer.message

    assert reason("gone") == 'persistentvolumeclaim "gone" not found'
    assert reason("lost") == 'persistentvolumeclaim "lost" bound to non-existent persistentvolume "v"'
    assert reason("dying") == 'persistentvolumeclaim "dying" is being deleted'
    for claim in ("immediate", "classless", "prebound"):
        assert reason(claim) == "pod has unbound immediate PersistentVolumeClaims"
    ephemeral = [{"name": "scratch", "ephemeral": {}}]
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-scratch"'
    assert reason(volumes=ephemeral) == waiting
    foreign = [{"name": "foreign", "ephemeral": {}}]
    assert reason(volumes=foreign) == "PVC default/new-foreign was not created for pod default/new (pod is not owner)"


def test_a_class_without_a_binding_mode_is_an_error() -> None:
    """The API server always sets a mode."""
    made = world_of_two_zones()
    made.storage_class("vague", volumeBindingMode=None)
    made.claim("data", "vague")
    with pytest.raises(ValueError, match='VolumeBindingMode not set for StorageClass "vague"'):
        evaluate(made, "data")


def test_bound_volumes_must_be_usable_on_the_node() -> None:
    """The volume's node affinity is compared with the nodes' labels."""
    made = world_of_two_zones()
    made.volume("v", on="b", claim="data")
    made.claim("data", volume="v")
    assert evaluate(made, "data") == {"a": NO_MATCH, "c": NO_MATCH}
    made.volume("v", claim="data", nodeAffinity=affinity(ZONE, "z1"))
    assert evaluate(made, "data") == {"c": NO_MATCH}
    made.volume("v", claim="data")
    assert evaluate(made, "data") == {}


def test_conditions_on_the_node_name_do_not_count_for_volumes() -> None:
    """Only labels determine where a volume can be used."""
    made = world_of_two_zones()
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    made.volume("v", claim="data", nodeAffinity={"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}})
    made.claim("data", volume="v")
    assert evaluate(made, "data") == {}


def test_a_missing_volume_is_reported_where_earlier_claims_fit() -> None:
    """The reason is the first problem of the bound claims on a node."""
    made = world_of_two_zones()
    made.volume("v", on="b", claim="data")
    made.claim("data", volume="v")
    made.claim("more", volume="vanished")
    assert evaluate(made, "data", "more") == {"a": NO_MATCH, "b": GONE, "c": NO_MATCH}


def test_migrated_volumes_are_compared_by_the_labels_of_their_successor() -> None:
    """This applies only to nodes that have migrated the driver."""
    made = world_of_two_zones()
    made.node("d", zone="z9", **{"topology.ebs.csi.aws.com/zone": "z1"})
    made.csi_node("d", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs")
    made.csi_node("a", migrated="kubernetes.io/aws-ebs")
    made.volume("v", claim="data", awsElasticBlockStore={"volumeID": "vol-1"}, nodeAffinity=affinity(ZONE, "z1"))
    made.claim("data", volume="v")
    assert evaluate(made, "data") == {"a": NO_MATCH, "c": NO_MATCH}


def test_an_untranslatable_volume_is_an_error() -> None:
    """Its usable nodes are unknown."""
    made = world_of_two_zones()
    made.csi_node("a", migrated="kubernetes.io/azure-disk")
    made.volume("v", claim="data", azureDisk={"diskURI": "u", "kind": "Dedicated"})
    made.claim("data", volume="v")
    with pytest.raises(ValueError, match=r"could not translate pv: kind\(Dedicated\) is not supported"):
        evaluate(made, "data")


@pytest.mark.parametrize(
    ("volume", "claim", "suits"),
    [
        ({}, {}, True),
        ({"size": "4Gi"}, {}, False),
        ({"volumeMode": "Block"}, {}, False),
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}, True),
        ({"accessModes": ["ReadOnlyMany"]}, {}, False),
        ({"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}, {}, True),
        ({"storage_class": "cloud"}, {}, False),
        ({"claim": "another"}, {}, False),
        ({"volumeAttributesClassName": "fast"}, {}, False),
        ({"volumeAttributesClassName": "fast"}, {"volumeAttributesClassName": "fast"}, True),
        ({"labels": {"disk": "ssd"}}, {"selector": {"matchLabels": {"disk": "ssd"}}}, True),
        ({}, {"selector": {"matchLabels": {"disk": "ssd"}}}, False),
    ],
)
def test_a_free_volume_must_match_the_claim(volume: dict[str, Any], claim: dict[str, Any], suits: bool) -> None:
    """Size, mode, access, class, attributes and labels are compared."""
    made = world_of_two_zones()
    made.volume("v", on="a", **volume)
    made.claim("data", **claim)
    rejected = {"b": NO_VOLUME, "c": NO_VOLUME}
    assert evaluate(made, "data") == (rejected if suits else {"a": NO_VOLUME} | rejected)


def test_a_volume_reserved_for_the_claim_is_the_only_match() -> None:
    """It matches where it can be used, in any phase; elsewhere no other volume matches."""
    made = world_of_two_zones()
    made.volume("free", nodeAffinity=affinity(ZONE, "z1", "z2"))
    made.volume("kept", size="50Gi", on="b", claim="data")
    made.claim("data")
    assert evaluate(made, "data") == {"a": NO_VOLUME, "c": NO_VOLUME}


def test_each_claim_needs_a_volume_of_its_own() -> None:
    """Two claims do not fit where there is one volume."""
    made = world_of_two_zones()
    made.volume("a1", on="a")
    made.volume("a2", on="a", size="20Gi")
    made.volume("b1", on="b")
    made.claim("one")
    made.claim("two", size="6Gi")
    assert evaluate(made, "one", "two") == {"b": NO_VOLUME, "c": NO_VOLUME}


def test_provisioning_requires_a_provisioner_and_an_allowed_topology() -> None:
    """A claim without a free volume fits where its class can provision one."""
    made = world_of_two_zones()
    made.claim("data", "cloud")
    assert evaluate(made, "data") == {}
    expressions = [{"key": ZONE, "values": ["z2", "z3"]}]
    made.storage_class("cloud", allowedTopologies=[{"matchLabelExpressions": expressions}])
    assert evaluate(made, "data") == {"a": NO_VOLUME, "b": NO_VOLUME}
    made.storage_class("cloud", allowedTopologies=[{}])
    assert evaluate(made, "data").keys() == {"a", "b", "c"}


def test_a_claim_that_is_being_provisioned_stays_with_its_node() -> None:
    """The node was chosen in an earlier attempt, and a volume may exist already."""
    made = world_of_two_zones()
    made.claim("data", "cloud", annotations={"volume.kubernetes.io/selected-node": "b"})
    assert evaluate(made, "data") == {"a": NO_VOLUME, "c": NO_VOLUME}


def test_reported_storage_capacity_must_suffice() -> None:
    """Pools count only for drivers that report capacity, and must be accessible and large enough."""
    made = world_of_two_zones()
    made.claim("data", "cloud", size="5Gi")
    made.pool("p1", "cloud", "4Gi", zone="z1")
    made.pool("p2", "cloud", "5Gi", zone="z2")
    made.pool("p3", "other", "9Gi", zone="z1")
    assert evaluate(made, "data") == {}
    made.driver("disks", storageCapacity=True)
    assert evaluate(made, "data") == {"a": NO_SPACE, "b": NO_SPACE}


def test_all_problems_of_a_node_are_reported() -> None:
    """Bound and unbound claims are checked independently."""
    made = world_of_two_zones()
    made.volume("v", on="b", claim="bound")
    made.claim("bound", volume="v")
    made.claim("free")
    assert evaluate(made, "bound", "free") == {"a": NO_MATCH + NO_VOLUME, "b": NO_VOLUME, "c": NO_MATCH + NO_VOLUME}


def test_storage_is_scored_by_utilization() -> None:
    """With StorageCapacityScoring, volumes or pools are scored by the shape; without it nothing is scored."""
    made = world_of_two_zones(storage_capacity_scoring=True)
    made.volume("a1", on="a", size="10Gi")
    made.volume("b1", on="b", size="20Gi")
    made.claim("data", size="5Gi")
    args = VolumeBindingArgs(shape=(UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)))
    plugin, info = made.make(VolumeBinding, args), PodInfo(pod("new", "data"))
    nodes = made.cluster.nodes
    state = plugin.pre_score(info, nodes, np.arange(3))
    assert plugin.score_rows(state, info, nodes, np.arange(3)).tolist() == [50, 25, 0]
    assert made.make(VolumeBinding, BINDING_ARGS).pre_score(info, nodes, np.arange(3)) is SKIP


@settings(max_examples=60, deadline=None)
@given(
    volumes=st.lists(
        st.tuples(st.sampled_from("abc*z"), st.integers(1, 6), st.sampled_from(["local", "cloud"])), max_size=8
    ),
    claims=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["local", "cloud"])), min_size=1, max_size=4),
)
def test_results_do_not_depend_on_other_rows(
    volumes: list[tuple[str, int, str]], claims: list[tuple[int, str]]
) -> None:
    """The verdict on a node equals that of a simple implementation by claim and volume."""
    made = world_of_two_zones()
    places = {"*": {}, "z": {"nodeAffinity": affinity(ZONE, "z1")}}
    for i, (place, size, storage_class) in enumerate(volumes):
        made.volume(f"v{i}", storage_class, f"{size}Gi", **places.get(place, {"on": place}))
    for i, (size, storage_class) in enumerate(claims):
        made.claim(f"c{i}", storage_class, f"{size}Gi")
    plugin = made.make(VolumeBinding, BINDING_ARGS)
    info = PodInfo(pod("new", *(f"c{i}" for i in range(len(claims)))))
    state, nodes = plugin.pre_filter(info), made.cluster.nodes
    together = plugin.filter_rows(state, info, nodes, slice(0, 3)).kinds.tolist()
    alone = [plugin.filter_rows(state, info, nodes, np.array([row])).kinds.item() for row in range(3)]
    assert together == alone
    assert [kind == 0 for kind in together] == [_fits(name, volumes, claims) for name in "abc"]


def _fits(node: str, volumes: list[tuple[str, int, str]], claims: list[tuple[int, str]]) -> bool:
    """Assign to each claim, smallest first, the smallest matching volume; cloud provisions its own."""
    here = {node, "*"} | ({"z"} if node in "ab" else set())
    free = [(size, storage_class) for place, size, storage_class in volumes if place in here]
    for requested, storage_class in sorted(claims, key=lambda claim: claim[0]):
        suitable = sorted(v for v in free if v[1] == storage_class and v[0] >= requested)
        if suitable:
            free.remove(suitable[0])
        elif storage_class == "local":
            return False
    return True
