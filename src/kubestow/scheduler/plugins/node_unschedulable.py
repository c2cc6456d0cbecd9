"""NodeUnschedulable: rejects cordoned nodes for pods that do not tolerate the unschedulable taint."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kubestow.api.node import Node, Taint
from kubestow.api.pod import Pod
from kubestow.api.tolerations import tolerates
from kubestow.scheduler.cluster.arrays import Rows, is_any_set
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import Rejections, unresolvable

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REJECTION = unresolvable("node(s) were unschedulable")


class NodeUnschedulable:
    """Rejects cordoned nodes."""

    name = "NodeUnschedulable"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        self._comparison = handle.features.taint_toleration_comparison_operators

    def sign(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.tolerations

    def pre_filter(self, pod: PodInfo) -> None:
        """Filter every pod."""

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        cordoned = view.unschedulable[rows]
        if not is_any_set(cordoned) or self._is_tolerated_by(pod.pod):
            return None
        return Rejections(cordoned.astype(np.int64), lambda _: _REJECTION)

    def _is_tolerated_by(self, pod: Pod) -> bool:
        return any(tolerates(toleration, _CORDONED, self._comparison) for toleration in pod.spec.tolerations)

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._is_uncordoned, alike=True),
            on(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, self._tolerates_now),
        ]

    def _is_uncordoned(self, _waiting: Pod, old: Node | None, new: Node) -> bool:
        return not new.spec.unschedulable and (old is None or old.spec.unschedulable)

    def _tolerates_now(self, _waiting: Pod, _old: Pod, new: Pod) -> bool:
        return self._is_tolerated_by(new)
