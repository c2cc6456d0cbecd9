"""Builders, random clusters and plugin calls for plugins that select pods."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kubestow.api.codec import convert
from kubestow.api.node import Namespace, Node
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import SKIP

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
MISSING = object()


def node(name: str, *, zone: str | None = None, hostname: object = MISSING, **more: Any) -> Node:
    """Return a node; its hostname label defaults to its name (None: no label)."""
    labels = dict(more.pop("labels", {}))
    if zone is not None:
        labels[ZONE] = zone
    if hostname is not None:
        labels[HOSTNAME] = name if hostname is MISSING else hostname
    return convert(Node, {"metadata": {"name": name, "labels": labels}, "spec": more})


def pod(
    name: str,
    labels: dict[str, str] | None = None,
    *,
    on: str = "",
    namespace: str = "default",
    terminating: bool = False,
    **spec: Any,
) -> Pod:
    """Return a pod, on a node if `on` names one."""
    meta: dict[str, Any] = {"name": name, "uid": f"{namespace}/{name}", "namespace": namespace, "labels": labels or {}}
    if terminating:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if "owner" in spec:
        meta["ownerReferences"] = [{**spec.pop("owner"), "controller": True}]
    return convert(Pod, {"metadata": meta, "spec": {**spec, "nodeName": on}})


def namespace(name: str, labels: dict[str, str]) -> Namespace:
    return convert(Namespace, {"metadata": {"name": name, "labels": labels}})


def cluster_of(*objects: Any) -> Cluster:
    """Return a cluster with these nodes, pods and other objects."""
    cluster = Cluster()
    for thing in objects:
        if isinstance(thing, Node):
            cluster.set_node(thing)
        elif isinstance(thing, Pod):
            cluster.set_pod(thing)
        else:
            cluster.set_object(thing)
    return cluster


def app(name: str) -> dict[str, Any]:
    """Return a label selector."""
    return {"matchLabels": {"app": name}}


def live_rows(cluster: Cluster) -> Any:
    return np.flatnonzero(cluster.nodes.live[: cluster.nodes.size])


def rejections(plugin: Any, cluster: Cluster, waiting: Pod) -> dict[str, str]:
    """Return the reasons of rejected nodes; all reasons under "" if the pod is rejected as a whole."""
    info = PodInfo(waiting)
    return rejections_for(plugin, cluster, plugin.pre_filter(info), info)


def rejections_for(plugin: Any, cluster: Cluster, state: Any, info: PodInfo, rows: Any = None) -> dict[str, str]:
    """Return the reasons of rejected nodes for an existing state, and for some rows."""
    if state is SKIP:
        return {}
    chosen = live_rows(cluster) if rows is None else rows
    evaluated = slice(0, cluster.nodes.size) if rows is None else rows
    answer = plugin.filter_rows(state, info, cluster.nodes, evaluated)
    if answer is None:
        return {}
    kinds = answer.kinds[chosen] if rows is None else answer.kinds
    return {
        cluster.nodes.names[row]: f"{rejection.code.label}: {rejection.message}"
        for row, kind in zip(chosen, kinds, strict=True)
        if kind and (rejection := answer.words(int(kind)))
    }


def check_rows_independent(plugin: Any, cluster: Cluster, waiting: Pod, data: st.DataObject) -> None:
    """Check that the verdict on a node is the same for any subset of rows."""
    info = PodInfo(waiting)
    state = plugin.pre_filter(info)
    everywhere = rejections_for(plugin, cluster, state, info)
    rows = data.draw(st.lists(st.sampled_from(live_rows(cluster).tolist()), unique=True))
    names = {cluster.nodes.names[row] for row in rows}
    expected = {name: reason for name, reason in everywhere.items() if name in names}
    assert rejections_for(plugin, cluster, state, info, np.array(rows, np.int64)) == expected


def check_changes(
    plugin: Any,
    cluster: Cluster,
    waiting: Pod,
    state: Any,
    row: int,
    removed: Sequence[PodInfo],
    added: Sequence[PodInfo],
) -> None:
    """Check that `with_changes` rejects the same nodes as changing the cluster; change it."""
    info = PodInfo(waiting)
    before = rejections_for(plugin, cluster, state, info)
    changes = [Change(other, row, added=False) for other in removed] + [Change(o, row, added=True) for o in added]
    imagined = rejections_for(plugin, cluster, plugin.with_changes(state, info, changes), info)
    assert rejections_for(plugin, cluster, state, info) == before, "the state of the cluster as it is was changed"
    for other in removed:
        cluster.remove_pod(other.uid)
    for other in added:
        cluster.set_pod(other.pod)
    assert imagined == rejections(plugin, cluster, waiting)


def scores(plugin: Any, cluster: Cluster, waiting: Pod, rows: Any = None) -> dict[str, tuple[int, int]] | None:
    """Return raw and normalized score by node; None if PreScore skips."""
    info = PodInfo(waiting)
    chosen = live_rows(cluster) if rows is None else np.asarray(rows, np.int64)
    state = plugin.pre_score(info, cluster.nodes, chosen)
    if state is SKIP:
        return None
    everywhere = plugin.score_rows(state, info, cluster.nodes, slice(0, cluster.nodes.size))[chosen]
    raw = plugin.score_rows(state, info, cluster.nodes, chosen)
    assert raw.tolist() == everywhere.tolist(), "scores depend on which rows are requested for together"
    normalized = plugin.normalize(state, info, cluster.nodes, chosen, raw.copy())
    names = [cluster.nodes.names[row] for row in chosen]
    return dict(zip(names, zip(raw.tolist(), normalized.tolist(), strict=True), strict=True))


# Random clusters

_APPS = st.sampled_from(["web", "db"])
NAMESPACES = ("default", "other", "unlisted")

selectors = st.one_of(
    st.builds(app, _APPS),
    st.just({}),
    st.none(),
    st.just({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
    st.just({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}]}),
)
pod_labels = st.fixed_dictionaries({}, optional={"app": _APPS, "tier": st.sampled_from(["front", "back"])})
_taints = st.lists(
    st.sampled_from([{"key": "dedicated", "effect": "NoSchedule"}, {"key": "slow", "effect": "PreferNoSchedule"}]),
    max_size=1,
)


@st.composite
def node_sets(draw: st.DrawFn) -> list[Node]:
    """Draw one to six nodes; labels may be missing, or empty."""
    return [
        node(
            f"n{number}",
            zone=draw(st.sampled_from(["a", "b", "c", "", None])),
            hostname=draw(st.sampled_from([MISSING, MISSING, MISSING, None])),
            labels={"disk": draw(st.sampled_from(["ssd", "hdd"]))},
            taints=draw(_taints),
        )
        for number in range(draw(st.integers(1, 6)))
    ]


NO_AFFINITY: st.SearchStrategy[Any] = st.none()


@st.composite
def placed_pods(draw: st.DrawFn, nodes: Sequence[Node], affinities: st.SearchStrategy[Any] = NO_AFFINITY) -> list[Pod]:
    """Draw up to ten pods on the nodes."""
    return [
        pod(
            f"p{number}",
            draw(pod_labels),
            on=draw(st.sampled_from([n.metadata.name for n in nodes])),
            namespace=draw(st.sampled_from(NAMESPACES)),
            terminating=draw(st.booleans()),
            affinity=draw(affinities),
        )
        for number in range(draw(st.integers(0, 10)))
    ]
