"""Which pods plugins sign, and when a signature is reused for the next pod."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.devices import DeviceClass, ResourceClaim
from kubestow.api.meta import OwnerReference
from kubestow.api.node import ContainerImage, Namespace
from kubestow.api.pod import ContainerStatus, Pod
from kubestow.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.sharing.signature import Signature, Signatures, sign
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.testing.builders import make_node, make_pod

AWAY = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
AWAY_FROM_A = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [AWAY]}}}


class Signing:
    """Signs the pods of a cluster, and counts the calls of plugins."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.set_node(make_node("n", zone="a"))
        handle = offline_handle(self.cluster)
        self.profile: Profile = build_profiles(config.default(), in_tree_registry(), handle, lambda: 0.0)[
            "default-scheduler"
        ]
        self.calls: Counter[str] = Counter()
        for hook in self.profile.node_signing + self.profile.pod_signing + self.profile.sum_signing:
            hook.function = self._counting(hook.name, hook.function)
        self._signatures = Signatures()

    def _counting(self, name: str, function: Any) -> Any:
        def counted(pod: PodInfo) -> Hashable:
            self.calls[name] += 1
            return function(pod)  # type: ignore[no-any-return]

        return counted

    def of(self, pod: Pod) -> Signature:
        """Return the signature of a pod, after comparing it with that of a full evaluation."""
        self.calls.clear()
        found = self._signatures.of(self.profile, self.cluster, PodInfo(pod))
        calls = self.calls.copy()
        assert found == sign(self.profile, PodInfo(pod))
        self.calls = calls
        return found


def test_an_equal_pod_has_the_same_signature() -> None:
    """No plugin is called for it; its name makes no difference."""
    signing = Signing()
    first = signing.of(make_pod("p0", labels={"app": "a"}))
    assert signing.calls["TaintToleration"] == 1
    assert signing.of(make_pod("p1", labels={"app": "a"})) is first
    assert not signing.calls


def test_computed_values_are_shared_by_equal_pods() -> None:
    """Requests are computed once."""
    signing = Signing()
    first, second = PodInfo(make_pod("p0", cpu="2")), PodInfo(make_pod("p1", cpu="2"))
    _ = first.requests, first.ports, first.terms
    signatures = Signatures()
    signatures.of(signing.profile, signing.cluster, first)
    signatures.of(signing.profile, signing.cluster, second)
    assert second.requests is first.requests


def test_only_sums_are_signed_again_for_other_requests() -> None:
    """Pods of many sizes are equal for the plugins that read only nodes."""
    signing = Signing()
    first = signing.of(make_pod("p0", cpu="1"))
    second = signing.of(make_pod("p1", cpu="2"))
    assert second.nodes is first.nodes
    assert second.whole != first.whole
    assert signing.calls == {"NodeResourcesFit": 1, "NodeResourcesBalancedAllocation": 1}


def test_all_plugins_are_called_if_requests_may_stand_for_devices() -> None:
    """In that case, requests decide whether a pod uses devices."""
    signing = Signing()
    spec = {"extendedResourceName": "example.com/gpu"}
    signing.cluster.set_object(convert(DeviceClass, {"metadata": {"name": "gpus"}, "spec": spec}))
    signing.of(make_pod("p0", cpu="1"))
    assert "DynamicResources" in signing.of(make_pod("p1", resources={"example.com/gpu": "1"})).declined


def test_pods_that_claim_other_devices_have_the_same_signature() -> None:
    """Every pod has its own claim, and writing a claim changes it; a pod without claims has another signature."""
    signing = Signing()
    claims = [{"name": "gpu", "resourceClaimName": name} for name in ("c0", "c1")]
    first = signing.of(make_pod("p0", spec={"resourceClaims": claims[:1]}))
    assert first.declined == {"DynamicResources"}
    signing.cluster.set_object(convert(ResourceClaim, {"metadata": {"name": "c0", "namespace": "default"}}))
    assert signing.of(make_pod("p1", spec={"resourceClaims": claims[1:]})) is first
    assert not signing.calls
    assert signing.of(make_pod("p2")).declined == set()


@pytest.mark.parametrize("kind", [Service, Namespace, ReplicaSet, ReplicationController, StatefulSet, DeviceClass])
def test_plugins_are_called_again_after_a_change_of_an_object_that_they_sign_by(kind: type) -> None:
    """That includes its deletion."""
    signing = Signing()
    found: Any = convert(kind, {"metadata": {"name": "x", "namespace": "default"}})
    for change in (signing.cluster.set_object, signing.cluster.remove_object):
        signing.of(make_pod("p0"))
        change(found)
        signing.of(make_pod("p1"))
        assert signing.calls["PodTopologySpread"] == 1


def test_different_pods_are_signed_separately() -> None:
    """They may differ in labels, namespace, owner, or anything in the spec but requests."""
    signing = Signing()
    pod = make_pod("p", labels={"app": "a"})
    owned = replace(pod, metadata=replace(pod.metadata, ownerReferences=(OwnerReference(uid="u"),)))
    for other in (
        make_pod("q", labels={"app": "b"}),
        make_pod("q", labels={"app": "a"}, namespace="other"),
        make_pod("q", labels={"app": "a"}, priority=7),
        make_pod("q", labels={"app": "a"}, spec={"nodeSelector": {"disk": "fast"}}),
        owned,
    ):
        signing.of(pod)
        signing.of(other)
        assert signing.calls["TaintToleration"] == 1


def test_a_pod_whose_status_has_allocated_resources_shares_nothing() -> None:
    """Its signature is not stored, either."""
    signing = Signing()
    pod = make_pod("p")
    holding = replace(pod, status=replace(pod.status, containerStatuses=(ContainerStatus("c"),)))
    signing.of(pod)
    assert signing.of(holding).declined == {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
    assert signing.of(pod).declined == set()


def test_plugins_are_called_again_when_the_cluster_may_change_signatures() -> None:
    """Such changes are a placed pod with anti-affinity, images on a node, and a new node."""
    signing = Signing()
    pod = make_pod("p", labels={"app": "a"})
    assert signing.of(pod).declined == set()
    apart = make_pod("apart", node="n", spec=AWAY_FROM_A)
    signing.cluster.set_pod(apart)
    assert signing.of(pod).declined == {"InterPodAffinity"}
    signing.cluster.remove_pod(apart.metadata.uid)
    before = signing.of(pod)
    assert before.declined == set()
    node = make_node("n", zone="a")
    images = (ContainerImage(("docker.io/library/i:latest",), 1),)
    signing.cluster.set_node(replace(node, status=replace(node.status, images=images)))
    signing.of(pod)
    assert signing.calls["ImageLocality"] == 1
    signing.cluster.set_node(make_node("m", zone="a"))
    signing.of(pod)
    assert signing.calls["ImageLocality"] == 1


def test_other_plugins_sign_every_pod() -> None:
    """A plugin that is not built in may sign anything."""
    signing = Signing()
    signing.profile.signs_equal_pods_equally = False
    signing.of(make_pod("p0"))
    signing.of(make_pod("p1"))
    assert signing.calls["TaintToleration"] == 1
