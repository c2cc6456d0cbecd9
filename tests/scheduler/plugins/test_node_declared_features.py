"""NodeDeclaredFeatures: rejects nodes that do not declare the features that a pod requires."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import SKIP, unresolvable
from kubestow.scheduler.plugins.node_declared_features import NodeDeclaredFeatures, required_features
from kubestow.testing.builders import make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected

REJECTED = unresolvable("node(s) didn't match Pod's required features")
HOST_USERS = {"hostNetwork": True, "hostUsers": False}
FEATURE = "UserNamespacesHostNetworkSupport"
MOUNT = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
RESTARTING = {
    "containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}],
}


def node_with_features(name: str, *features: str) -> Node:
    return convert(Node, {"metadata": {"name": name, "uid": name}, "status": {"declaredFeatures": list(features)}})


def plugin(enabled: bool = True) -> Any:
    return make(NodeDeclaredFeatures, node_declared_features=enabled)


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({}, set()),
        ({"hostNetwork": True}, set()),
        ({"hostUsers": False}, set()),
        (HOST_USERS, {FEATURE}),
        (RESTARTING, {"RestartAllContainersOnContainerExits"}),
        ({"initContainers": [{"name": "i", "volumeMounts": [{}, MOUNT]}]}, {"VolumeBindMountOptions"}),
        ({"containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}, set()),
        (HOST_USERS | RESTARTING, {FEATURE, "RestartAllContainersOnContainerExits"}),
    ],
)
def test_required_features(spec: dict[str, Any], needed: set[str]) -> None:
    """They follow from the spec of the pod."""
    assert required_features(make_pod("p", spec=spec)) == needed


def test_nodes_that_lack_a_feature_are_rejected() -> None:
    """Preemption does not help."""
    cluster = cluster_of(node_with_features("with", FEATURE, "More"), node_with_features("without", "More"))
    assert rejected(plugin(), cluster, make_pod("p", spec=HOST_USERS)) == {"without": REJECTED}


def test_pods_without_required_features_are_skipped() -> None:
    """So are all pods without the gate."""
    assert plugin().pre_filter(PodInfo(make_pod("p"))) is SKIP
    assert plugin(enabled=False).pre_filter(PodInfo(make_pod("p", spec=HOST_USERS))) is SKIP
    assert plugin(enabled=False).requeue_on() == []


def test_events_that_requeue() -> None:
    """A new node, a node that declares other features, or a change of the pod's required features."""
    waiting = make_pod("p", spec=HOST_USERS)
    assert hint(plugin(), waiting, None, node_with_features("n")) is True
    assert hint(plugin(), waiting, node_with_features("n"), node_with_features("n", FEATURE)) is True
    assert hint(plugin(), waiting, node_with_features("n", FEATURE), node_with_features("n", FEATURE)) is None
    relaxed = make_pod("p", labels={"x": "y"})
    assert hint(plugin(), waiting, waiting, relaxed) is True
    assert hint(plugin(), make_pod("q"), waiting, relaxed) is None
