"""TopologyPlacementGenerator: places a pod group with a topology constraint on the nodes of one domain."""

from collections.abc import Iterable, Sequence

import numpy as np

from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import Placement, TriedGroup


class TopologyPlacementGenerator:
    """Generates one placement per value of the group's topology key; only the value in use once the group has pods."""

    name = "TopologyPlacementGenerator"

    def __init__(self, args: None, handle: Handle) -> None:
        self._cluster = handle.cluster

    def generate_placements(self, group: TriedGroup, within: Placement) -> Sequence[Placement]:
        if group.group is None:
            raise LookupError(f'podgroup.scheduling.k8s.io "{group.name}" not found')
        key = group.group.topology_key
        if not key:
            return [within]
        nodes = self._cluster.nodes
        values = nodes.label_ids(key)[within.rows]
        names = nodes.label_values(key)
        order = np.argsort(values, kind="stable")
        domains, starts = np.unique(values[order], return_index=True)
        rows = np.split(within.rows[order], starts[1:])
        placements = [Placement(names[domain], of) for domain, of in zip(domains.tolist(), rows, strict=True) if domain]
        domain_in_use = self._domain_of_scheduled(group, key)
        if domain_in_use is None:
            return sorted(placements, key=lambda placement: placement.name)
        return [placement for placement in placements if placement.name == domain_in_use]

    def _domain_of_scheduled(self, group: TriedGroup, key: str) -> str | None:
        """Return the domain of the group's scheduled pods, None if it has none. Raises LookupError if unclear."""
        groups = self._cluster.groups
        scheduled = {} if groups is None or group.group is None else groups.scheduled(group.group)
        domains = dict.fromkeys(self._domains(group, scheduled.items(), key))
        if len(domains) > 1:
            one, other, *_ = domains
            raise _unknown_domain(f"more than 1 domain found for pod group: {one}, {other}")
        return next(iter(domains), None)

    def _domains(self, group: TriedGroup, scheduled: Iterable[tuple[str, str]], key: str) -> Iterable[str]:
        for uid, name in scheduled:
            node, pod = self._cluster.node(name), self._cluster.pod(uid)
            of_pod = group.key if pod is None else pod.key
            if node is None:
                raise _unknown_domain(f'getting node for pod {of_pod}: nodeinfo not found for node name "{name}"')
            if key not in node.metadata.labels:
                raise _unknown_domain(f"no topology domain found for pod {of_pod}")
            yield node.metadata.labels[key]


def _unknown_domain(why: str) -> LookupError:
    return LookupError(f"cannot determine domain for already scheduled pods: {why}")
