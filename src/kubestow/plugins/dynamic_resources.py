"""DynamicResources: pods that claim devices.

Allocating devices is not implemented: a pod with claims is refused, clearly and as a whole, rather than placed where
its devices are not. Pods without claims are let through, with a score of 0 for every node, as in kube-scheduler.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kubestow.cluster.arrays import IntArray, Rows, row_count
from kubestow.cluster.events import Action, Registration, Resource, on
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.view import NodeView
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import FailedEvaluation, PodsRead
from kubestow.framework.results import SKIP, Code, PostFilterResult, Rejection, Skip, unresolvable

_UNSUPPORTED = unresolvable("pod claims devices (spec.resourceClaims), which this scheduler cannot allocate yet")


class DynamicResources:
    """Refuses pods with resource claims."""

    name = "DynamicResources"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if pod.pod.spec.resourceClaims else ""

    def pre_filter(self, pod: PodInfo) -> Skip | Rejection:
        return _UNSUPPORTED if pod.pod.spec.resourceClaims else SKIP

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult:
        """Claims of the pod that could be given up so that it may get others: none."""
        if cycle.rejected is not None and cycle.rejected.plugin == self.name:
            return PostFilterResult(Code.UNSCHEDULABLE, "still not schedulable")
        if self.name not in cycle.skipped:
            # kube-scheduler's plugin misses what its PreFilter, which did not run, would have left for it.
            return PostFilterResult(Code.ERROR, "not found")
        return PostFilterResult(Code.UNSCHEDULABLE, "no new claims to deallocate")

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        return np.zeros(row_count(rows), np.int64)

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            on(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE),
            on(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
            on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
            on(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
        ]
