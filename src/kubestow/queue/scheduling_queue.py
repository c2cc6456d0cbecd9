"""The scheduling queue: where each waiting pod is, and every way it moves.

    add ──> active ──pop──> in flight ──requeue_failed──> pool ──on_event──> backoff ──flush_backoff──> active
                                │                          (rejected, gated)
                                └──done──> gone

PreEnqueue is asked whenever a pod is about to become active or to back off; a pod that is held back goes to the pool
instead, and is asked about again when an event happens that the plugin holding it back listens to.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kubestow.cluster.changes import pod_update_events
from kubestow.cluster.events import (
    CONFIGURATION_RELOAD,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
    ClusterEvent,
)
from kubestow.cluster.pods import PodInfo
from kubestow.framework.results import Rejection
from kubestow.model.clock import Clock
from kubestow.model.meta import ObjectMeta
from kubestow.model.pod import Pod
from kubestow.model.pod_groups import PodGroup, group_key
from kubestow.queue.backoff import Backoff
from kubestow.queue.heap import PodHeap
from kubestow.queue.in_flight import InFlight
from kubestow.queue.nominator import Nominator
from kubestow.queue.pool import Pool
from kubestow.queue.queued_pod import Moved, QueuedPod, priority_order
from kubestow.queue.retry import Judge, Retry
from kubestow.queue.rules import QueueRules, QueueSettings
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POPPED_FROM_BACKOFF = "PopFromBackoffQ"

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"


class SchedulingQueue:
    def __init__(
        self,
        *,
        clock: Clock,
        rules: Mapping[str, QueueRules],
        settings: QueueSettings = QueueSettings(),  # noqa: B008 - frozen
        metrics: SchedulerMetrics | None = None,
        order: Callable[[Pod, float], Any] = priority_order,
        nominator: Nominator | None = None,
        arrived: Callable[[], None] = lambda: None,
        moved: Moved | None = None,
    ) -> None:
        """`arrived` is called whenever a pod has come to any part of the queue; `moved` as described at `Moved`."""
        self.nominator = Nominator() if nominator is None else nominator
        self._arrived = arrived
        self._on_move = moved
        self._clock = clock
        self._settings = settings
        self._metrics = metrics or SchedulerMetrics()
        self._take_rules(rules)
        self._active = PodHeap(lambda queued: order(queued.pod, queued.timestamp))
        self._backoff = Backoff(settings.initial_backoff, settings.longest_backoff, settings.pop_from_backoff, order)
        self._pool = Pool(settings.longest_unschedulable, settings.longest_unschedulable_in_group)
        self._in_flight = InFlight()
        places = (self._active, self._backoff.rejected, self._backoff.errors, self._pool)
        self._entries: tuple[Mapping[str, object], ...] = tuple(place.entries for place in places)
        self._rejections: Counter[tuple[str, str]] = Counter()
        self._metrics.pending_pods.watch(lambda: {(place,): length for place, length in self.lengths().items()})
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
        """Other plugins decide from now on; pods of profiles that `changed` are asked about again, and tried again."""
        self._take_rules(rules)
        self._active.reorder(lambda queued: order(queued.pod, queued.timestamp))
        self._backoff.reconfigure(initial_backoff, longest_backoff, order)
        rejected = [queued for queued in self._pool if queued.profile in changed]
        for place in (self._active, self._backoff):
            for queued in [queued for queued in place if queued.profile in changed]:
                if self._is_held_back(queued):
                    place.remove(queued.uid)
                    self._to_pool(queued, CONFIGURATION_RELOAD.label)
        self._move(rejected, CONFIGURATION_RELOAD, None, None)
        self._arrived()

    def _take_rules(self, rules: Mapping[str, QueueRules]) -> None:
        self._rules = rules
        registrations = {profile: r.registrations for profile, r in rules.items()}
        self._judge = Judge(registrations, self._clock, self._metrics)

    # Pods come, change and go

    def add(self, pod: Pod) -> None:
        """Takes in a new pod."""
        self._add(pod, UNSCHEDULED_POD_ADD)

    def update(self, old: Pod, new: Pod) -> None:
        """Takes over a change of a pod that is not assigned to a node."""
        uid = new.metadata.uid
        if old.metadata.uid != uid:
            self.delete(old)
            self._add(new, UNSCHEDULED_POD_ADD)
            return
        events = pod_update_events(old, new)
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
            if new.spec is not old.spec or not _are_kin(new.metadata, old.metadata):
                self._pool.file_anew(queued)
            for event in events:
                retry = self._judge.after_event(queued, event, old, new)
                if retry is not Retry.NO and self._requeue(queued, retry, event.label):
                    break
        else:
            self._add(new, UNSCHEDULED_POD_UPDATE)

    def delete(self, pod: Pod) -> None:
        """Forgets a pod that is gone, or was assigned by somebody else. One that is in flight stays so until done."""
        uid = pod.metadata.uid
        self.nominator.remove(uid)
        queued = self._active.remove(uid) or self._backoff.remove(uid) or self._pool.remove(uid)
        if queued:
            self._count_rejections(queued, -1)

    # Scheduling cycles

    @property
    def has_work(self) -> bool:
        """Would `pop` find a pod?"""
        return bool(self._active) or (self._settings.pop_from_backoff and bool(self._backoff.rejected))

    def upcoming(self, most: int) -> list[PodInfo]:
        """The pods that `pop` is about to give, at most so many, as far as they are active."""
        return [queued.info for queued in self._active.first(most)]

    def pop(self) -> QueuedPod | None:
        """The next pod to schedule, which is in flight from now on, until `done` or `requeue_failed`."""
        while True:
            queued = self._active.pop()
            if queued is None and self._settings.pop_from_backoff:
                queued = self._backoff.rejected.pop()
                if queued:
                    self._came(ACTIVE, queued, POPPED_FROM_BACKOFF)
            if queued is None:
                return None
            if queued.rejectors:
                self._count_rejections(queued, -1)
            # A pod that was deleted in flight and came back under its uid: the attempt under way goes first.
            if queued.uid not in self._in_flight.entries:
                self._take_off(queued)
                return queued

    def pop_too(self, uids: Iterable[str]) -> list[QueuedPod]:
        """More pods, to be scheduled with one that was popped: those that wait, and that nothing holds back."""
        popped = []
        for uid in uids:
            if uid in self._in_flight.entries:
                continue
            if queued := self._pool.get(uid):
                self._to_active(queued, FORCE_ACTIVATE.label)
            elif queued := self._backoff.remove(uid):
                self._to_active(queued, FORCE_ACTIVATE.label, asked_already=self._settings.pop_from_backoff)
            active = self._active.remove(uid)
            if active is not None:
                self._count_rejections(active, -1)
                self._take_off(active)
                popped.append(active)
        return popped

    def _take_off(self, queued: QueuedPod) -> None:
        queued.attempts += 1
        self._in_flight.add(queued.pod)

    def done(self, uid: str) -> None:
        """A popped pod needs nothing more from the queue: it is bound, or gone."""
        self._in_flight.done(uid)

    def requeue_failed(self, queued: QueuedPod, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        """Takes back a popped pod whose attempt failed: rejected by plugins, or, when none is named, by an error.

        `queued.pod` should be the pod's latest version.
        """
        uid = queued.uid
        if not self._waits(uid):
            queued.reject(unschedulable, pending)
            if queued.rejectors:
                queued.unschedulable_count += 1
                queued.consecutive_errors = 0
            else:
                queued.consecutive_errors += 1
            queued.timestamp = self._clock.now()
            queued.backoff_expiry = None
            queued.was_flushed = False
            queued.flush_timestamp = -math.inf
            self._count_rejections(queued, 1)
            happened = self._in_flight.since_popped(uid)
            self._requeue(queued, self._judge.after_attempt(queued, happened), ATTEMPT_FAILED)
        self._in_flight.done(uid)

    # What moves waiting pods

    def on_event(self, event: ClusterEvent, old: Any, new: Any, only: Callable[[Pod], bool] | None = None) -> None:
        """Something happened: moves the pods it may help, or just those of them that `only` names."""
        has_waiting = bool(self._pool.entries)
        if not has_waiting and not self._in_flight.entries:
            return
        if event.is_wildcard:
            concerned = list(self._pool)
        else:
            plugins = self._judge.listeners.to(event).plugins
            if not plugins:
                return
            concerned = self._concerned(plugins, event, old, new) if has_waiting else []
        self._move(concerned if only is None else [q for q in concerned if only(q.pod)], event, old, new)

    def _concerned(
        self, plugins: Iterable[tuple[str, str]], event: ClusterEvent, old: Any, new: Any
    ) -> list[QueuedPod]:
        """The pods that wait for one of the plugins and that an event may help."""

        def is_no_use(plugin: tuple[str, str], pod: Pod) -> bool:
            return self._judge.is_no_use(plugin, pod, event, old, new)

        found = self._pool.concerned(plugins, *_subjects_of(old if new is None else new), is_no_use)
        return found and [
            queued for queued in found if queued.gate is None or not self._is_still_held_back(queued, queued.gate)
        ]

    def wait_only_for(self, uid: str, awaited: str | None) -> None:
        """Until a pod is tried again, only events about this pod (by uid) concern it; None: any, as usual."""
        self._pool.wait_only_for(uid, awaited)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Makes pods active at once, whatever they wait for; those in flight will be, should their attempt fail."""
        for pod in pods:
            uid = pod.metadata.uid
            if queued := self._pool.get(uid):
                self._to_active(queued, FORCE_ACTIVATE.label)
            elif queued := self._backoff.remove(uid):
                self._to_active(queued, FORCE_ACTIVATE.label, asked_already=self._settings.pop_from_backoff)
            elif uid in self._in_flight.entries:
                self._in_flight.record(FORCE_ACTIVATE, None, pod)

    def flush_backoff(self) -> None:
        """Makes those pods active whose backoff is over."""
        for queued in self._backoff.pop_completed(self._clock.now()):
            self._to_active(queued, BACKOFF_COMPLETE, asked_already=self._settings.pop_from_backoff)

    def flush_unschedulable(self) -> None:
        """Gives pods that have waited too long another try, should a hint be wrong."""
        now = self._clock.now()
        overdue = self._pool.overdue(now)
        for queued in overdue:
            queued.was_flushed = True
            queued.flush_timestamp = now
        if overdue:
            self._move(overdue, UNSCHEDULABLE_TIMEOUT, None, None)

    def next_wakeup(self) -> float | None:
        """The earliest time at which a flush will find a pod, if nothing happens before."""
        completion, deadline = self._backoff.next_completion(), self._pool.next_deadline()
        if deadline is None:
            return completion
        deadline = math.nextafter(deadline, math.inf)
        return deadline if completion is None else min(completion, deadline)

    # What is where

    def get(self, uid: str) -> QueuedPod | None:
        """A waiting pod."""
        return self._active.get(uid) or self._backoff.get(uid) or self._pool.get(uid)

    def lengths(self) -> dict[str, int]:
        """How many pods wait, by the names the metrics use."""
        return {
            ACTIVE: len(self._active),
            BACKOFF: len(self._backoff),
            UNSCHEDULABLE: len(self._pool) - self._pool.gated,
            "gated": self._pool.gated,
        }

    def rejections(self) -> Mapping[tuple[str, str], int]:
        """How many waiting pods each plugin rejected, by plugin and profile."""
        return self._rejections

    def in_flight_pods(self) -> list[Pod]:
        return self._in_flight.pods()

    def in_flight_counts(self) -> Mapping[str, int]:
        """How many events are kept for pods in flight, by the event's label."""
        return self._in_flight.counts()

    def snapshot(self) -> dict[str, list[Pod]]:
        """All waiting pods, by where they are."""
        return {
            ACTIVE: [queued.pod for queued in self._active],
            BACKOFF: [queued.pod for queued in self._backoff.rejected],
            "errorBackoff": [queued.pod for queued in self._backoff.errors],
            UNSCHEDULABLE: [queued.pod for queued in self._pool if not queued.gate],
            "gated": [queued.pod for queued in self._pool if queued.gate],
        }

    def entries(self) -> tuple[Mapping[str, object], ...]:
        """What each place holds, by uid. A pod that came to a place, or was put there anew, has another entry."""
        return self._entries

    def _waits(self, uid: str) -> bool:
        active, rejected, errors, pool = self._entries
        return uid in active or uid in rejected or uid in errors or uid in pool

    def standing(self, uid: str) -> tuple[str, QueuedPod, float | None]:
        """Where a waiting pod is, and when it will be tried at the latest; None: at once, or nobody knows."""
        if queued := self._pool.get(uid):
            return ("gated", queued, None) if queued.gate else (UNSCHEDULABLE, queued, self._pool.deadline(queued))
        if queued := self._backoff.get(uid):
            return BACKOFF, queued, self._backoff.expiry(queued)
        queued = self._active.get(uid)
        assert queued is not None, f"pod {uid} does not wait"
        return ACTIVE, queued, None

    # How they move

    def _add(self, pod: Pod, event: ClusterEvent) -> None:
        if pod.spec.schedulerName not in self._rules:
            raise ValueError(f"pod {pod.key} wants scheduler {pod.spec.schedulerName!r}, which is no profile here")
        self._to_active(QueuedPod(pod, self._clock.now()), event.label)

    def _replace(self, queued: QueuedPod, old: Pod, new: Pod) -> None:
        queued.pod = new
        self.nominator.update(old, queued.info)

    def _move(self, pods: Iterable[QueuedPod], event: ClusterEvent, old: Any, new: Any) -> None:
        for queued in pods:
            retry = self._judge.after_event(queued, event, old, new)
            if retry is not Retry.NO:
                self._pool.take_out(queued.uid)
                self._requeue(queued, retry, event.label)
                if queued.gate is not None and queued.gate.awaits != queued.uid:
                    # Whoever holds it back now knows nothing of what it waited for.
                    self._pool.wait_only_for(queued.uid, None)
        self._in_flight.record(event, old, new)

    def _requeue(self, queued: QueuedPod, retry: Retry, cause: str) -> bool:
        """Puts a pod where it belongs; False if that is the pool."""
        if retry is Retry.NO:
            self._to_pool(queued, cause)
            return False
        if retry is Retry.AFTER_BACKOFF and self._backoff.is_backing_off(queued, self._clock.now()):
            return self._to_backoff(queued, cause)
        return self._to_active(queued, cause)

    def _to_active(self, queued: QueuedPod, cause: str, asked_already: bool = False) -> bool:
        uid = queued.uid
        if not asked_already and self._is_held_back(queued):
            if uid not in self._active.entries and uid not in self._backoff:
                self._to_pool(queued, cause)
            return False
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock.now()
        self._pool.remove(uid)
        self._backoff.remove(uid)
        self._active.push(queued)
        self._came(ACTIVE, queued, cause)
        self._arrived()
        if cause in _NOMINATING:
            self.nominator.nominate(queued.pod)
        return True

    def _to_backoff(self, queued: QueuedPod, cause: str) -> bool:
        # Pods may be popped from the backoff queue, so what would hold them back must do so now.
        if self._settings.pop_from_backoff and self._is_held_back(queued):
            self._to_pool(queued, cause)
            return False
        self._pool.remove(queued.uid)
        self._backoff.add(queued)
        self._came(BACKOFF, queued, cause)
        self._arrived()
        return True

    def _to_pool(self, queued: QueuedPod, cause: str) -> None:
        if queued.gate:
            queued.was_flushed = False
        if queued.uid not in self._pool.entries:
            self._came(UNSCHEDULABLE, queued, cause)
            if cause is _FIRST:
                self._report_move(UNSCHEDULABLE, queued, cause)
        self._judge.hinted_by = ""
        self._pool.put(queued)
        self._arrived()

    def _came(self, queue: str, queued: QueuedPod, cause: str) -> None:
        self._metrics.queue_incoming_pods.inc(cause, queue)
        if cause is not _FIRST:
            self._report_move(queue, queued, cause)
        if log.tells(5):
            log.info("Pod moved to an internal scheduling queue", v=5, pod=queued.pod.key, event=cause, queue=queue)

    def _report_move(self, queue: str, queued: QueuedPod, cause: str) -> None:
        if self._on_move is not None:
            by, self._judge.hinted_by = self._judge.hinted_by, ""
            self._on_move(queued, queue, cause, by)

    def _is_held_back(self, queued: QueuedPod) -> bool:
        held_back_by = queued.gate.plugin if queued.gate else None
        gate = self._rules[queued.profile].pre_enqueue(queued.pod, held_back_by)
        if gate is None:
            queued.gate = None
            return False
        if gate.plugin not in queued.rejectors:
            self._rejections[gate.plugin, queued.profile] += 1
        queued.hold_back(gate)
        return True

    def _is_still_held_back(self, queued: QueuedPod, gate: Rejection) -> bool:
        """Whether the plugin that holds a pod back still does: whatever its hints say, it would come back here."""
        found = self._rules[queued.profile].pre_enqueue(queued.pod, gate.plugin)
        return found is not None and found.plugin == gate.plugin

    def _count_rejections(self, queued: QueuedPod, change: int) -> None:
        for plugin in queued.rejectors:
            self._rejections[plugin, queued.profile] += change


_FIRST = UNSCHEDULED_POD_ADD.label
_NOMINATING = (_FIRST, UNSCHEDULED_POD_UPDATE.label)


def _are_kin(one: ObjectMeta, other: ObjectMeta) -> bool:
    return one.labels == other.labels and one.ownerReferences == other.ownerReferences


def _subjects_of(obj: Any) -> tuple[str, str]:
    """The uid of the pod, and the key of the group, that an event is about."""
    if isinstance(obj, Pod):
        return obj.metadata.uid, group_key(obj) if obj.spec.schedulingGroup else ""
    return "", obj.key if isinstance(obj, PodGroup) else ""
