"""Responses of the API about a state: nodes in columns, waiting pods in rows, and the results of a search."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from kubestow.api.natural_order import natural
from kubestow.api.node import Node, Taint
from kubestow.api.pod_groups import group_key
from kubestow.insight.page.history import State
from kubestow.insight.page.moments import IN_FLIGHT, WaitingPod
from kubestow.scheduler.cluster.nodes import CPU, MEMORY, NodeTable

WAITING_COLUMNS = list(WaitingPod.__struct_fields__)
_REASON = WAITING_COLUMNS.index("reason")
_MOST_VALUES = 200
_FOUND = 20


def live_rows(table: NodeTable) -> list[int]:
    """Return the rows of all nodes in the order of the page."""
    return np.flatnonzero(table.live[: table.size]).tolist()


def usage(table: NodeTable, rows: list[int]) -> dict[str, Any]:
    """Return the number of pods on each node, and their requests."""
    requested = {name: table.requested[column, rows].tolist() for name, column in table.resource_index.items()}
    return {"pods": table.pod_count[rows].tolist(), "requested": requested}


class ClusterTable:
    """Nodes in columns. Columns that do not depend on pods are only encoded again if nodes change."""

    def __init__(self) -> None:
        self._encoded_for: tuple[list[Node | None], list[str]] | None = None
        self._encoded: dict[str, msgspec.Raw] = {}

    def of(self, state: State) -> dict[str, Any]:
        """Return the columns of all nodes."""
        table = state.cluster.nodes
        rows = live_rows(table)
        encoded_for = [table.nodes[row] for row in rows], list(table.resource_index)
        if encoded_for != self._encoded_for:
            self._encoded_for, self._encoded = encoded_for, _without_pods(table, rows)
        return {
            "time": state.last.time,
            "moment": state.last.number,
            "layout": state.last.layout,
            **usage(table, rows),
            "fragmentation": _fragmentation(table, rows),
            **self._encoded,
        }


def _without_pods(table: NodeTable, rows: list[int]) -> dict[str, msgspec.Raw]:
    """Return the columns that do not depend on pods."""
    labels, left_out = _label_columns([node.metadata.labels for row in rows if (node := table.nodes[row]) is not None])
    sets = {number: place for place, number in enumerate(dict.fromkeys([0, *table.taint_set[rows].tolist()]))}
    columns = {
        "names": [table.names[row] for row in rows],
        "allowedPods": table.allowed_pods[rows].tolist(),
        "resources": list(table.resource_index),
        "allocatable": {
            name: table.allocatable[column, rows].tolist() for name, column in table.resource_index.items()
        },
        "unschedulable": table.unschedulable[rows].astype(int).tolist(),
        "taints": {
            "sets": [_taints(table.taint_sets.taints[number]) for number in sets],
            "of": [sets[number] for number in table.taint_set[rows].tolist()],
        },
        "labels": labels,
        "labelsLeftOut": left_out,
    }
    return {name: msgspec.Raw(msgspec.json.encode(column)) for name, column in columns.items()}


def _taints(taints: Iterable[Taint]) -> list[dict[str, str]]:
    return [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints]


def _label_columns(labels: Sequence[Mapping[str, str]]) -> tuple[dict[str, Any], list[str]]:
    """Return by key all values and the value of each node; and the keys that are omitted for too many values."""
    columns: dict[str, Any] = {}
    left_out = []
    for key in sorted({key for of_node in labels for key in of_node}):
        number: dict[str, int] = {"": 0}
        of = [number.setdefault(of_node[key], len(number)) if key in of_node else 0 for of_node in labels]
        if len(number) > _MOST_VALUES:
            left_out.append(key)
        else:
            columns[key] = {"values": list(number), "of": of}
    return columns, left_out


def _fragmentation(table: NodeTable, rows: list[int]) -> list[float]:
    """Return for each node the share of its free CPU that pods of the average size cannot use."""
    count = int(table.pod_count[rows].sum())
    if not count:
        return [0.0] * len(rows)
    requested, allocatable = (column[[CPU, MEMORY]][:, rows] for column in (table.requested, table.allocatable))
    size = np.maximum(requested.sum(axis=1, keepdims=True) / count, 1.0)
    free = np.maximum(allocatable - requested, 0)
    useful = np.floor((free / size).min(axis=0)) * size[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(free[0] > 0, 1.0 - useful / free[0], 0.0)
    found: list[float] = np.round(np.clip(lost, 0.0, 1.0), 3).tolist()
    return found


def node(state: State, name: str) -> dict[str, Any] | None:
    """Return the data of one node, except rejections; None if the node does not exist."""
    table = state.cluster.nodes
    row = table.row_of.get(name)
    known = None if row is None else table.nodes[row]
    if row is None or known is None:
        return None
    pods = sorted(table.pods[row].values(), key=lambda pod: (-pod.priority, pod.key))
    return {
        "time": state.last.time,
        "name": name,
        "position": int(table.live[:row].sum()),
        "unschedulable": known.spec.unschedulable,
        "labels": known.metadata.labels,
        "taints": _taints(known.spec.taints),
        "allocatable": {key: table.allocatable.item(column, row) for key, column in table.resource_index.items()},
        "requested": {key: table.requested.item(column, row) for key, column in table.resource_index.items()},
        "allowedPods": table.allowed_pods.item(row),
        "pods": {
            "columns": ["uid", "pod", "priority", "requests"],
            "rows": [(pod.uid, pod.key, pod.priority, pod.requests.amounts) for pod in pods],
        },
    }


def rows_of(pods: Iterable[WaitingPod]) -> dict[str, Any]:
    """Return rows of pods in the queue, and the distinct reasons."""
    numbers: dict[str, int] = {"": 0}
    rows = []
    for pod in pods:
        row = list(msgspec.structs.astuple(pod))
        row[_REASON] = numbers.setdefault(pod.reason, len(numbers))
        rows.append(row)
    return {"reasons": list(numbers), "columns": WAITING_COLUMNS, "rows": rows}


def queue(state: State) -> dict[str, Any]:
    """Return all pods in the queue and in flight."""
    head = {"time": state.last.time, "moment": state.last.number, "counts": state.last.figures.pending}
    return head | rows_of(state.waiting.values())


def groups(state: State) -> dict[str, Any]:
    """Return the pod groups that exist or that pods name."""
    pending = Counter(pod.group for pod in state.waiting.values() if pod.group and pod.state != IN_FLIGHT)
    scheduled: dict[str, list[str]] = {}
    table = state.cluster.nodes
    for name, pods in zip(table.names, table.pods, strict=True):
        for pod in pods.values():
            if pod.pod.spec.schedulingGroup is not None and (key := group_key(pod.pod)):
                scheduled.setdefault(key, []).append(name)
    least = {group.key: group.min_count for group in state.cluster.listers.pod_groups}
    rows = [
        (
            key,
            least.get(key, 0),
            pending[key],
            len(scheduled.get(key, ())),
            sorted(set(scheduled.get(key, ())), key=natural),
        )
        for key in sorted({*least, *pending, *scheduled})
    ]
    return {"time": state.last.time, "columns": ["group", "minCount", "pending", "scheduled", "nodes"], "rows": rows}


def search(state: State, text: str, plugins: Iterable[str]) -> dict[str, Any]:
    """Return the pods, nodes and plugins whose name contains a text, and the reasons that contain it."""
    part = text.lower()
    waiting = [pod for pod in state.waiting.values() if part in pod.pod.lower() or pod.uid == text]
    known = {pod.pod for pod in waiting}
    found = [{"pod": pod.pod, "state": pod.state, "node": pod.node} for pod in waiting[:_FOUND]]
    table = state.cluster.nodes
    placed = (
        {"pod": pod.key, "state": "placed", "node": name}
        for name, pods in zip(table.names, table.pods, strict=True)
        for pod in pods.values()
        if part in pod.pod.key.lower() and pod.key not in known
    )
    found += islice(placed, _FOUND - len(found))
    reasons = Counter(pod.reason for pod in state.waiting.values() if part in pod.reason.lower() and pod.reason)
    names = (table.names[row] for row in live_rows(table))
    return {
        "pods": found,
        "nodes": sorted((name for name in names if part in name.lower()), key=natural)[:_FOUND],
        "plugins": sorted(name for name in plugins if part in name.lower())[:_FOUND],
        "reasons": [{"reason": reason, "count": count} for reason, count in reasons.most_common(_FOUND)],
    }
