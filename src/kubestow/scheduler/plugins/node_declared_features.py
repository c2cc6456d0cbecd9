"""NodeDeclaredFeatures: some pods need features that a node's kubelet must have declared."""

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

_REFUSED = unresolvable("node(s) didn't match Pod's required features")


class NodeDeclaredFeatures:
    """Refuses nodes that lack a feature the pod needs."""

    name = "NodeDeclaredFeatures"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        self._enabled = handle.features.node_declared_features

    def sign(self, pod: PodInfo) -> Hashable:
        return needed_features(pod.pod)

    def pre_filter(self, pod: PodInfo) -> frozenset[str] | Skip:
        return (self._enabled and needed_features(pod.pod)) or SKIP

    def filter_rows(self, state: frozenset[str], pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        nodes = view.nodes
        kinds: IntArray = np.fromiter(
            (
                node is None or not state.issubset(node.status.declaredFeatures)
                for node in (nodes[row] for row in row_numbers(rows).tolist())
            ),
            np.int64,
        )
        return Rejections(kinds, lambda _: _REFUSED)

    def requeue_on(self) -> Sequence[Registration]:
        if not self._enabled:
            return []
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, self._declares_others, alike=True),
            on(Resource.POD, Action.UPDATE, self._needs_others, alike=True),
        ]

    def _declares_others(self, _waiting: Pod, old: Node | None, new: Node) -> bool:
        return old is None or old.status.declaredFeatures != new.status.declaredFeatures

    def _needs_others(self, waiting: Pod, old: Pod, new: Pod) -> bool:
        return waiting.metadata.uid == new.metadata.uid and needed_features(old) != needed_features(new)


def needed_features(pod: Pod) -> frozenset[str]:
    """The features that a pod needs its node to declare."""
    spec = pod.spec
    needed = []
    rules = [rule for of in (*spec.containers, *spec.initContainers) for rule in of.restartPolicyRules]
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.append("RestartAllContainersOnContainerExits")
    if spec.hostNetwork and spec.hostUsers is False:
        needed.append("UserNamespacesHostNetworkSupport")
    return frozenset(needed)
