"""Call one plugin on a small cluster: rejections, scores and hints."""

from typing import Any

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.features import Features
from kubestow.scheduler.cluster.changes import events_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import SKIP, Narrowed, Rejection
from kubestow.scheduler.offline_handle import offline_handle


def cluster_of(*objects: Node | Pod) -> Cluster:
    """Return a cluster with these nodes and bound pods."""
    cluster = Cluster()
    for thing in objects:
        if isinstance(thing, Node):
            cluster.set_node(thing)
        else:
            cluster.set_pod(thing)
    return cluster


def make(plugin: Any, args: Any = None, cluster: Cluster | None = None, **features: Any) -> Any:
    """Return a plugin with its arguments, on a cluster."""
    return plugin(args, offline_handle(cluster or Cluster(), Features(**features)))


def rejected(plugin: Any, cluster: Cluster, pod: Pod) -> dict[str, Rejection]:
    """Return the rejections by node; under "" if the pod is rejected as a whole."""
    info = PodInfo(pod)
    state = plugin.pre_filter(info) if hasattr(plugin, "pre_filter") else None
    if state is SKIP:
        return {}
    if isinstance(state, Rejection):
        return {"": state}
    if isinstance(state, Narrowed):
        state = state.state
    rows = np.flatnonzero(cluster.nodes.live[: cluster.nodes.size])
    answer = plugin.filter_rows(state, info, cluster.nodes, rows)
    if answer is None:
        return {}
    found = zip(rows.tolist(), answer.kinds.tolist(), strict=True)
    return {cluster.nodes.names[row]: answer.words(kind) for row, kind in found if kind}


def scores(plugin: Any, cluster: Cluster, pod: Pod) -> dict[str, int] | None:
    """Return the scores by node, normalized if the plugin does that; None if PreScore skips."""
    info, table = PodInfo(pod), cluster.nodes
    rows = np.flatnonzero(table.live[: table.size])
    state = plugin.pre_score(info, table, rows) if hasattr(plugin, "pre_score") else None
    if state is SKIP:
        return None
    found = plugin.score_rows(state, info, table, rows)
    if hasattr(plugin, "normalize"):
        found = plugin.normalize(state, info, table, rows, found)
    return dict(zip((table.names[row] for row in rows), found.tolist(), strict=True))


def hint(plugin: Any, waiting: Pod, old: Any, new: Any) -> bool | None:
    """Return whether a change requeues a waiting pod; None if the plugin is not registered for it."""
    heard = [
        registration.hint is None or registration.hint(waiting, old, new)
        for event in events_of(old, new, waiting)
        for registration in plugin.requeue_on()
        if registration.event.covers(event)
    ]
    return any(heard) if heard else None
