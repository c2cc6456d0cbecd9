"""The scheduling queue if there are pod groups: a group waits, is popped and returns as one, with all its pods.

    group does not exist -> incomplete ──add_group──> part of the group: active, backing off or gated
                                                           ^                        │ pop
                                                           └── requeue_group <── in flight

Groups that name a composite pod group as their parent form a tree, which is queued as one group, that of its root. Its
pods are incomplete as long as a group between theirs and the root does not exist.

A pod that arrives or fails while its group is in flight is pending until the group returns. A rejected group always
backs off: it is retried without an event, since no plugin can list all events that may help a group. After a success,
the remaining pods are tried again at once, and so is a pod whose binding fails later, unless it failed before.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.scheduler.cluster.changes import pod_update_events
from kubestow.scheduler.cluster.events import (
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
    ClusterEvent,
    Resource,
)
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.queue.queued_group import PodsOfGroups, QueuedGroup
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.scheduler.queue.retry import Retry
from kubestow.scheduler.queue.scheduling_queue import (
    ACTIVE,
    ATTEMPT_FAILED,
    BACKOFF,
    GATED,
    UNSCHEDULABLE,
    SchedulingQueue,
)

INCOMPLETE = "incomplete"
PENDING = "pending"


class GroupQueue(SchedulingQueue):
    """A scheduling queue of single pods and of groups. The places have a `QueuedGroup` for each waiting group."""

    def __init__(self, **options: Any) -> None:
        """`options` are those of `SchedulingQueue`."""
        self._groups = PodsOfGroups()
        self._events = 0
        self._group_arrivals: Counter[tuple[str, str]] = Counter()
        self._member_arrivals: Counter[tuple[str, str]] = Counter()
        """Arrivals of groups, and of pods in or with their group, by cause and place."""
        super().__init__(**options)

    # Changes of groups and pods

    def add_group(self, key: str, parent: str = "") -> None:
        """Queue the pods of a group that exists from now on, and of the groups below it, if its tree has a root."""
        groups = self._groups
        known = groups.parent(key)
        if known == parent:
            return
        if known is not None:
            self.remove_group(key)
        groups.add_group(key, parent)
        for one in groups.tree(key) if groups.root(key) else ():
            for queued in groups.incomplete.pop(one, {}).values():
                self._join(queued)

    def remove_group(self, key: str) -> None:
        """Keep the pods of a deleted group, and of the groups below it, until a group with its name is added."""
        groups = self._groups
        if groups.parent(key) is None:
            return
        root = groups.root(key)
        tree = set(groups.tree(key)) if root else set()
        groups.remove_group(key)
        waiting, without_group = groups.waiting.get(root), list[QueuedPod]()
        if waiting is not None:
            without_group = [one for one in waiting.members.values() if group_key(one.pod) in tree]
            self._remove_members(waiting, without_group, UNSCHEDULED_POD_UPDATE.label)
            if waiting.members and not waiting.gate and self._run_pre_enqueue(waiting):
                # The rest of the tree may be too small.
                self._take(waiting)
                self._to_pool(waiting, UNSCHEDULED_POD_UPDATE.label)
        elif groups.in_flight is not None and groups.in_flight.key == root:
            without_group, groups.pending = list(groups.pending.values()), {}
        for queued in without_group:
            groups.must_wait(queued)

    def add(self, pod: Pod) -> None:
        if not _group_of(pod):
            super().add(pod)
            return
        queued = self._new(pod)
        self.nominator.nominate(pod)
        self._join(queued)

    def update(self, old: Pod, new: Pod) -> None:
        uid = new.metadata.uid
        if not _group_of(old):
            super().update(old, new)
        elif old.metadata.uid != uid:
            self.delete(old)
            self.add(new)
        elif uid in self._in_flight.entries:
            for event in pod_update_events(old, new, is_target=True):
                self._in_flight.record(event, old, new)
        elif queued := self._groups.get(uid):
            self._replace(queued, old, new)
            group = self._groups.group_with(uid)
            if group is not None and group.uid in self._pool:
                for event in pod_update_events(old, new, is_target=True):
                    retry = self._retry_after_event(group, event, old, new)
                    if retry is not Retry.NO and self._requeue(group, retry, event.label):
                        break
        else:
            self.add(new)

    def delete(self, pod: Pod) -> None:
        if not _group_of(pod):
            super().delete(pod)
            return
        uid = pod.metadata.uid
        self.nominator.remove(uid)
        group = self._groups.group_with(uid)
        if group is None:
            queued = self._groups.remove_aside(pod)
        else:
            queued = group.members[uid]
            self._remove_members(group, [queued], UNSCHEDULED_POD_DELETE.label)
        if queued:
            self._count_rejections(queued, -1)

    def _remove_members(self, group: QueuedGroup, pods: Collection[QueuedPod], cause: str) -> None:
        """Remove pods from a waiting group, wherever that is; a group without pods leaves the queue."""
        put_back = self._take(group)
        for queued in pods:
            group.remove(queued.uid)
            del self._groups.entries[queued.uid]
        if not group.members:
            del self._groups.waiting[group.key]
        elif group.gated in pods:
            group.set_gate(None)
            self._requeue(group, Retry.AFTER_BACKOFF, cause)
        else:
            put_back(group)

    def _join(self, queued: QueuedPod) -> None:
        """Add a pod to its group, wherever that is."""
        groups, cause = self._groups, UNSCHEDULED_POD_ADD.label
        if groups.must_wait(queued):
            self._on_arrival()
            return
        key = groups.root(group_key(queued.pod))
        group = groups.waiting.get(key)
        if group is None:
            # As in kube-scheduler, a failed binding is retried at once; not again and again without a pause, though.
            group = groups.waiting[key] = QueuedGroup(
                queued.pod,
                queued.timestamp,
                key=key,
                unschedulable_count=queued.unschedulable_count if queued.rejectors else 0,
                consecutive_errors=max(0, queued.consecutive_errors - 1),
                members={queued.uid: queued},
            )
            self._requeue(group, Retry.AFTER_BACKOFF, cause)
            return
        is_gated = group.uid in self._pool
        put_back = self._take(group)
        group.members[queued.uid] = queued
        if is_gated:
            queued.gate = group.gate
        if is_gated or not self._run_pre_enqueue(queued):
            put_back(group)
            self._report(self._place_of(group), [queued], cause)
        else:
            group.set_gate(queued)
            self._to_pool(group, cause)
        self._on_arrival()

    def _take(self, group: QueuedGroup) -> Callable[[QueuedGroup], None]:
        """Remove a waiting group from its place; return the function that puts it back."""
        if self._active.remove(group.uid):
            return self._active.push
        if self._backoff.remove(group.uid):
            # Its size, and so its backoff, may change.
            return self._put_in_backoff
        self._pool.detach(group.uid)
        return self._pool.put

    def _put_in_backoff(self, group: QueuedGroup) -> None:
        group.backoff_expiry = None
        self._backoff.add(group)

    # Scheduling cycles

    @property
    def awaits_retry(self) -> bool:
        return any(not isinstance(queued, QueuedGroup) or queued.seen_events < self._events for queued in self._backoff)

    def upcoming(self, limit: int) -> list[PodInfo]:
        return [one.info for queued in self._active.first(limit) for one in queued.pods]

    def _start_attempt(self, queued: QueuedPod) -> bool:
        if not isinstance(queued, QueuedGroup):
            return super()._start_attempt(queued)
        del self._groups.waiting[queued.key]
        started = {uid: one for uid, one in queued.members.items() if super(GroupQueue, self)._start_attempt(one)}
        for uid in queued.members:
            del self._groups.entries[uid]
        queued.members = started
        if not started:
            return False
        queued.attempts += 1
        queued.seen_events = self._events
        self._groups.in_flight = queued
        return True

    def requeue_failed(self, queued: QueuedPod, unschedulable: Iterable[str] = (), pending: Iterable[str] = ()) -> None:
        if not _group_of(queued.pod):
            super().requeue_failed(queued, unschedulable, pending)
            return
        self._in_flight.done(queued.uid)
        if self.get(queued.uid) is None:
            self._record_failure(queued, unschedulable, pending)
            self._join(queued)

    def requeue_group(self, popped: QueuedGroup, code: Code) -> None:
        """Requeue a popped group whose cycle ended with `code`, if it has pods that wait.

        All its failed pods were requeued before.
        """
        groups = self._groups
        groups.in_flight = None
        members, groups.pending = groups.pending, {}
        if not members:
            return
        has_failed_pods = not members.keys().isdisjoint(popped.members)
        popped.members = members
        popped.pod = next(iter(members.values())).pod
        popped.set_gate(None)
        timestamp = popped.timestamp
        if code is Code.SUCCESS:
            self._count_failure(popped, rejected=True)
            popped.unschedulable_count = 0
            if has_failed_pods:
                # Its place in the order lets it preempt others next.
                popped.timestamp = timestamp
        else:
            self._count_failure(popped, rejected=code is not Code.ERROR)
        groups.waiting[popped.key] = popped
        self._requeue(popped, Retry.AFTER_BACKOFF, ATTEMPT_FAILED)

    # Events

    def on_event(self, event: ClusterEvent, old: Any, new: Any, only: Callable[[Pod], bool] | None = None) -> None:
        self._events += 1
        super().on_event(event, old, new, only)

    def _retry_after_event(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Retry:
        if not isinstance(queued, QueuedGroup):
            return super()._retry_after_event(queued, event, old, new)
        is_one = event.resource == Resource.TARGET_POD
        members = [queued.members[new.metadata.uid]] if is_one else queued.members.values()
        return max(self._hints.retry_after_event(one, event, old, new) for one in members)

    def _subjects_of(self, obj: Any) -> tuple[str, str]:
        uid, key = super()._subjects_of(obj)
        return uid, self._groups.root(key) if key else ""

    def _activate(self, uid: str) -> bool:
        group = self._groups.group_with(uid)
        return super()._activate(uid if group is None else group.uid)

    # Moves

    def _run_pre_enqueue(self, queued: QueuedPod) -> bool:
        """Run PreEnqueue for all pods of a group; the group is gated if one of them is rejected."""
        if not isinstance(queued, QueuedGroup):
            return super()._run_pre_enqueue(queued)
        first = () if queued.gated is None else (queued.gated,)
        for one in (*first, *queued.members.values()):
            if super()._run_pre_enqueue(one):
                queued.set_gate(one)
                return True
        queued.set_gate(None)
        return False

    def _requeue(self, queued: QueuedPod, retry: Retry, cause: str) -> bool:
        if not isinstance(queued, QueuedGroup):
            return super()._requeue(queued, retry, cause)
        # These are arrivals of pods.
        of_pods, self._expected_arrivals = self._expected_arrivals, Counter()
        try:
            return super()._requeue(queued, retry, cause)
        finally:
            self._expected_arrivals = of_pods

    def _is_still_gated(self, queued: QueuedPod) -> bool:
        gated = queued.gated if isinstance(queued, QueuedGroup) else queued
        return gated is not None and super()._is_still_gated(gated)

    def _on_active(self, queued: QueuedPod) -> None:
        if not isinstance(queued, QueuedGroup):
            super()._on_active(queued)
            return
        for one in queued.members.values():
            if one.initial_attempt_timestamp is None:
                one.initial_attempt_timestamp = self._clock.now()

    def _report_arrival(self, queue: str, queued: QueuedPod, cause: str) -> None:
        if not isinstance(queued, QueuedGroup):
            super()._report_arrival(queue, queued, cause)
            return
        self._group_arrivals[cause, queue] += 1
        self._report(queue, queued.members.values(), cause)

    def _report(self, queue: str, pods: Collection[QueuedPod], cause: str) -> None:
        """Report that pods of a group have arrived in a queue."""
        self._member_arrivals[cause, queue] += len(pods)
        for one in pods:
            self._groups.entries[one.uid] = (group_key(one.pod),)
            super()._report_arrival(queue, one, cause)

    # Queries

    def get(self, uid: str) -> QueuedPod | None:
        return self._groups.get(uid) or super().get(uid)

    def lengths(self) -> dict[str, int]:
        counts = super().lengths()
        for group in self._groups.waiting.values():
            counts[GATED if group.gate else self._place_of(group)] += len(group.members) - 1
        counts[INCOMPLETE] = sum(map(len, self._groups.incomplete.values()))
        counts[PENDING] = len(self._groups.pending)
        return counts

    def entities(self) -> dict[tuple[str, ...], float]:
        groups = Counter(GATED if group.gate else self._place_of(group) for group in self._groups.waiting.values())
        counts: dict[tuple[str, ...], float] = {}
        for place, length in super().lengths().items():
            counts[place, "pod"], counts[place, "podgroup"] = length - groups[place], groups[place]
        return counts

    def entity_arrivals(self) -> dict[tuple[str, ...], float]:
        counts = super().entity_arrivals()
        for key, number in self._member_arrivals.items():
            counts[*key, "pod"] -= number
        of_pods = {key: count for key, count in counts.items() if count}
        return of_pods | {(*key, "podgroup"): count for key, count in self._group_arrivals.items()}

    def _place_of(self, group: QueuedGroup) -> str:
        if group.uid in self._active:
            return ACTIVE
        return BACKOFF if group.uid in self._backoff else UNSCHEDULABLE

    def snapshot(self) -> dict[str, list[Pod]]:
        aside = {INCOMPLETE: self._groups.incomplete_pods(), PENDING: self._groups.pending.values()}
        return super().snapshot() | {place: [one.pod for one in pods] for place, pods in aside.items()}

    def entries(self) -> tuple[Mapping[str, object], ...]:
        groups = {group.uid for group in self._groups.waiting.values()}
        *heaps, pool = (
            {uid: entry for uid, entry in place.items() if uid not in groups} for place in super().entries()
        )
        return (*heaps, self._groups.entries, pool)

    def locate(self, uid: str) -> tuple[str, QueuedPod, float | None]:
        queued = self._groups.get(uid)
        if queued is None:
            return super().locate(uid)
        group = self._groups.group_with(uid)
        if group is None:
            return PENDING if uid in self._groups.pending else INCOMPLETE, queued, None
        place, _, retry = super().locate(group.uid)
        return place, queued, retry


def _group_of(pod: Pod) -> str:
    """Return the key of the group that a pod is scheduled with; empty for none, or for a pod that has a node."""
    return "" if pod.spec.nodeName else group_key(pod)
