"""What a live scheduler knows, told to the log on request, and compared with what the API server says.

Differences may be no mistake: changes that are still on their way. Those that stay are.
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
    """The parts that are looked at, and the client that asks the server."""

    cluster: Cluster
    queue: SchedulingQueue
    scheduler_names: Collection[str]
    client: ApiClient

    def tell_what_is_known(self) -> None:
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
        """Write to the log, and return, what the server has and the scheduler does not know, and the reverse."""
        try:
            nodes = await Lister(self.client, NODES).fetch("")
            pods = await Lister(self.client, PODS).fetch("")
        except CallError as error:
            log.error("The API server cannot be asked what there is", err=error)
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
            "nodes unknown here": sorted({node.metadata.name for node in nodes.objects} - known_nodes),
            "nodes the server does not have": sorted(known_nodes - {node.metadata.name for node in nodes.objects}),
            "pods unknown here": sorted(key for uid, key in expected.items() if uid not in known),
            "pods the server does not have": sorted(uid for uid in known if uid not in expected),
        }
        differences = [f"{what}: {', '.join(which)}" for what, which in findings.items() if which]
        if differences:
            log.warning("Cache mismatch", differences=differences)
        else:
            log.info("Cache matches the API server", nodes=len(nodes.objects), pods=len(expected))
        return differences
