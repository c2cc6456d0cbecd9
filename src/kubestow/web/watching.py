"""Looks at a scheduler and tells what has changed since the last look.

Nothing is asked of the scheduler that it would not know anyway: rows of the node table that have changed carry a
number, a pod has another entry in the queue each time it comes there, decisions have an id. So a look costs what has
changed, and a glance at every waiting pod.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from kubestow.binding.waiting import WaitingPod as PodAtPermit
from kubestow.cluster.nodes import CPU, MEMORY
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.decisions.record import Record
from kubestow.decisions.recorder import FIRST_EVENT, Recorder
from kubestow.decisions.schema import SCHEDULED
from kubestow.model.clock import Clock
from kubestow.model.node import Node
from kubestow.model.pod import Pod
from kubestow.model.pod_groups import group_key
from kubestow.model.standing import pod_priority
from kubestow.model.timestamps import parse_time
from kubestow.queue.queued_pod import QueuedPod
from kubestow.queue.scheduling_queue import ATTEMPT_FAILED, BACKOFF_COMPLETE, POPPED_FROM_BACKOFF
from kubestow.reporting.metrics.scheduler import SchedulerMetrics
from kubestow.web.moments import IN_FLIGHT, WAITING, Figures, Layout, Moment, PlacedPod, Taint, Usage, WaitingPod
from kubestow.wiring.core import Core

_MOST_IN_FLIGHT = 200
"""So many are told one by one; where it is more, each is on its way for a few milliseconds."""
_NOT_WAKING = (FIRST_EVENT, ATTEMPT_FAILED, BACKOFF_COMPLETE, POPPED_FROM_BACKOFF)
_QUIET_SECONDS = 10.0
"""So often it is told that nothing happens."""
_PLUGIN_SECONDS = 1.0
"""How often plugins are asked how long they took: that is a long list."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The parts of a scheduler that are looked at."""

    core: Core
    metrics: SchedulerMetrics
    recorder: Recorder
    clock: Clock


class Watch:
    """Remembers what it has told."""

    def __init__(self, watched: Watched, number: int = 0) -> None:
        """`number` is that of the moment before the first."""
        self._watched = watched
        self._number = number
        self._has_looked = False
        self._time = watched.clock.now()
        self._nodes = _Nodes(watched.core.cluster)
        self._waiting = _Waiting(watched)
        self._counted = (0, 0, 0, 0)
        self._decision = 0
        self._plugin_seconds: dict[str, float] = {}
        self._plugins_at = self._time

    def look(self, *, anyway: bool = False) -> Moment | None:
        """What is new; None if nothing is, and that was told not long ago, unless a moment is wanted anyway."""
        now, nodes, waiting = self._watched.clock.now(), self._nodes, self._waiting
        nodes.look()
        waiting.look()
        counted = self._count()
        changed = nodes.usage or nodes.placed or nodes.gone or waiting.rows or waiting.left
        is_news = bool(anyway or nodes.is_new or changed or counted != self._counted)
        if not is_news and self._has_looked and now - self._time < _QUIET_SECONDS:
            return None
        self._number += 1
        self._has_looked = True
        figures = self._figures(now, counted)
        self._time, self._counted = now, counted
        return Moment(
            self._number,
            round(now, 3),
            figures,
            nodes.layout if nodes.is_new else None,
            nodes.usage,
            nodes.placed,
            nodes.gone,
            waiting.rows,
            waiting.left,
            self._decision,
        )

    def _count(self) -> tuple[int, int, int, int]:
        """Pods scheduled, attempts, preemptions and victims, since the scheduler began."""
        metrics = self._watched.metrics
        results = metrics.schedule_attempts.read()
        scheduled = sum(count for (_profile, result), count in results.items() if result == "scheduled")
        (victims,) = metrics.preemption_victims.read().values()
        return int(scheduled), int(sum(results.values())), sum(victims.counts), round(victims.total)

    def _figures(self, now: float, counted: tuple[int, int, int, int]) -> Figures:
        table, counts = self._watched.core.cluster.nodes, self._waiting.counts
        allocatable, requested = table.allocatable[:2].sum(axis=1), table.requested[:2].sum(axis=1)
        shares = {
            name: round(float(requested[row] / allocatable[row]), 4) if allocatable[row] else 0.0
            for name, row in (("cpu", CPU), ("memory", MEMORY))
        }
        records = list(self._new_records())
        waits = [_waited(record) for record in records if record.outcome == SCHEDULED]
        bound, attempts, preemptions, victims = (new - old for new, old in zip(counted, self._counted, strict=True))
        return Figures(
            round(now - self._time, 3),
            bound,
            attempts,
            preemptions,
            victims,
            table.count,
            self._watched.core.cluster.pod_count,
            counts,
            percentiles([record.seconds for record in records], (50, 99)),
            percentiles(waits, (50, 90, 99)),
            self._plugins(now),
            shares,
        )

    def _new_records(self) -> Iterator[Record]:
        last, newest = self._decision, 0
        for record in self._watched.recorder:
            if record.id <= last:
                break
            newest = newest or record.id
            yield record
        self._decision = newest or last

    def _plugins(self, now: float) -> dict[str, float]:
        """Seconds since they were told last."""
        if now - self._plugins_at < _PLUGIN_SECONDS:
            return {}
        self._plugins_at = now
        spent: dict[str, float] = {}
        for (_point, plugin, _status), seen in self._watched.metrics.plugin_execution_seconds.read().items():
            spent[plugin] = spent.get(plugin, 0.0) + seen.total
        before, self._plugin_seconds = self._plugin_seconds, spent
        since = {plugin: round(total - before.get(plugin, 0.0), 6) for plugin, total in spent.items()}
        return {plugin: seconds for plugin, seconds in since.items() if seconds > 0}


