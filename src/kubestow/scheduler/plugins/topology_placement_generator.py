"""TopologyPlacementGenerator: a group with a topology constraint goes to the nodes of one domain."""

from collections.abc import Iterable, Sequence

import numpy as np

from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import Placement, TriedGroup


class TopologyPlacementGenerator:
    """A placement for each value of the group's topology key; once pods of the group have one, it is theirs alone."""

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
        taken = self._domain_of_scheduled(group, key)
        if taken is None:
            return sorted(placements, key=lambda placement: placement.name)
        return [placement for placement in placements if placement.name == taken]

    def _domain_of_scheduled(self, group: TriedGroup, key: str) -> str | None:
        """The domain that pods of the group are in already; None if there are none."""
        groups = self._cluster.groups
        scheduled = {} if groups is None else groups.members(group.key).scheduled
        domains = dict.fromkeys(self._domains(group, scheduled.items(), key))
        if len(domains) > 1:
            one, other, *_ = domains
            raise _unclear(f"more than 1 domain found for pod group: {one}, {other}")
        return next(iter(domains), None)

    def _domains(self, group: TriedGroup, scheduled: Iterable[tuple[str, str]], key: str) -> Iterable[str]:
        for uid, name in scheduled:
            node, pod = self._cluster.node(name), self._cluster.pod(uid)
            of_pod = group.key if pod is None else pod.key
            if node is None:
                raise _unclear(f'getting node for pod {of_pod}: nodeinfo not found for node name "{name}"')
            if key not in node.metadata.labels:
                raise _unclear(f"no topology domain found for pod {of_pod}")
            yield node.metadata.labels[key]


def _unclear(why: str) -> LookupError:
    return LookupError(f"cannot determine domain for already scheduled pods: {why}")
