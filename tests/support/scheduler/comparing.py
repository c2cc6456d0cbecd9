"""Descriptions of a cluster's nodes that do not depend on the order of the events that led to them."""

from typing import Any

from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import WhatIf

LABEL_KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk")


def described(cluster: Cluster) -> dict[str, Any]:
    """Return every column and index, by node name."""
    nodes = cluster.nodes
    return {
        "count": nodes.count,
        "rows": {name: row_described(nodes, row) for name, row in nodes.row_of.items()},
        "ports": _ports(nodes),
        "images": {
            name: (image.size, sorted(nodes.names[row] for row in image.rows))
            for name, image in cluster.images.by_name.items()
        },
        "order": sorted(nodes.names[row] for row in cluster.order.rows()),
        "claims": {claim: sorted(users) for claim, users in cluster.claim_users.items()},
        "assumed": cluster.assumed_count,
        "placed": sorted((nodes.names[row], pod.uid) for row, pod in cluster.placed_pods()),
    }


def row_described(view: NodeTable | WhatIf, row: int) -> dict[str, Any]:
    """Return the columns of one row of a table or of a what-if."""
    amounts = {
        kind: {
            name: int(columns[column, row])
            for name, column in view.resource_index.items()
            if column < len(columns) and columns[column, row]
        }
        for kind, columns in (("allocatable", view.allocatable), ("requested", view.requested))
    }
    node = view.nodes[row]
    return amounts | {
        "live": bool(view.live[row]),
        "node": None if node is None else node.metadata.resourceVersion,
        "capacities": None if view.capacities.floats is None else view.capacities.floats[:, row].tolist(),
        "non_zero": view.non_zero[:, row].tolist(),
        "pod_count": int(view.pod_count[row]),
        "allowed_pods": int(view.allowed_pods[row]),
        "unschedulable": bool(view.unschedulable[row]),
        "taints": view.taint_sets.taints[view.taint_set[row]],
        "labels": {key: view.label_values(key)[view.label_ids(key)[row]] for key in LABEL_KEYS},
        "pods": sorted(view.pods[row]),
    }


def _ports(nodes: NodeTable) -> dict[Any, Any]:
    return {
        port: sorted((nodes.names[row], address, count) for (row, address), count in users.items())
        for port, users in nodes.ports._users.items()
    }
