"""What pods have taken on nodes since the reports about these nodes.

A report that does not yet include a pod shows its resources as free. Until a report includes it, a pod on a node counts
in every zone, since only the kubelet knows its zone: the node may be refused for a while, but never overfilled.

A report carries a fingerprint of the pods that it includes. It replaces the previous report once the fingerprint equals
that of the pods that run there. A report without a fingerprint is believed at once, and includes the pods that run.
The attributes of a report, such as the policy of the kubelet, do not depend on pods and apply at once.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from kubestow.contrib.containers import signature_of
from kubestow.contrib.numa.demand import demand_of, takes_exclusively
from kubestow.contrib.numa.fingerprint import fingerprint
from kubestow.contrib.numa.topology import NodeResourceTopology
from kubestow.plugin import Handle, Objects, PodInfo

_FINGERPRINT = "nodeTopologyPodsFingerprint"
_METHOD = "nodeTopologyPodsFingerprintMethod"
_ANNOTATION = "topology.node.k8s.io/fingerprint"
_EXCLUSIVE = "with-exclusive-resources"


class _Node(NamedTuple):
    """The pods of a node, by UID."""

    seen: set[str]
    included: set[str]
    """Those that the report of the node includes."""
    own: set[str]
    """Those that this scheduler has placed since it started."""


class Foreign(StrEnum):
    """Which pods count of those that another scheduler placed."""

    ALL = "All"
    NONE = "None"
    EXCLUSIVE = "OnlyExclusiveResources"


class Reservations:
    """For each node, the report that is believed, and the pods that it does not include."""

    def __init__(
        self,
        handle: Handle,
        topologies: Objects[NodeResourceTopology],
        *,
        foreign: Foreign,
        only_exclusive: bool | None,
        attributes_at_once: bool,
    ) -> None:
        """Read reports and pods through a handle.

        `only_exclusive`: whether fingerprints leave pods without resources of their own out; None: as they say.
        `attributes_at_once`: whether attributes apply before the fingerprint is that of the pods.
        """
        self._topologies = topologies
        self._foreign = foreign
        self._only_exclusive = only_exclusive
        self._attributes_at_once = attributes_at_once
        self._on_change: Callable[[str, bool], None] = lambda _node, _changed: None
        self._reports: dict[str, NodeResourceTopology] = {}
        self._nodes: dict[str, _Node] = {}
        self._pods = handle.pods.index_by(lambda pod: pod.pod.spec.nodeName or None, read_in_cycle=False)

    def follow(self, on_change: Callable[[str, bool], None]) -> None:
        """Follow all events of nodes; `on_change(node, changed)` is called after each, also if nothing has changed."""
        self._on_change = on_change
        self._pods.on_change(self._update)
        self._topologies.on_change(lambda node, _: self._update(node))

    def placed(self, pod: PodInfo, node: str) -> None:
        """Note that this scheduler has placed a pod, which is already among the pods of the node."""
        self._nodes[node].own.add(pod.uid)
        self._on_change(node, self._foreign is not Foreign.ALL)

    def report(self, node: str) -> NodeResourceTopology | None:
        """Return the latest report that can be believed."""
        return self._reports.get(node)

    def reserved(self, node: str) -> dict[str, int]:
        """Return the sums of the requests of the pods that the report does not include."""
        known, total = self._nodes.get(node), dict[str, int]()
        if known is None:
            return total
        in_zones = resources_of(self.report(node))
        for pod in self._pods.assigned(node):
            demand = demand_of(signature_of(pod.pod))
            counts = self._foreign is Foreign.ALL or pod.uid in known.own
            counts = counts or (self._foreign is Foreign.EXCLUSIVE and takes_exclusively(demand, in_zones))
            if counts and pod.uid not in known.included:
                for name, amount in demand.whole.items():
                    total[name] = total.get(name, 0) + amount
        return total

    def _update(self, node: str) -> None:
        pods, latest = self._pods.assigned(node), self._topologies.get(node)
        known = self._nodes.setdefault(node, _Node(set(), set(), set()))
        running = {pod.uid for pod in pods if pod.pod.status.phase != "Pending"}
        uids, believed = {pod.uid for pod in pods}, self._reports.get(node)
        changed = uids != known.seen or latest is not believed
        # A pod that ran before it was seen for the first time was there before this scheduler.
        known.included.update(running - known.seen)
        known.seen.clear()
        known.seen.update(uids)
        known.included.intersection_update(uids)
        known.own.intersection_update(uids)
        if latest is None:
            self._reports.pop(node, None)
            if not pods:
                del self._nodes[node]
        elif latest is not believed:
            if self._includes_all(latest, pods):
                known.included.update(running)
                self._reports[node] = latest
            elif believed is None:
                self._reports[node] = latest
            elif self._attributes_at_once and believed.attributes != latest.attributes:
                self._reports[node] = replace(
                    believed, attributes=latest.attributes, topologyPolicies=latest.topologyPolicies
                )
        self._on_change(node, changed)

    def _includes_all(self, report: NodeResourceTopology, pods: Sequence[PodInfo]) -> bool:
        """Return whether a report includes exactly the pods that run."""
        expected, only_exclusive = report.attribute(_FINGERPRINT), self._only_exclusive
        if expected:
            only_exclusive = report.attribute(_METHOD) == _EXCLUSIVE if only_exclusive is None else only_exclusive
        else:
            expected, only_exclusive = report.metadata.annotations.get(_ANNOTATION, ""), False
        in_zones = resources_of(report)
        return not expected or expected == fingerprint(
            (pod.namespace, pod.name)
            for pod in pods
            if pod.pod.status.phase != "Pending"
            and not (only_exclusive and not takes_exclusively(demand_of(signature_of(pod.pod)), in_zones))
        )


def resources_of(report: NodeResourceTopology | None) -> frozenset[str]:
    """Return the resources that a report lists in any zone."""
    zones = () if report is None else report.zones
    return frozenset(resource.name for zone in zones for resource in zone.resources)
