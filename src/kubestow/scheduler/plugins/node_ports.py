"""NodePorts: rejects nodes on which a host port of the pod is in use."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kubestow.api.pod import Pod
from kubestow.api.ports import HostPort, host_ports
from kubestow.scheduler.cluster.arrays import IntArray, Rows
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import SKIP, Rejections, Skip, unschedulable

_REJECTION = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    """Rejects nodes on which a requested host port is in use."""

    name = "NodePorts"
    skips_resizes = True

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        return pod.ports

    def pre_filter(self, pod: PodInfo) -> tuple[HostPort, ...] | Skip:
        return pod.ports or SKIP

    def filter_rows(
        self, state: tuple[HostPort, ...] | None, pod: PodInfo, view: NodeView, rows: Rows
    ) -> Rejections | None:
        taken = view.ports.rows_in_conflict(pod.ports if state is None else state)
        if not taken:
            return None
        kinds: IntArray = np.zeros(view.size, np.int64)
        kinds[list(taken)] = 1
        return Rejections(kinds[rows], lambda _: _REJECTION)

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.ASSIGNED_POD, Action.DELETE, self._frees_a_port, alike=True),
            on(Resource.NODE, Action.ADD),
        ]

    def _frees_a_port(self, waiting: Pod, old: Pod, _new: None) -> bool:
        freed = host_ports(old)
        return any(port.conflicts_with(other) for port in host_ports(waiting) for other in freed)
