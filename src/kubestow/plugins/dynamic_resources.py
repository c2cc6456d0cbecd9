"""DynamicResources: pods that claim devices.

Allocating devices is not implemented: a pod with claims is refused, clearly and as a whole, rather than placed where
its devices are not. Pods without claims are let through, with a score of 0 for every node, as in kube-scheduler.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kubestow.cluster.arrays import IntArray, Rows, row_count
from kubestow.cluster.events import Action, Registration, Resource, on
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.view import NodeView
from kubestow.framework.handle import Handle
from kubestow.framework.results import SKIP, Rejection, Skip, unresolvable

_UNSUPPORTED = unresolvable("pod claims devices (spec.resourceClaims), which this scheduler cannot allocate yet")


class DynamicResources:
    """Refuses pods with resource claims."""

    name = "DynamicResources"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_filter(self, pod: PodInfo) -> Skip | Rejection:
        return _UNSUPPORTED if pod.pod.spec.resourceClaims else SKIP

    def score_rows(self, want: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        return np.zeros(row_count(rows), np.int64)

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            on(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE),
            on(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
            on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
            on(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
        ]
