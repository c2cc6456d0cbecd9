"""Makes moments: finds the changes of a scheduler since the previous moment.

The scheduler does no work for this: changes of the cluster are in its history, a pod gets a new entry each time it is
added to the queue, and decisions have an ID. The cost of a moment grows with the number of changes, and slightly with
the number of waiting pods.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_priority
from kubestow.api.timestamps import parse_time
from kubestow.clock import Clock
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.recorder import FIRST_EVENT, Recorder
from kubestow.insight.decisions.schema import SCHEDULED
from kubestow.insight.explain.owners import Owner
from kubestow.insight.page.moments import IN_FLIGHT, WAITING, Figures, Moment, WaitingPod
from kubestow.scheduler.assembly import Core
from kubestow.scheduler.binding.waiting import WaitingPod as PodAtPermit
from kubestow.scheduler.cluster.history import NODE, ForgottenError
from kubestow.scheduler.cluster.nodes import CPU, MEMORY
from kubestow.scheduler.cluster.state import KnownNode
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.scheduler.queue.scheduling_queue import ATTEMPT_FAILED, BACKOFF_COMPLETE, POPPED_FROM_BACKOFF
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_MOST_IN_FLIGHT = 200
"""Maximum number of pods in flight that have a row; if there are more, each is only in flight for milliseconds."""
_NOT_WAKING = (FIRST_EVENT, ATTEMPT_FAILED, BACKOFF_COMPLETE, POPPED_FROM_BACKOFF)
_QUIET_SECONDS = 10.0
"""Maximum time between two moments without changes."""


@dataclass(frozen=True, slots=True)
class WatchedScheduler:
    """The parts of a scheduler that moments are made from."""

    core: Core
    metrics: SchedulerMetrics
    recorder: Recorder
    clock: Clock


class Watch:
    """Makes the moments of a scheduler."""

    def __init__(self, watched: WatchedScheduler, number: int = 0) -> None:
        """The first moment has the number `number + 1`."""
        self._watched = watched
        self._number = number
        self._has_moment = False
        self._time = watched.clock.now()
        self._revision = self._resources = self._layout = 0
        self._waiting = _Waiting(watched)
        self._counted = (0, 0, 0, 0)
        self._decision = 0
        self._plugin_seconds: dict[str, float] = {}

    def next_moment(self, *, anyway: bool = False) -> Moment | None:
        """Return the next moment; None if nothing has changed and the last one is recent, unless `anyway` is set."""
        now, waiting, revision = self._watched.clock.now(), self._waiting, self._watched.recorder.history.revision
        waiting.update()
        counted = self._count()
        changed = revision != self._revision or waiting.rows or waiting.left
        is_new = anyway or changed or counted != self._counted
        if not is_new and self._has_moment and now - self._time < _QUIET_SECONDS:
            return None
        self._number += 1
        self._layout += self._has_new_layout(revision)
        self._revision = revision
        self._has_moment = True
        figures = self._figures(now, counted)
        self._time, self._counted = now, counted
        return Moment(
            self._number,
            round(now, 3),
            figures,
            revision,
            self._layout,
            self._watched.core.cluster.nodes.changes.last,
            waiting.rows,
            waiting.left,
            self._decision,
        )

    def _has_new_layout(self, revision: int) -> bool:
        """Return whether nodes or resources were added or removed, or data of a node that the page shows changed."""
        resources, self._resources = self._resources, len(self._watched.core.cluster.nodes.resource_index)
        try:
            changes = self._watched.recorder.history.between(self._revision, revision)
        except ForgottenError:
            return True
        return resources != self._resources or any(
            part is NODE and _node_data(before) != _node_data(after) for part, _, before, after in changes
        )

    def _count(self) -> tuple[int, int, int, int]:
        """Return the numbers of scheduled pods, attempts, preemptions and victims since the scheduler started."""
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
            self._plugins(),
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

    def _plugins(self) -> dict[str, float]:
        """Return the seconds spent in each plugin since the previous call."""
        before, self._plugin_seconds = self._plugin_seconds, self._watched.metrics.plugin_seconds()
        since = {plugin: round(total - before.get(plugin, 0.0), 6) for plugin, total in self._plugin_seconds.items()}
        return {plugin: seconds for plugin, seconds in since.items() if seconds > 0}


def _waited(record: Record) -> float:
    return record.time - (record.queued_since if record.initial_attempt is None else record.initial_attempt)


def percentiles(values: list[float], percents: Sequence[int]) -> dict[str, float | None]:
    """Return percentiles by name; each is None if there are no values."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {f"p{percent}": round(ordered[last * percent // 100], 6) if ordered else None for percent in percents}


