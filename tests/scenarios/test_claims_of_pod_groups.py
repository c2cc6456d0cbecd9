"""Resource claims that a pod group lists are reserved for the group, not for each of its pods."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.devices import ResourceClaim
from kubestow.api.meta import OwnerReference
from kubestow.api.pod import PodResourceClaim, PodResourceClaimStatus
from kubestow.api.pod_groups import PodGroup
from kubestow.testing import SchedulerHarness, make_node, make_pod_group
from support.plugins.device_world import allocated, claim, claiming, device_class, device_slice, exactly, gpus
from support.scenarios.gangs import GATES, bound, condition, features, message
from support.scenarios.start import Start

CLAIMS_GATES = (*GATES, "DRAWorkloadResourceClaims")
SHARED = PodResourceClaim("shared", resourceClaimName="shared")


def cluster(start: Start, *gates: str, nodes: int = 2, cpu: str = "4", **options: Any) -> SchedulerHarness:
    """Start with nodes of one GPU each."""
    harness = start(features=features(*(gates or CLAIMS_GATES)), **options)
    harness.cluster.add(device_class())
    for number in range(nodes):
        harness.cluster.add(make_node(f"n{number}", cpu=cpu))
        harness.cluster.add(device_slice(f"n{number}", gpus(1)))
    return harness


def add_group(harness: SchedulerHarness, least: int, *claims: PodResourceClaim, **status: Any) -> PodGroup:
    group = make_pod_group("a", least)
    made = replace(group, spec=replace(group.spec, resourceClaims=claims), status=replace(group.status, **status))
    return harness.cluster.add(made)


def shared(harness: SchedulerHarness) -> ResourceClaim:
    (found,) = harness.cluster.all(ResourceClaim)
    return found


@pytest.mark.parametrize("latency", [0.0, 0.5])
def test_a_claim_of_a_group_is_reserved_once(start: Start, latency: float) -> None:
    """However many pods share it, and although they are bound at the same time; later pods use its devices, too."""
    harness = cluster(start, latency=latency)
    harness.cluster.add(claim("shared", exactly()))
    group = add_group(harness, 3, SHARED)
    for number in range(3):
        harness.cluster.add(claiming(f"a{number}", "shared", group="a", cpu="1"))
    harness.run_for(20.0)
    (consumer,) = shared(harness).status.reservedFor
    assert (consumer.apiGroup, consumer.resource, consumer.name) == ("scheduling.k8s.io", "podgroups", "a")
    assert consumer.uid == group.metadata.uid
    assert len(bound(harness, "a")) == 3
    assert harness.core.cluster.devices.pending(shared(harness).metadata.uid) is None
    harness.cluster.add(claiming("a3", "shared", group="a", cpu="1"))
    harness.run_for(20.0)
    assert len(set(bound(harness, "a"))) == 1
    assert len(bound(harness, "a")) == 4
    assert shared(harness).status.reservedFor == (consumer,)


@pytest.mark.parametrize("gates", [CLAIMS_GATES, GATES])
def test_a_claim_that_the_group_lists_differently_is_reserved_for_pods(start: Start, gates: tuple[str, ...]) -> None:
    """So is every claim while the feature gate is off."""
    harness = cluster(start, *gates)
    harness.cluster.add(claim("shared", exactly()))
    add_group(harness, 2, PodResourceClaim("other", resourceClaimName="shared") if gates is CLAIMS_GATES else SHARED)
    for number in range(2):
        harness.cluster.add(claiming(f"a{number}", "shared", group="a", cpu="1"))
    harness.run_for(20.0)
    assert {one.name for one in shared(harness).status.reservedFor} == {"a0", "a1"}


@pytest.mark.parametrize(("gates", "owner"), [(CLAIMS_GATES, "a"), (CLAIMS_GATES, "b"), (GATES, "a")])
def test_a_claim_may_be_created_for_the_group(start: Start, gates: tuple[str, ...], owner: str) -> None:
    """Other owners are refused, and without the feature gate all but the pod."""
    harness = cluster(start, *gates)
    made = claim("made", exactly())
    of_group = OwnerReference("scheduling.k8s.io/v1beta1", "PodGroup", owner, "uid", controller=True)
    harness.cluster.add(replace(made, metadata=replace(made.metadata, ownerReferences=(of_group,))))
    wanted, named = PodResourceClaim("c", resourceClaimTemplateName="t"), (PodResourceClaimStatus("c", "made"),)
    add_group(harness, 1, wanted, resourceClaimStatuses=named)
    pod = claiming("a0", group="a")
    spec, status = replace(pod.spec, resourceClaims=(wanted,)), replace(pod.status, resourceClaimStatuses=named)
    harness.cluster.add(replace(pod, spec=spec, status=status))
    harness.run_for(5.0)
    if gates is CLAIMS_GATES and owner == "a":
        assert [one.name for one in shared(harness).status.reservedFor] == ["a"]
    else:
        assert harness.place_of("a0") == "gated"


def test_a_claim_of_a_group_that_rules_out_all_nodes_is_deallocated(start: Start) -> None:
    """The group is then placed elsewhere."""
    harness = cluster(start, nodes=1, cpu="8")
    group = add_group(harness, 2, SHARED)
    harness.cluster.add(make_node("full", cpu="1"))
    harness.cluster.add(device_slice("full", gpus(1)))
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "a", "uid": group.metadata.uid}
    harness.cluster.add(allocated("shared", "full", "gpu-0", reservedFor=[consumer]))
    for number in range(2):
        harness.cluster.add(claiming(f"a{number}", "shared", group="a", cpu="2"))
    harness.run_for(0.5)
    assert "deallocation and deletion" not in condition(harness, "a").message
    harness.run_for(20.0)
    assert bound(harness, "a") == ["n0"] * 2


def test_a_group_that_fits_nowhere_gives_up_its_reservations(start: Start) -> None:
    """Others may then deallocate the claim."""
    harness = cluster(start, nodes=1, cpu="1")
    group = add_group(harness, 2, SHARED)
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "a", "uid": group.metadata.uid}
    harness.cluster.add(allocated("shared", "n0", "gpu-0", reservedFor=[consumer]))
    for number in range(2):
        harness.cluster.add(claiming(f"a{number}", "shared", group="a", cpu="2"))
    harness.run_for(0.5)
    assert shared(harness).status.reservedFor == ()
    assert message(harness, "a0").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert condition(harness, "a").message.endswith(", ResourceClaim unreserved for PodGroup")
