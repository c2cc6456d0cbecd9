"""NodeName: a pod that names a node runs on that node only."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_numbers
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import Narrowed, Rejections, unresolvable

_REJECTION = unresolvable("node(s) didn't match the requested node name")


class NodeName:
    """Rejects every node except the one that the pod names."""

    name = "NodeName"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.nodeName

    def pre_filter(self, pod: PodInfo) -> Narrowed | None:
        wanted = pod.pod.spec.nodeName
        return Narrowed(frozenset((wanted,))) if wanted else None

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        wanted = pod.pod.spec.nodeName
        if not wanted:
            return None
        kinds: IntArray = np.fromiter((view.names[row] != wanted for row in row_numbers(rows).tolist()), np.int64)
        return Rejections(kinds, lambda _: _REJECTION)

    def requeue_on(self) -> Sequence[Registration]:
        return [on(Resource.NODE, Action.ADD)]