def _node_data(known: KnownNode | None) -> object:
    """Return the data of a node that the page shows, and its row."""
    if known is None:
        return None
    node = known.node
    return known.row, node.metadata.labels, node.spec.taints, node.spec.unschedulable, node.status.allocatable


@dataclass(slots=True)
class _Waiting:
    """Pods in the queue and in flight."""

    watched: WatchedScheduler
    rows: list[WaitingPod] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    _heaps: list[dict[str, object]] = field(default_factory=list)
    """The active entries, and those in backoff, at the previous update."""
    _pool: dict[str, object] = field(default_factory=dict)
    """The unschedulable and gated entries at the previous update."""
    _in_flight: dict[str, object] = field(default_factory=dict)
    """Pods in flight that have a row, with the permissions that they wait for."""

    def update(self) -> None:
        """Set `rows` and `left` to the changes since the previous update, and `counts` to the current numbers."""
        queue, waiting = self.watched.core.queue, self.watched.core.waiting_pods
        in_flight = queue.in_flight_pods()
        self.counts = queue.lengths() | {IN_FLIGHT: len(in_flight) - len(waiting), WAITING: len(waiting)}
        *heaps, pool = queue.entries()
        changed, removed = self._pool_changes(cast("dict[str, object]", pool))
        before, self._heaps = self._heaps or [{} for _ in heaps], list(map(dict, heaps))
        for heap, old in zip(self._heaps, before, strict=True):
            changed += [uid for uid, entry in heap.items() if old.get(uid) is not entry]
            removed |= old.keys() - heap.keys()
        self.rows = [self._queued(*queue.locate(uid)) for uid in changed]
        previous, self._in_flight = self._in_flight, {}
        for pod in in_flight[:_MOST_IN_FLIGHT]:
            uid = pod.metadata.uid
            waits = self._in_flight[uid] = waiting.get(uid)
            if uid not in previous or previous[uid] is not waits:
                self.rows.append(self._in_flight_row(pod, waits))
        removed |= previous.keys() - self._in_flight.keys()
        present = (*self._heaps, self._pool, self._in_flight)
        self.left = sorted(uid for uid in removed if not any(uid in entries for entries in present))

    def _pool_changes(self, pool: dict[str, object]) -> tuple[list[str], set[str]]:
        """Return the UIDs that were added to the pool, and those that were removed. New entries are at its end."""
        known, new = self._pool, []
        for uid, entry in reversed(pool.items()):
            if known.get(uid) is entry:
                break
            known[uid] = entry
            new.append(uid)
        removed = known.keys() - pool.keys() if len(known) > len(pool) else set()
        for uid in removed:
            del known[uid]
        return new[::-1], removed

    def _queued(self, state: str, queued: QueuedPod, retry: float | None) -> WaitingPod:
        record = self.watched.recorder.last(queued.uid)
        message = "" if record is None else record.message
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
            message if queued.gate is None else queued.gate.message,
            *self._woken(queued),
            nominated,
            group_key(queued.pod),
            self._owner(queued.pod),
        )

    def _woken(self, queued: QueuedPod) -> tuple[str, str]:
        """Return the last event that moved the pod out of the pool, and the plugin whose hint requested it."""
        history, names = self.watched.recorder.moves_of(queued.uid), self.watched.recorder.move_names
        for number in [] if history is None else history[:0:-2]:
            queue, event, plugin = names[int(number)]
            if queue in ("active", "backoff") and event not in _NOT_WAKING:
                return event, plugin
        return "", ""

    def _in_flight_row(self, pod: Pod, waits: PodAtPermit | None) -> WaitingPod:
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
            owner=self._owner(pod),
        )

    def _owner(self, pod: Pod) -> str:
        return Owner.of(pod, self.watched.core.cluster.listers).text


def _created(pod: Pod, default: float) -> float:
    try:
        return parse_time(pod.metadata.creationTimestamp or "")
    except ValueError:
        return default
