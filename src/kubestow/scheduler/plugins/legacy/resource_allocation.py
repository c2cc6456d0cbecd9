"""The base class of NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio.

These were separate plugins, so that a profile could have several; now they are scoring strategies of NodeResourcesFit.
"""

from collections.abc import Hashable, Iterable

from kubestow.config.plugin_args import ResourceSpec
from kubestow.scheduler.cluster.arrays import IntArray, Rows
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.plugins.support.allocation_strategies import Strategy
from kubestow.scheduler.plugins.support.resource_shares import scored_of, shares


class ResourceAllocation:
    """Scores nodes by their utilization with the pod."""

    reads_pods = PodsRead.SUMS

    def __init__(self, strategy: Strategy, resources: Iterable[ResourceSpec]) -> None:
        self._strategy = strategy
        # A resource that is listed twice has the last weight.
        self._scored = tuple({spec.name: spec.weight for spec in resources}.items())

    def sign(self, pod: PodInfo) -> Hashable | None:
        return pod.requests_signature

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        return self._strategy(shares(view, rows, scored_of(pod, self._scored), non_zero=True))
