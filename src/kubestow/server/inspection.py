"""Writes the state of a running scheduler to the log on request, and compares it with the API server.

Differences may be changes that have not been received yet; differences that persist are errors.
"""

from collections import Counter
from collections.abc import Collection

import msgspec

from kubestow.api.failures import CallError
from kubestow.client.api import ApiClient
from kubestow.client.lists import Lister
from kubestow.client.resources import NODES, PODS
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)


class Inspection(msgspec.Struct, frozen=True):
    """The components that are inspected, and the client for the comparison with the server."""

    cluster: Cluster
    queue: SchedulingQueue
    scheduler_names: Collection[str]
    client: ApiClient

    def log_state(self) -> None:
        """Write nodes, their pods and the queue to the log."""
        cluster, queue = self.cluster, self.queue
        pods_on: dict[int, list[str]] = {}
        for row, pod in cluster.placed_pods():
            state = " (assumed)" if cluster.is_assumed(pod.uid) else ""
            pods_on.setdefault(row, []).append(pod.key + state)
        for name, row in sorted(cluster.nodes.row_of.items()):
            if cluster.node(name) is not None:
                log.info("Dump of cached NodeInfo", node=name, pods=sorted(pods_on.get(row, ())))
        waiting = {place: [pod.key for pod in pods] for place, pods in queue.snapshot().items()}
        log.info("Dump of scheduling queue", waiting=waiting, inFlight=[pod.key for pod in queue.in_flight_pods()])

    async def compare_with_server(self) -> list[str]:
        """Log and return the nodes and pods that only the server or only the scheduler has."""
        try:
            nodes = await Lister(self.client, NODES).fetch("")
            pods = await Lister(self.client, PODS).fetch("")
        except CallError as error:
            log.error("Unable to list nodes and pods for the comparison", err=error)
            return [str(error)]
        cluster, queue = self.cluster, self.queue
        known_nodes = {name for name in cluster.nodes.row_of if cluster.node(name) is not None}
        known = Counter(pod.uid for _, pod in cluster.placed_pods())
        known.update(pod.metadata.uid for place in queue.snapshot().values() for pod in place)
        known.update(pod.metadata.uid for pod in queue.in_flight_pods())
        expected = {
            pod.metadata.uid: pod.key
            for pod in pods.objects
            if pod.spec.nodeName in known_nodes
            or (not pod.spec.nodeName and pod.spec.schedulerName in self.scheduler_names)
        }
        findings = {
            "nodes missing here": sorted({node.metadata.name for node in nodes.objects} - known_nodes),
            "nodes missing at the server": sorted(known_nodes - {node.metadata.name for node in nodes.objects}),
            "pods missing here": sorted(key for uid, key in expected.items() if uid not in known),
            "pods missing at the server": sorted(uid for uid in known if uid not in expected),
        }
        differences = [f"{kind}: {', '.join(names)}" for kind, names in findings.items() if names]
        if differences:
            log.warning("Cache mismatch", differences=differences)
        else:
            log.info("Cache matches the API server", nodes=len(nodes.objects), pods=len(expected))
        return differences