def _waited(record: Record) -> float:
    return record.time - (record.queued_since if record.initial_attempt is None else record.initial_attempt)


def percentiles(values: list[float], percents: Sequence[int]) -> dict[str, float | None]:
    """By name; None where there are no values."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {f"p{percent}": round(ordered[last * percent // 100], 6) if ordered else None for percent in percents}


class _Nodes:
    """Nodes and the pods on them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._table = cluster.nodes
        self._seen = self._seen_nodes = 0
        self._table_layout = -1
        self._known: list[Node | None] = []
        self._position: dict[int, int] = {}
        """Of rows."""
        self._pods: dict[int, dict[str, PlacedPod]] = {}
        """By row and uid, those that were told."""
        self.layout = Layout(0, (), [], {}, [], [], [])
        self.is_new = False
        self.usage: Usage | None = None
        self.placed: list[PlacedPod] = []
        self.gone: list[tuple[str, str]] = []

    def look(self) -> None:
        """Find what has changed."""
        table = self._table
        rows = table.changes.since(self._seen) if self._seen else list(range(table.size))
        self.is_new = self._is_laid_out_anew()
        self._seen, self._seen_nodes = table.changes.last, table.node_changes.last
        if self.is_new:
            self._lay_out()
        self._look_at_pods(rows)
        self._measure(list(self._position) if self.is_new else [row for row in rows if row in self._position])

    def _is_laid_out_anew(self) -> bool:
        table = self._table
        if table.layout != self._table_layout:
            return True
        rows = table.node_changes.since(self._seen_nodes)
        return any(_facts(self._known[row]) != _facts(table.nodes[row]) for row in rows)

    def _lay_out(self) -> None:
        table = self._table
        rows = np.flatnonzero(table.live[: table.size])
        numbers = rows.tolist()
        taints = [
            tuple(Taint(one.key, one.value or "", one.effect) for one in taints) for taints in table.taint_sets.taints
        ]
        self._table_layout, self._known = table.layout, list(table.nodes)
        self._position = {row: position for position, row in enumerate(numbers)}
        self.layout = Layout(
            self.layout.number + 1,
            tuple(table.names[row] for row in numbers),
            table.allowed_pods[rows].tolist(),
            {name: table.allocatable[column, rows].tolist() for name, column in table.resource_index.items()},
            table.unschedulable[rows].tolist(),
            [taints[number] for number in table.taint_set[rows].tolist()],
            [dict(node.metadata.labels) for row in numbers if (node := table.nodes[row]) is not None],
        )

    def _measure(self, rows: list[int]) -> None:
        table = self._table
        columns = {name: table.requested[column, rows].tolist() for name, column in table.resource_index.items()}
        at = [self._position[row] for row in rows]
        self.usage = Usage(at, table.pod_count[rows].tolist(), columns) if at else None

    def _look_at_pods(self, rows: list[int]) -> None:
        self.placed, self.gone = [], []
        table = self._table
        for row in rows:
            pods, told = table.pods[row], self._pods.get(row)
            if told is None:
                told = self._pods[row] = {}
            for uid in sorted(told.keys() - pods.keys()):
                self.gone.append((told.pop(uid).node, uid))
            new = sorted(pods.keys() - told.keys())
            # Where no pod came, one of them may ask for something else than before.
            for uid in new or [uid for uid in pods if told[uid].requests is not pods[uid].requests.amounts]:
                placed = told[uid] = _placed(pods[uid], table.names[row])
                self.placed.append(placed)
            if not told:
                del self._pods[row]


