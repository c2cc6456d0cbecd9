"""NodeDeclaredFeatures: rejects nodes whose kubelet does not declare the features that a pod requires."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_numbers
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import SKIP, Rejections, Skip, unresolvable

_REJECTION = unresolvable("node(s) didn't match Pod's required features")


class NodeDeclaredFeatures:
    """Rejects nodes that lack a feature the pod requires."""

    name = "NodeDeclaredFeatures"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        self._enabled = handle.features.node_declared_features

    def sign(self, pod: PodInfo) -> Hashable:
        return required_features(pod.pod)

    def pre_filter(self, pod: PodInfo) -> frozenset[str] | Skip:
        return (self._enabled and required_features(pod.pod)) or SKIP

    def filter_rows(self, state: frozenset[str], pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        nodes = view.nodes
        kinds: IntArray = np.fromiter(
            (
                node is None or not state.issubset(node.status.declaredFeatures)
                for node in (nodes[row] for row in row_numbers(rows).tolist())
            ),
            np.int64,
        )
        return Rejections(kinds, lambda _: _REJECTION)

    def requeue_on(self) -> Sequence[Registration]:
        if not self._enabled:
            return []
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, self._node_changed, alike=True),
            on(Resource.TARGET_POD, Action.UPDATE, self._requirements_changed),
        ]

    def _node_changed(self, _waiting: Pod, old: Node | None, new: Node) -> bool:
        return old is None or old.status.declaredFeatures != new.status.declaredFeatures

    def _requirements_changed(self, _waiting: Pod, old: Pod, new: Pod) -> bool:
        return required_features(old) != required_features(new)


def required_features(pod: Pod) -> frozenset[str]:
    """Return the features that a pod requires its node to declare."""
    spec = pod.spec
    required = []
    containers = (*spec.containers, *spec.initContainers)
    if any(rule.action == "RestartAllContainers" for container in containers for rule in container.restartPolicyRules):
        required.append("RestartAllContainersOnContainerExits")
    if spec.hostNetwork and spec.hostUsers is False:
        required.append("UserNamespacesHostNetworkSupport")
    if any(mount.bindMountOptions for container in containers for mount in container.volumeMounts):
        required.append("VolumeBindMountOptions")
    return frozenset(required)
