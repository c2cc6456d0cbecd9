"""Applies changes of objects to the cluster state, and notifies the queue of the events that follow from them."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Protocol

from msgspec.structs import force_setattr

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import AnyGroup, group_key
from kubestow.api.priority import pod_is_terminal, pod_priority
from kubestow.api.requests import resize_is_deferred
from kubestow.scheduler.cluster.changes import availability_event, events_of, node_events, pod_update_events
from kubestow.scheduler.cluster.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
    ClusterEvent,
)
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


class Groups(Protocol):
    """The queue, if it has pod groups."""

    def add_group(self, key: str, parent: str) -> None: ...

    def remove_group(self, key: str) -> None: ...


class Intake:
    """Applies changes of objects of every kind, in the order in which they are reported."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        queue: SchedulingQueue,
        scheduler_names: Collection[str],
        reject_waiting: Callable[[str, str], bool],
        changed: Callable[[], None],
        metrics: SchedulerMetrics,
        stopwatch: Callable[[], float],
        gate: Gate,
        queues_deferred_resizes: bool,
        groups: Groups | None = None,
    ) -> None:
        """`reject_waiting(uid, message)` rejects a pod that waits for permission; `changed` is called after changes.

        With `queues_deferred_resizes`, pods whose resize waits for capacity on their node are scheduled, too.
        """
        self._cluster = cluster
        self._queue = queue
        self._names = scheduler_names
        self._reject_waiting = reject_waiting
        self._changed = changed
        self._metrics = metrics
        self._stopwatch = stopwatch
        self._gate = gate
        self._queues_deferred_resizes = queues_deferred_resizes
        self._groups = groups
        self._pending = cluster.pod_indexes.unscheduled
        """The unassigned pods with one of these scheduler names, by UID."""

    def latest_pending(self, pod: Pod) -> Pod | None:
        """Return the latest version of a pod to be scheduled; None if it was deleted, assigned or resized."""
        found = self._pending.get(pod.metadata.uid)
        if found is None and self._queues_deferred_resizes:
            placed = self._cluster.pod(pod.metadata.uid)
            found = placed.pod if placed is not None and self._is_deferred(placed.pod) else None
        return found

    def latest(self, uid: str) -> Pod | None:
        """Return the latest version of a pending pod, or of any pod that is assumed or assigned."""
        placed = self._cluster.pod(uid)
        return self._pending.get(uid) or (None if placed is None else placed.pod)

    def pending_pods(self) -> Collection[Pod]:
        """Return the unassigned pods with one of these scheduler names."""
        return self._pending.values()

    def scheduler_names_changed(self, pods: Iterable[Pod]) -> None:
        """Drop pending pods whose scheduler name was removed, and add those of `pods` whose name was added."""
        for pod in [pod for pod in self._pending.values() if not self._is_ours(pod)]:
            self._remove_pending(pod)
            self._queue.delete(pod)
        for pod in pods:
            if pod.spec.nodeName:
                if self._queues_deferred_resizes:
                    queued = self._queue.get(pod.metadata.uid)
                    self._set_deferred(None if queued is None else queued.pod, pod)
            elif pod.metadata.uid not in self._pending:
                self._pod_added(pod)

    def added(self, obj: Any) -> None:
        self._apply(None, obj)

    def updated(self, old: Any, new: Any) -> None:
        self._apply(old, new)

    def deleted(self, obj: Any) -> None:
        self._apply(obj, None)

    def _apply(self, old: Any, new: Any) -> None:
        if self._gate.is_closed:
            self._gate.defer(self._apply, old, new)
            return
        obj = old if new is None else new
        if isinstance(obj, Pod):
            self._pod_changed(old, new)
        elif isinstance(obj, Node):
            self._node_changed(old, new)
        else:
            self._object_changed(old, new)
        self._changed()

    def access_changed(self, kind: type, problem: str) -> None:
        """Record that objects of a kind cannot be read because of `problem`; if that is empty, they can."""
        if self._gate.is_closed:
            self._gate.defer(self.access_changed, kind, problem)
            return
        # Scheduling does not start before pods and nodes can be read.
        if not issubclass(kind, Pod | Node):
            start = self._stopwatch()
            is_other = self._cluster.listers.store_of(kind).unreadable != problem
            self._cluster.set_unreadable(kind, problem)
            event = availability_event(kind) if is_other else None
            if event is not None:
                self._notify_queue([event], None, None, start)
            self._changed()

    def notify(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Retry the pods that an event may help which is not about an object."""
        self._notify_queue([event], old, new, self._stopwatch())

    # Nodes and other objects

    def _node_changed(self, reported: Node | None, new: Node | None) -> None:
        start = self._stopwatch()
        if new is None:
            assert reported is not None
            # While the node is still there.
            self._notify_queue(node_events(reported, None), reported, None, start)
            self._cluster.remove_node(reported.metadata.name)
            return
        # Not the version that was reported last, which may have been invalid.
        old = self._cluster.node(new.metadata.name)
        try:
            self._cluster.set_node(new)
        except ValueError as error:
            _log_invalid(new, error)
            return
        self._notify_queue(node_events(old, new), old, new, start)

    def _object_changed(self, old: Any, new: Any) -> None:
        start = self._stopwatch()
        try:
            if new is None:
                self._cluster.remove_object(old)
            else:
                self._cluster.set_object(new)
        except ValueError as error:
            _log_invalid(new or old, error)
            return
        groups = self._cluster.groups
        if self._groups is not None and groups is not None and isinstance(new or old, AnyGroup):
            if new is None:
                self._groups.remove_group(old.key)
            else:
                self._groups.add_group(new.key, groups.parent_key(new))
        self._notify_queue(events_of(old, new), old, new, start)

    # Pods

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.schedulerName in self._names

    def _is_deferred(self, pod: Pod) -> bool:
        return bool(pod.spec.nodeName) and self._is_ours(pod) and resize_is_deferred(pod)

    def _set_deferred(self, queued: Pod | None, new: Pod | None) -> None:
        """Queue a pod whose resize waits for capacity on its node, or update or remove the `queued` version of it."""
        if new is None or not self._is_deferred(new):
            if queued is not None:
                self._queue.delete(queued)
        elif queued is None:
            self._queue.add(new)
        else:
            self._queue.update(queued, new)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            assert old is not None
            self._pod_deleted(old)
        elif old is None:
            self._pod_added(new)
        else:
            self._pod_updated(old, new)

    def _pod_added(self, pod: Pod) -> None:
        if pod_is_terminal(pod):
            return
        if pod.spec.nodeName:
            if self._queues_deferred_resizes:
                self._set_deferred(None, pod)
            self._set_assigned(None, pod)
        elif self._is_ours(pod):
            self._add_pending(pod)
            start = self._stopwatch()
            self._queue.add(pod)
            self._notify_of_group_member(pod)
            self._observe_duration(UNSCHEDULED_POD_ADD, start)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if new.spec == old.spec:
            # All versions share one object, which makes later comparisons fast.
            force_setattr(new, "spec", old.spec)
        if pod_is_terminal(new):
            if not pod_is_terminal(old):
                self._pod_deleted(old)
        elif old.spec.nodeName:
            if self._queues_deferred_resizes:
                self._set_deferred(old if self._is_deferred(old) else None, new)
            self._set_assigned(old, new)
        elif new.spec.nodeName:
            self._set_assigned(None, new)
            if self._is_ours(old):
                self._remove_pending(old)
                self._queue.delete(old)
                self._queue.done(old.metadata.uid)
        elif self._is_ours(old):
            self._add_pending(new)
            self._pending_updated(old, new)

    def _pod_deleted(self, pod: Pod) -> None:
        if pod.spec.nodeName:
            if self._queues_deferred_resizes:
                self._set_deferred(pod, None)
            if self._cluster.pod(pod.metadata.uid) is None:
                # It was removed when it became terminal.
                return
            start = self._stopwatch()
            self._cluster.remove_pod(pod.metadata.uid)
            self._notify_queue([ASSIGNED_POD_DELETE], pod, None, start)
        elif self._is_ours(pod) or self._cluster.is_assumed(pod.metadata.uid):
            self._remove_pending(pod)
            self._pending_deleted(pod)

    def _add_pending(self, pod: Pod) -> None:
        self._cluster.pod_indexes.set_unscheduled(pod)
        if self._cluster.groups is not None and (key := group_key(pod)):
            self._cluster.groups.add_pending(key, pod)

    def _remove_pending(self, pod: Pod) -> None:
        self._cluster.pod_indexes.remove_unscheduled(pod.metadata.uid)
        if self._cluster.groups is not None and (key := group_key(pod)):
            self._cluster.groups.remove_pending(key, pod.metadata.uid)

    def _notify_of_group_member(self, pod: Pod) -> None:
        """Notify the queue of a new pod if its group, or tree, has enough pods; else it does not help the others."""
        groups = self._cluster.groups
        if groups is None or not (key := group_key(pod)):
            return
        group = groups.get(key)
        root = None if group is None else groups.root_of(group)
        if root is not None and groups.has_quorum(root):
            self._queue.on_event(UNSCHEDULED_POD_ADD, None, pod)

    def _set_assigned(self, old: Pod | None, new: Pod) -> None:
        start = self._stopwatch()
        try:
            self._cluster.set_pod(new)
        except ValueError as error:
            _log_invalid(new, error)
            return
        self._notify_queue([ASSIGNED_POD_ADD] if old is None else pod_update_events(old, new), old, new, start)

    def _pending_updated(self, old: Pod, new: Pod) -> None:
        if old.metadata.resourceVersion and old.metadata.resourceVersion == new.metadata.resourceVersion:
            return
        start = self._stopwatch()
        if self._cluster.is_assumed(new.metadata.uid):
            if new.metadata.deletionTimestamp is not None and old.metadata.deletionTimestamp is None:
                self._assumed_deleted(new)
            return
        self._queue.update(old, new)
        nominated = old.status.nominatedNodeName
        if nominated and nominated != new.status.nominatedNodeName:
            self._nomination_removed(old)
        for event in {UNSCHEDULED_POD_UPDATE, *pod_update_events(old, new)}:
            self._observe_duration(event, start)

    def _pending_deleted(self, pod: Pod) -> None:
        start = self._stopwatch()
        self._queue.delete(pod)
        if self._cluster.is_assumed(pod.metadata.uid):
            self._assumed_deleted(pod)
        elif pod.status.nominatedNodeName:
            self._nomination_removed(pod)
        self._observe_duration(UNSCHEDULED_POD_DELETE, start)

    def _assumed_deleted(self, pod: Pod) -> None:
        """Free the capacity of an assumed pod that is deleted or terminating."""
        assumed = self._cluster.pod(pod.metadata.uid)
        assert assumed is not None
        if not self._reject_waiting(assumed.uid, "removed"):
            self._cluster.forget(assumed.uid)
        self._queue.on_event(ASSIGNED_POD_DELETE, assumed.pod, None)

    def _nomination_removed(self, pod: Pod) -> None:
        """Notify the pods of at most the same priority that the capacity nominated to a pod is available."""
        priority = pod_priority(pod)
        self._queue.on_event(ASSIGNED_POD_DELETE, pod, None, only=lambda other: pod_priority(other) <= priority)

    def _notify_queue(self, events: list[ClusterEvent], old: Any, new: Any, start: float) -> None:
        for event in events:
            self._queue.on_event(event, old, new)
            self._metrics.event_handling_seconds.observe(self._stopwatch() - start, event.label)

    def _observe_duration(self, event: ClusterEvent, start: float) -> None:
        self._metrics.event_handling_seconds.observe(self._stopwatch() - start, event.label)


class IntakeHandler:
    """The watch handlers of one resource, which pass its changes to the intake."""

    def __init__(self, intake: Intake, kind: type) -> None:
        self.on_add = intake.added
        self.on_update = intake.updated
        self.on_delete = intake.deleted
        self.on_access = partial(intake.access_changed, kind)


def _log_invalid(obj: Any, error: Exception) -> None:
    meta = obj.metadata
    name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    log.error("Ignoring invalid object", err=error, kind=type(obj).__name__, object=name)
