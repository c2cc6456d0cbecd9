"""A state as the API tells it: nodes in columns, waiting pods in rows, and what is found by a part of its name."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from kubestow.model.pod_groups import PodGroup
from kubestow.web.moments import IN_FLIGHT, Layout, State, Taint, WaitingPod

WAITING_COLUMNS = list(WaitingPod.__struct_fields__)
_REASON = WAITING_COLUMNS.index("reason")
_MOST_VALUES = 200
_FOUND = 20


class ClusterTable:
    """Nodes in columns; what nodes are by themselves is written once for each layout."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._written: dict[str, msgspec.Raw] = {}

    def of(self, state: State) -> dict[str, Any]:
        """The answer."""
        if state.layout is not self._layout:
            self._layout, self._written = state.layout, _by_themselves(state.layout)
        return {
            "time": state.time,
            "moment": state.moment,
            "layout": state.layout.number,
            "pods": state.pods.tolist(),
            "requested": {name: column.tolist() for name, column in state.requested.items()},
            "fragmentation": fragmentation(state),
            **self._written,
        }


def _by_themselves(layout: Layout) -> dict[str, msgspec.Raw]:
    labels, left_out = _label_columns(layout.labels)
    sets = {taints: number for number, taints in enumerate(dict.fromkeys([(), *layout.taints]))}
    columns = {
        "names": layout.names,
        "allowedPods": layout.allowed_pods,
        "resources": list(layout.allocatable),
        "allocatable": layout.allocatable,
        "unschedulable": [int(one) for one in layout.unschedulable],
        "taints": {"sets": list(sets), "of": [sets[taints] for taints in layout.taints]},
        "labels": labels,
        "labelsLeftOut": left_out,
    }
    return {name: msgspec.Raw(msgspec.json.encode(column)) for name, column in columns.items()}


def _label_columns(labels: list[dict[str, str]]) -> tuple[dict[str, Any], list[str]]:
    """By key, all values and the one of each node; keys with more values than can be told apart are left out."""
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


def fragmentation(state: State) -> list[float]:
    """Of each node, the share of its free cores that is of no use to a pod of the average size."""
    layout, count = state.layout, int(state.pods.sum())
    if not count or "cpu" not in state.requested:
        return [0.0] * len(layout.names)
    asked = np.array([[int(state.requested[name].sum())] for name in ("cpu", "memory")]) / count
    allocatable = np.array([layout.allocatable[name] for name in ("cpu", "memory")])
    free = np.maximum(allocatable - np.array([state.requested[name] for name in ("cpu", "memory")]), 0)
    size = np.maximum(asked, 1.0)
    useful = np.floor((free / size).min(axis=0)) * size[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(free[0] > 0, 1.0 - useful / free[0], 0.0)
    found: list[float] = np.round(np.clip(lost, 0.0, 1.0), 3).tolist()
    return found


def node(state: State, name: str) -> dict[str, Any] | None:
    """All about one node, but why pods were refused there; None if there is no such node."""
    layout = state.layout
    if name not in layout.names:
        return None
    position = layout.names.index(name)
    pods = sorted(state.placed.get(name, {}).values(), key=lambda pod: (-pod.priority, pod.pod))
    taints: tuple[Taint, ...] = layout.taints[position]
    return {
        "time": state.time,
        "name": name,
        "position": position,
        "unschedulable": layout.unschedulable[position],
        "labels": layout.labels[position],
        "taints": taints,
        "allocatable": {key: column[position] for key, column in layout.allocatable.items()},
        "requested": {key: int(column[position]) for key, column in state.requested.items()},
        "allowedPods": layout.allowed_pods[position],
        "pods": {
            "columns": ["uid", "pod", "priority", "requests"],
            "rows": [(pod.uid, pod.pod, pod.priority, pod.requests) for pod in pods],
        },
    }


def rows_of(pods: Iterable[WaitingPod]) -> dict[str, Any]:
    """Rows, with each reason said once."""
    numbers: dict[str, int] = {"": 0}
    rows = []
    for pod in pods:
        row = list(msgspec.structs.astuple(pod))
        row[_REASON] = numbers.setdefault(pod.reason, len(numbers))
        rows.append(row)
    return {"reasons": list(numbers), "columns": WAITING_COLUMNS, "rows": rows}


def queue(state: State) -> dict[str, Any]:
    """Everything that waits."""
    head = {"time": state.time, "moment": state.moment, "counts": state.figures.pending}
    return head | rows_of(state.waiting.values())


def groups(state: State, known: Iterable[PodGroup]) -> dict[str, Any]:
    """Pod groups: those that exist, and those that pods name."""
    pending = Counter(pod.group for pod in state.waiting.values() if pod.group and pod.state != IN_FLIGHT)
    nodes: dict[str, list[str]] = {}
    for on_node in state.placed.values():
        for pod in on_node.values():
            if pod.group:
                nodes.setdefault(pod.group, []).append(pod.node)
    least = {group.key: group.min_count for group in known}
    rows = [
        (key, least.get(key, 0), pending[key], len(nodes.get(key, ())), sorted(set(nodes.get(key, ()))))
        for key in sorted({*least, *pending, *nodes})
    ]
    return {"time": state.time, "columns": ["group", "minCount", "pending", "scheduled", "nodes"], "rows": rows}


def search(state: State, text: str, plugins: Iterable[str]) -> dict[str, Any]:
    """What has a text in its name, or in what is said of it."""
    part = text.lower()
    waiting = [pod for pod in state.waiting.values() if part in pod.pod.lower() or pod.uid == text]
    placed = (pod for pods in state.placed.values() for pod in pods.values() if part in pod.pod.lower())
    known = {pod.pod for pod in waiting}
    found = [{"pod": pod.pod, "state": pod.state, "node": pod.node} for pod in waiting[:_FOUND]]
    for pod in placed:
        if len(found) >= _FOUND:
            break
        if pod.pod not in known:
            found.append({"pod": pod.pod, "state": "placed", "node": pod.node})
    reasons = Counter(pod.reason for pod in state.waiting.values() if part in pod.reason.lower() and pod.reason)
    return {
        "pods": found,
        "nodes": [name for name in state.layout.names if part in name.lower()][:_FOUND],
        "plugins": sorted(name for name in plugins if part in name.lower())[:_FOUND],
        "reasons": [{"reason": reason, "count": count} for reason, count in reasons.most_common(_FOUND)],
    }
