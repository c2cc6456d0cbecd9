"""The state of a cluster for the screen: pods by phase, utilization of nodes and zones, the queue, decisions.

Pods are counted as they change; the rest is read from the scheduler's own columns. So reading is cheap, and `version`
changes when there is something new.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from kubestow.api.natural_order import natural
from kubestow.api.node import Node
from kubestow.apiserver.controllers.pods import PHASE
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.cli.scheduler.live import LiveScheduler
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.schema import UNSCHEDULABLE
from kubestow.insight.explain.owners import Owner
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.nodes import CPU, MEMORY

ZONE = "topology.kubernetes.io/zone"
_READ = 2_000
"""Number of the newest decisions that are read."""
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True, slots=True)
class Usage:
    """The utilization of a node, or of all nodes of a zone."""

    name: str
    note: str
    """The zone of a node; the number of nodes of a zone."""
    state: str
    milli_cpu: tuple[int, int]
    """Requested and allocatable."""
    memory: tuple[int, int]
    pods: tuple[int, int]


class Shown(NamedTuple):
    """A decision, which may stand for equal ones about other pods of the owner."""

    record: Record
    owner: str = ""
    pods: dict[str, str] = {}
    """The names, by UID, of the pods that were rejected for the same reason."""

    @property
    def name(self) -> str:
        """The pod, or its owner with the number of pods."""
        return self.record.pod if len(self.pods) < 2 else f"{self.owner} ({len(self.pods)} pods)"

    @property
    def key(self) -> Hashable:
        """What stays the same when the decisions are read again."""
        return (self.owner, self.record.message) if self.pods else (self.record.uid, self.record.time)


class Overview:
    """Reads the state of a running cluster."""

    def __init__(self, store: Store, scheduler: LiveScheduler) -> None:
        self.phases: Counter[str] = Counter()
        self._scheduler = scheduler
        self._decisions: Iterable[Record] = () if scheduler.decisions is None else scheduler.decisions
        self._nodes = scheduler.core.cluster.nodes
        self._changes = 0
        pods = store.collection("pods")
        self.phases.update(record.fields[PHASE] for record in pods.objects.values())
        pods.subscribers.append(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        self._changes += 1
        if change.previous is not None:
            self.phases[change.previous.fields[PHASE]] -= 1
        if change.type != "DELETED":
            self.phases[change.record.fields[PHASE]] += 1

    @property
    def version(self) -> Hashable:
        """A value that changes when there is something new."""
        newest = next(iter(self._decisions), None)
        return self._changes, self._nodes.changes.last, newest and newest.id, tuple(self.queue.values())

    @property
    def queue(self) -> dict[str, int]:
        """The number of pods by queue."""
        return self._scheduler.core.queue.lengths()

    @property
    def node_count(self) -> int:
        return self._nodes.count

    def decisions(self, limit: int, namespace: str = "", owned_by: str = "") -> list["Shown"]:
        """Return the last decisions, newest first; rejections of an owner's pods for the same reason appear once.

        `namespace`, `owned_by`: of pods of this namespace or owner only.
        """
        shown: list[Shown] = []
        rejected: dict[tuple[Owner, str], Shown] = {}
        for record in islice(self._decisions, _READ):
            if namespace not in ("", record.namespace):
                continue
            if record.outcome == UNSCHEDULABLE or owned_by:
                owner = Owner.of(record.info.pod, self._scheduler.core.cluster.listers)
            if owned_by and owner.text != owned_by:
                continue
            if record.outcome == UNSCHEDULABLE:
                equal = rejected.get((owner, record.message))
                if equal is not None:
                    equal.pods[record.uid] = record.pod
                    continue
                rejected[owner, record.message] = Shown(record, owner.text, {record.uid: record.pod})
            if len(shown) < limit:
                shown.append(rejected[owner, record.message] if record.outcome == UNSCHEDULABLE else Shown(record))
        return shown

    def owner_of(self, shown: "Shown") -> str:
        """Return the owner of the pods of a decision."""
        return shown.owner or Owner.of(shown.record.info.pod, self._scheduler.core.cluster.listers).text

    def namespaces(self) -> list[str]:
        """Return the namespaces of the pods of the last decisions."""
        return sorted({record.namespace for record in islice(self._decisions, _READ)})

    def nodes(self) -> list[Usage]:
        """Return the usage of each node, in natural order of names: node-2 before node-10."""
        usages = [
            self._usage(node.metadata.name, node.metadata.labels.get(ZONE, ""), _state(node), np.array([row]))
            for row, node in enumerate(self._nodes.nodes)
            if node is not None
        ]
        return sorted(usages, key=lambda usage: natural(usage.name))

    def zones(self) -> list[Usage]:
        """Return the usage of each zone."""
        table = self._nodes
        rows = np.flatnonzero(table.live[: table.size])
        ids = table.label_ids(ZONE)[rows]
        usages = []
        for zone in np.unique(ids):
            inside = rows[ids == zone]
            name = table.label_values(ZONE)[zone] or "no zone"
            usages.append(self._usage(name, str(len(inside)), "", inside))
        return sorted(usages, key=lambda usage: usage.name)

    def _usage(self, name: str, note: str, state: str, rows: IntArray) -> Usage:
        table = self._nodes

        def total(column: IntArray) -> int:
            return int(column[rows].sum())

        return Usage(
            name,
            note,
            state,
            (total(table.requested[CPU]), total(table.allocatable[CPU])),
            (total(table.requested[MEMORY]), total(table.allocatable[MEMORY])),
            (total(table.pod_count), total(table.allowed_pods)),
        )


def _state(node: Node) -> str:
    if any(taint.key in _NOT_READY for taint in node.spec.taints):
        return "not ready"
    return "cordoned" if node.spec.unschedulable else "ready"