def _facts(node: Node | None) -> object:
    """What of a node is shown."""
    if node is None:
        return None
    return node.metadata.name, node.metadata.labels, node.spec.taints, node.spec.unschedulable, node.status.allocatable


def _placed(pod: PodInfo, node: str) -> PlacedPod:
    return PlacedPod(pod.uid, pod.key, node, pod.priority, pod.requests.amounts, group_key(pod.pod))


@dataclass(slots=True)
class _Waiting:
    """Pods in the queue and on their way."""

    watched: Watched
    rows: list[WaitingPod] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    _heaps: list[dict[str, object]] = field(default_factory=list)
    """What was ready to be tried, or in backoff, at the last look."""
    _pool: dict[str, object] = field(default_factory=dict)
    """What waited for something to happen."""
    _on_their_way: dict[str, object] = field(default_factory=dict)
    """Pods in flight that were told, with what they wait for."""

    def look(self) -> None:
        """Find what has changed."""
        queue, waiting = self.watched.core.queue, self.watched.core.waiting_pods
        in_flight = queue.in_flight_pods()
        self.counts = queue.lengths() | {IN_FLIGHT: len(in_flight) - len(waiting), WAITING: len(waiting)}
        *heaps, pool = queue.entries()
        changed, gone = self._news_of_pool(cast("dict[str, object]", pool))
        before, self._heaps = self._heaps or [{} for _ in heaps], list(map(dict, heaps))
        for heap, then in zip(self._heaps, before, strict=True):
            changed += [uid for uid, entry in heap.items() if then.get(uid) is not entry]
            gone |= then.keys() - heap.keys()
        self.rows = [self._queued(*queue.standing(uid)) for uid in changed]
        going, self._on_their_way = self._on_their_way, {}
        for pod in in_flight[:_MOST_IN_FLIGHT]:
            uid = pod.metadata.uid
            waits = self._on_their_way[uid] = waiting.get(uid)
            if uid not in going or going[uid] is not waits:
                self.rows.append(self._on_its_way(pod, waits))
        gone |= going.keys() - self._on_their_way.keys()
        there = (*self._heaps, self._pool, self._on_their_way)
        self.left = sorted(uid for uid in gone if not any(uid in now for now in there))

    def _news_of_pool(self, pool: dict[str, object]) -> tuple[list[str], set[str]]:
        """Who came to the pool, and who left it. Who comes is at its end: those before are as they were."""
        known, new = self._pool, []
        for uid, entry in reversed(pool.items()):
            if known.get(uid) is entry:
                break
            known[uid] = entry
            new.append(uid)
        gone = known.keys() - pool.keys() if len(known) > len(pool) else set()
        for uid in gone:
            del known[uid]
        return new[::-1], gone

    def _queued(self, state: str, queued: QueuedPod, retry: float | None) -> WaitingPod:
        record = self.watched.recorder.last(queued.uid)
        told = "" if record is None else record.message
        nominated = queued.pod.status.nominatedNodeName or ("" if record is None else record.nominated_node)
        return WaitingPod(
            queued.uid,
            queued.pod.key,
            state,
            pod_priority(queued.pod),
            _created(queued.pod, queued.timestamp),
            queued.timestamp,
            queued.attempts,
            retry,
            tuple(sorted(queued.rejectors)),
            told if queued.gate is None else queued.gate.message,
            *self._woken(queued),
            nominated,
            group_key(queued.pod),
        )

    def _woken(self, queued: QueuedPod) -> tuple[str, str]:
        """The last event that brought the pod back, and whose hint said that it may help."""
        history, names = self.watched.recorder.moves_of(queued.uid), self.watched.recorder.move_names
        for number in [] if history is None else history[:0:-2]:
            queue, event, plugin = names[int(number)]
            if queue in ("active", "backoff") and event not in _NOT_WAKING:
                return event, plugin
        return "", ""

    def _on_its_way(self, pod: Pod, waits: PodAtPermit | None) -> WaitingPod:
        uid = pod.metadata.uid
        record = self.watched.recorder.last(uid)
        since, attempts = (self.watched.clock.now(), 1) if record is None else (record.time, record.attempts)
        return WaitingPod(
            uid,
            pod.key,
            IN_FLIGHT if waits is None else WAITING,
            pod_priority(pod),
            _created(pod, since),
            since,
            attempts,
            None,
            () if waits is None else tuple(waits.pending_plugins()),
            "",
            node=self.watched.core.cluster.node_name_of(uid) or "",
            group=group_key(pod),
        )


def _created(pod: Pod, otherwise: float) -> float:
    try:
        return parse_time(pod.metadata.creationTimestamp or "")
    except ValueError:
        return otherwise
