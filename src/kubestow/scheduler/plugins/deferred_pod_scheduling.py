"""DeferredPodScheduling: lets pods be preempted for the resize of a pod that its node has deferred.

Such a pod is in the queue although it has a node. It is evaluated on that node alone, by the plugins that limit
resources; if it does not fit there, preemption makes room. If it fits, Permit rejects it: the kubelet resizes it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.requests import resize_is_deferred
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_numbers
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import SKIP, Reasons, Rejection, Rejections, Skip, unresolvable

_OTHER_NODE = unresolvable("pod assigned to different node")
_DISABLED = unresolvable("node had resize preemption disabled")
_FITS = unresolvable("pod resize fits, waiting for Kubelet actuation")


class DeferredPodScheduling:
    """Rejects nodes that do not let pods be preempted for a resize; holds pods whose resize fits."""

    name = "DeferredPodScheduling"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        self._enabled = handle.features.in_place_pod_vertical_scaling_scheduler_preemption

    def sign(self, pod: PodInfo) -> str:
        return pod.pod.spec.nodeName

    def _applies_to(self, pod: Pod) -> bool:
        return self._enabled and resize_is_deferred(pod)

    def pre_filter(self, pod: PodInfo) -> Skip | None:
        return None if self._applies_to(pod.pod) else SKIP

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections:
        reasons, wanted = Reasons(), pod.pod.spec.nodeName
        kinds: IntArray = np.zeros(len(row_numbers(rows)), np.int64)
        for position, row in enumerate(row_numbers(rows).tolist()):
            if wanted and view.names[row] != wanted:
                kinds[position] = reasons.number(_OTHER_NODE)
            elif _disables_preemption(view.nodes[row]):
                kinds[position] = reasons.number(_DISABLED)
        return Rejections(kinds, reasons.words)

    def permit(self, state: None, pod: PodInfo, node: str) -> Rejection | None:
        return _FITS if self._applies_to(pod.pod) else None

    def requeue_on(self) -> Sequence[Registration]:
        actions = Action.ADD | Action.UPDATE_NODE_PREEMPTION_POLICY
        return [on(Resource.NODE, actions, self._allows_preemption_now)]

    def _allows_preemption_now(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        if not self._applies_to(waiting) or waiting.spec.nodeName != new.metadata.name:
            return False
        return (old is None or _disables_preemption(old)) and not _disables_preemption(new)


def _disables_preemption(node: Node | None) -> bool:
    policy = None if node is None else node.spec.podPreemptionPolicy
    return policy is not None and bool(policy.disableResizePreemption)
