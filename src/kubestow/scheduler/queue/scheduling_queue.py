"""The scheduling queue: the place of each waiting pod, and the moves between places.

    add ──> active ──pop──> in flight ──requeue_failed──> pool ──on_event──> backoff ──flush_backoff──> active
                                │                          (rejected, gated)
                                └──done──> removed

PreEnqueue plugins run when a pod becomes active directly and when it starts to back off. A pod that they reject goes to
the pool as gated instead; they run again when an event occurs that the gating plugin is registered for.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import AnyGroup, group_key
from kubestow.clock import Clock
from kubestow.scheduler.cluster.changes import pod_update_events
from kubestow.scheduler.cluster.events import (
    CONFIGURATION_RELOAD,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    ClusterEvent,
)
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.queue.backoff import Backoff
from kubestow.scheduler.queue.heap import PodHeap
from kubestow.scheduler.queue.in_flight import InFlight
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.scheduler.queue.pool import Pool
from kubestow.scheduler.queue.queued_pod import OnMove, QueuedPod, priority_order
from kubestow.scheduler.queue.retry import QueueingHints, Retry
from kubestow.scheduler.queue.rules import QueueRules, QueueSettings
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POPPED_FROM_BACKOFF = "PopFromBackoffQ"

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


class SchedulingQueue:
    """The pods that wait to be scheduled, and the pods in flight."""

    def __init__(
        self,
        *,
        clock: Clock,
        rules: Mapping[str, QueueRules],
        settings: QueueSettings = QueueSettings(),  # noqa: B008 - frozen
        metrics: SchedulerMetrics | None = None,
        order: Callable[[Pod, float], Any] = priority_order,
        nominator: Nominator | None = None,
        on_arrival: Callable[[], None] = lambda: None,
        on_move: OnMove | None = None,
    ) -> None:
        """`on_arrival` is called after each arrival of a pod in any place; `on_move` is described at `OnMove`."""
        self.nominator = Nominator() if nominator is None else nominator
        self._on_arrival = on_arrival
        self._on_move = on_move
        self._clock = clock
        self._settings = settings
        self._metrics = metrics or SchedulerMetrics()
        self._set_rules(rules)
        self._active = PodHeap(lambda queued: order(queued.pod, queued.timestamp))
        self._backoff = Backoff(settings.initial_backoff, settings.longest_backoff, settings.pop_from_backoff, order)
        self._pool = Pool(settings.longest_unschedulable)
        self._in_flight = InFlight()
        places = (self._active, self._backoff.rejected, self._backoff.errors, self._pool)
        self._entries: tuple[Mapping[str, object], ...] = tuple(place.entries for place in places)
        self._rejections: Counter[tuple[str, str]] = Counter()
        self._expected_arrivals: Counter[tuple[str, str]] = Counter()
        """Arrivals, by cause and place, at the place that the hints ask for."""
        self._metrics.pending_pods.watch(lambda: {(place,): length for place, length in self.lengths().items()})
        self._metrics.queued_entities.watch(self.entities)
        self._metrics.queue_incoming_entities.watch(self.entity_arrivals)
        self._metrics.unschedulable_pods.watch(
            lambda: {(plugin, profile): n for (plugin, profile), n in self.rejections().items()}
        )
        self._metrics.inflight_events.watch(lambda: {(event,): n for event, n in self.in_flight_counts().items()})

    def reconfigure(
        self,
        rules: Mapping[str, QueueRules],
        order: Callable[[Pod, float], Any],
        initial_backoff: float,
        longest_backoff: float,
        changed: Collection[str],
    ) -> None:
        """Use other plugins and settings; run PreEnqueue again for, and retry, the pods of the `changed` profiles."""
        self._set_rules(rules)
        self._active.reorder(lambda queued: order(queued.pod, queued.timestamp))
        self._backoff.reconfigure(initial_backoff, longest_backoff, order)
        rejected = [queued for queued in self._pool if queued.profile in changed]
        for place in (self._active, self._backoff):
            for queued in [queued for queued in place if queued.profile in changed]:
                if self._run_pre_enqueue(queued):
                    place.remove(queued.uid)
                    self._to_pool(queued, CONFIGURATION_RELOAD.label)
        self._move(rejected, CONFIGURATION_RELOAD, None, None)
        self._on_arrival()

    def reorder(self) -> None:
        """Sort the active pods and those that back off again, because sort keys of their plugin have changed."""
        self._active.invalidate_keys()
        self._backoff.rejected.invalidate_keys()

    def _set_rules(self, rules: Mapping[str, QueueRules]) -> None:
        self._rules = rules
        registrations = {profile: r.registrations for profile, r in rules.items()}
        self._hints = QueueingHints(registrations, self._clock, self._metrics)

    # Changes of pods

    def add(self, pod: Pod) -> None:
        """Add a new pod."""
        self._add(pod)

    def update(self, old: Pod, new: Pod) -> None:
        """Apply an update of a pod that is not assigned to a node."""
        uid = new.metadata.uid
        if old.metadata.uid != uid:
            self.delete(old)
            self._add(new)
            return
        events = pod_update_events(old, new, is_target=True)
        if uid in self._in_flight.entries:
            for event in events:
                self._in_flight.record(event, old, new)
        elif queued := self._active.get(uid):
            self._replace(queued, old, new)
            self._active.push(queued)
        elif queued := self._backoff.get(uid):
            self._replace(queued, old, new)
            self._backoff.update(queued)
        elif queued := self._pool.get(uid):
            self._replace(queued, old, new)
            if new.spec is not old.spec or not _have_same_controller(new.metadata, old.metadata):
                self._pool.reindex(queued)
            for event in events:
                retry = self._hints.retry_after_event(queued, event, old, new)
                if retry is not Retry.NO and self._requeue(queued, retry, event.label):
                    break
        else:
            self._add(new)

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or assigned by another scheduler. A pod in flight stays so until `done`."""
        uid = pod.metadata.uid
        self.nominator.remove(uid)
        queued = self._active.remove(uid) or self._backoff.remove(uid) or self._pool.remove(uid)
        if queued:
            self._count_rejections(queued, -1)

    # Scheduling cycles

    @property
    def awaits_retry(self) -> bool:
        """Whether a pod will be retried after its backoff, with a result that may differ from the last one."""
        return bool(self._backoff)

    @property
    def has_work(self) -> bool:
        """Whether `pop` would return a pod."""
        return bool(self._active) or (self._settings.pop_from_backoff and bool(self._backoff.rejected))

    def upcoming(self, limit: int) -> list[PodInfo]:
        """Return at most `limit` active pods in the order in which `pop` would return them."""
        return [queued.info for queued in self._active.first(limit)]

    def pop(self) -> QueuedPod | None:
        """Return the next pod to schedule; it is in flight until `done` or `requeue_failed`. None: no pod is ready."""
        while True:
            queued = self._active.pop()
            if queued is None and self._settings.pop_from_backoff:
                queued = self._backoff.rejected.pop()
                if queued:
                    self._report_arrival(ACTIVE, queued, POPPED_FROM_BACKOFF)
            if queued is None or self._start_attempt(queued):
                return queued

    def _start_attempt(self, queued: QueuedPod) -> bool:
        if queued.rejectors:
            self._count_rejections(queued, -1)
        # A pod that was deleted in flight and added again with the same UID: the first attempt continues alone.
        if queued.uid in self._in_flight.entries:
            return False
        queued.attempts += 1
        self._in_flight.add(queued.pod)
        return True

    def done(self, uid: str) -> None:
        """Remove a popped pod that was bound or deleted."""
        self._in_flight.done(uid)

    def requeue_failed(self, queued: QueuedPod, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """Requeue a popped pod whose attempt failed.

        `unschedulable` and `pending` are the plugins that rejected the pod; if both are empty, it failed with an error.
        `queued.pod` should be the latest version of the pod.
        """
        uid = queued.uid
        if self.get(uid) is None:
            self._record_failure(queued, unschedulable, pending)
            retry = self._hints.retry_after_attempt(queued, self._in_flight.since_popped(uid))
            self._requeue(queued, retry, ATTEMPT_FAILED)
        self._in_flight.done(uid)

    def _record_failure(self, queued: QueuedPod, unschedulable: Iterable[str], pending: Iterable[str]) -> None:
        queued.reject(unschedulable, pending)
        self._count_failure(queued, rejected=bool(queued.rejectors))
        self._count_rejections(queued, 1)

    def _count_failure(self, queued: QueuedPod, *, rejected: bool) -> None:
        """Prepare the backoff after an attempt that ended in a rejection or an error."""
        if rejected:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp = self._clock.now()
        queued.backoff_expiry = None
        queued.was_flushed = False
        queued.flush_timestamp = -math.inf

    # Causes of moves

    def on_event(self, event: ClusterEvent, old: Any, new: Any, only: Callable[[Pod], bool] | None = None) -> None:
        """Move the pods that an event may help, or only those of them for which `only` returns True."""
        has_waiting = bool(self._pool.entries)
        if not has_waiting and not self._in_flight.entries:
            return
        if event.is_wildcard:
            affected = list(self._pool)
        else:
            plugins = self._hints.listeners.to(event).plugins
            if not plugins:
                return
            affected = self._affected_by(plugins, event, old, new) if has_waiting else []
        self._move(affected if only is None else [queued for queued in affected if only(queued.pod)], event, old, new)

    def _affected_by(
        self, plugins: Iterable[tuple[str, str]], event: ClusterEvent, old: Any, new: Any
    ) -> list[QueuedPod]:
        """Return the pods of the pool that wait for one of the plugins and that an event may help."""

        def is_irrelevant(plugin: tuple[str, str], pod: Pod) -> bool:
            return self._hints.is_irrelevant(plugin, pod, event, old, new)

        found = self._pool.affected_by(plugins, *self._subjects_of(old if new is None else new), is_irrelevant)
        return found and [queued for queued in found if queued.gate is None or not self._is_still_gated(queued)]

    def _subjects_of(self, obj: Any) -> tuple[str, str]:
        """Return the UID of the pod, and the key of the group, that an event is about; empty if there is none."""
        if isinstance(obj, Pod):
            return obj.metadata.uid, group_key(obj) if obj.spec.schedulingGroup else ""
        return "", obj.key if isinstance(obj, AnyGroup) else ""

    def wait_only_for(self, uid: str, awaited: str | None) -> None:
        """Let a pod await only events about the pod with the UID `awaited` until it is retried; None: any event."""
        self._pool.wait_only_for(uid, awaited)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make pods active at once; pods in flight become active if their attempt fails."""
        for pod in pods:
            if not self._activate(pod.metadata.uid) and pod.metadata.uid in self._in_flight.entries:
                self._in_flight.record(FORCE_ACTIVATE, None, pod)

    def _activate(self, uid: str) -> bool:
        """Activate a pod of the pool or the backoff queues, unless PreEnqueue rejects it; False: it is in neither."""
        if queued := self._pool.get(uid):
            self._to_active(queued, FORCE_ACTIVATE.label)
        elif queued := self._backoff.remove(uid):
            self._to_active(queued, FORCE_ACTIVATE.label, skip_pre_enqueue=self._settings.pop_from_backoff)
        return queued is not None

    def flush_backoff(self) -> None:
        """Make the pods active whose backoff is over."""
        for queued in self._backoff.pop_completed(self._clock.now()):
            self._to_active(queued, BACKOFF_COMPLETE, skip_pre_enqueue=self._settings.pop_from_backoff)

    def flush_unschedulable(self) -> None:
        """Retry the pods that have waited too long, in case a hint was wrong."""
        now = self._clock.now()
        overdue = self._pool.overdue(now)
        for queued in overdue:
            queued.was_flushed = True
            queued.flush_timestamp = now
        if overdue:
            self._move(overdue, UNSCHEDULABLE_TIMEOUT, None, None)

    def next_wakeup(self) -> float | None:
        """Return the earliest time at which a flush moves a pod if no event occurs before; None: never."""
        completion, deadline = self._backoff.next_completion(), self._pool.next_deadline()
        if deadline is None:
            return completion
        deadline = math.nextafter(deadline, math.inf)
        return deadline if completion is None else min(completion, deadline)

    # Queries

    def get(self, uid: str) -> QueuedPod | None:
        """Return a waiting pod; None if no pod with this UID waits."""
        return self._active.get(uid) or self._backoff.get(uid) or self._pool.get(uid)

    def lengths(self) -> dict[str, int]:
        """Return the number of waiting pods by the names of places that the metrics use."""
        return {
            ACTIVE: len(self._active),
            BACKOFF: len(self._backoff),
            UNSCHEDULABLE: len(self._pool) - self._pool.gated,
            GATED: self._pool.gated,
        }

    def entities(self) -> dict[tuple[str, ...], float]:
        """Return the number of pods and groups by queue and type."""
        return {(place, "pod"): length for place, length in self.lengths().items()}

    def entity_arrivals(self) -> dict[tuple[str, ...], float]:
        """Return the number of arrivals of pods and groups by cause, queue and type.

        As in kube-scheduler, an arrival at the place that the hints ask for does not count.
        """
        unexpected = Counter(self._metrics.queue_incoming_pods.read()) - Counter(self._expected_arrivals)
        return {(*key, "pod"): count for key, count in unexpected.items()}

    def rejections(self) -> Mapping[tuple[str, str], int]:
        """Return the number of waiting pods that each plugin rejected, by (plugin, profile)."""
        return self._rejections

    def in_flight_pods(self) -> list[Pod]:
        return self._in_flight.pods()

    def in_flight_counts(self) -> Mapping[str, int]:
        """Return the number of events recorded for pods in flight, by label."""
        return self._in_flight.counts()

    def snapshot(self) -> dict[str, list[Pod]]:
        """Return all waiting pods by place."""
        return {
            ACTIVE: _pods_of(self._active),
            BACKOFF: _pods_of(self._backoff.rejected),
            "errorBackoff": _pods_of(self._backoff.errors),
            UNSCHEDULABLE: _pods_of(queued for queued in self._pool if not queued.gate),
            GATED: _pods_of(queued for queued in self._pool if queued.gate),
        }

    def entries(self) -> tuple[Mapping[str, object], ...]:
        """Return one mapping per place, by UID. A pod that arrives at a place, or changes there, gets a new entry."""
        return self._entries

    def locate(self, uid: str) -> tuple[str, QueuedPod, float | None]:
        """Return the place of a waiting pod, the pod, and the latest time of its next attempt, if that is known."""
        if queued := self._pool.get(uid):
            return (GATED, queued, None) if queued.gate else (UNSCHEDULABLE, queued, self._pool.deadline(queued))
        if queued := self._backoff.get(uid):
            return BACKOFF, queued, self._backoff.expiry(queued)
        queued = self._active.get(uid)
        assert queued is not None, f"pod {uid} does not wait"
        return ACTIVE, queued, None

    # Moves

    def _add(self, pod: Pod) -> None:
        # Of a gated pod, too: its nominated node is reserved for it.
        self.nominator.nominate(pod)
        self._to_active(self._new(pod), _ADDED)

    def _new(self, pod: Pod) -> QueuedPod:
        if pod.spec.schedulerName not in self._rules:
            raise ValueError(f"pod {pod.key} requires scheduler {pod.spec.schedulerName!r}, which has no profile")
        return QueuedPod(pod, self._clock.now())

    def _replace(self, queued: QueuedPod, old: Pod, new: Pod) -> None:
        queued.pod = new
        self.nominator.update(old, queued.info)

    def _move(self, pods: Iterable[QueuedPod], event: ClusterEvent, old: Any, new: Any) -> None:
        for queued in pods:
            retry = self._retry_after_event(queued, event, old, new)
            if retry is not Retry.NO:
                self._pool.detach(queued.uid)
                self._requeue(queued, retry, event.label)
                if queued.gate is not None and queued.gate.awaits != queued.uid:
                    # Another plugin gates it now, for another reason.
                    self._pool.wait_only_for(queued.uid, None)
        self._in_flight.record(event, old, new)

    def _retry_after_event(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Retry:
        return self._hints.retry_after_event(queued, event, old, new)

    def _requeue(self, queued: QueuedPod, retry: Retry, cause: str) -> bool:
        """Move a pod to the place that follows from `retry` and PreEnqueue; return False if that is the pool."""
        if retry is Retry.NO:
            self._expected_arrivals[cause, UNSCHEDULABLE] += 1
            self._to_pool(queued, cause)
            return False
        if retry is Retry.AFTER_BACKOFF and self._backoff.is_backing_off(queued, self._clock.now()):
            is_moved = self._to_backoff(queued, cause)
            self._expected_arrivals[cause, BACKOFF] += is_moved
        else:
            is_moved = self._to_active(queued, cause)
            self._expected_arrivals[cause, ACTIVE] += is_moved and retry is Retry.NOW
        return is_moved

    def _to_active(self, queued: QueuedPod, cause: str, skip_pre_enqueue: bool = False) -> bool:
        uid = queued.uid
        if not skip_pre_enqueue and self._run_pre_enqueue(queued):
            if uid not in self._active.entries and uid not in self._backoff:
                self._to_pool(queued, cause)
            return False
        self._pool.remove(uid)
        self._backoff.remove(uid)
        self._active.push(queued)
        self._on_active(queued)
        self._report_arrival(ACTIVE, queued, cause)
        self._on_arrival()
        return True

    def _on_active(self, queued: QueuedPod) -> None:
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock.now()

    def _to_backoff(self, queued: QueuedPod, cause: str) -> bool:
        # A pod may be popped from the backoff queue, where PreEnqueue does not run again.
        if self._settings.pop_from_backoff and self._run_pre_enqueue(queued):
            self._to_pool(queued, cause)
            return False
        self._pool.remove(queued.uid)
        self._backoff.add(queued)
        self._report_arrival(BACKOFF, queued, cause)
        self._on_arrival()
        return True

    def _to_pool(self, queued: QueuedPod, cause: str) -> None:
        if queued.gate:
            queued.was_flushed = False
        if queued.uid not in self._pool.entries:
            self._report_arrival(UNSCHEDULABLE, queued, cause)
        self._hints.hinting_plugin = ""
        self._pool.put(queued)
        self._on_arrival()

    def _report_arrival(self, queue: str, queued: QueuedPod, cause: str) -> None:
        self._metrics.queue_incoming_pods.inc(cause, queue)
        if self._on_move is not None and not (cause is _ADDED and queue is ACTIVE):
            plugin, self._hints.hinting_plugin = self._hints.hinting_plugin, ""
            self._on_move(queued, queue, cause, plugin)
        if log.is_enabled(5):
            log.info("Pod moved to an internal scheduling queue", v=5, pod=queued.pod.key, event=cause, queue=queue)

    def _run_pre_enqueue(self, queued: QueuedPod) -> bool:
        """Run PreEnqueue and set or remove the gate of a pod; return True if the pod is gated."""
        gating_plugin = queued.gate.plugin if queued.gate else None
        gate = self._rules[queued.profile].pre_enqueue(queued.pod, gating_plugin)
        if gate is None:
            queued.gate = None
            return False
        if gate.plugin not in queued.rejectors:
            self._rejections[gate.plugin, queued.profile] += 1
        queued.set_gate(gate)
        return True

    def _is_still_gated(self, queued: QueuedPod) -> bool:
        """Return True if the gating plugin still rejects a gated pod, whatever its hints return."""
        assert queued.gate is not None
        plugin = queued.gate.plugin
        gate = self._rules[queued.profile].pre_enqueue(queued.pod, plugin)
        return gate is not None and gate.plugin == plugin

    def _count_rejections(self, queued: QueuedPod, change: int) -> None:
        for plugin in queued.rejectors:
            self._rejections[plugin, queued.profile] += change


_ADDED = UNSCHEDULED_POD_ADD.label


def _pods_of(place: Iterable[QueuedPod]) -> list[Pod]:
    return [one.pod for queued in place for one in queued.pods]


def _have_same_controller(one: ObjectMeta, other: ObjectMeta) -> bool:
    return one.labels == other.labels and one.ownerReferences == other.ownerReferences
