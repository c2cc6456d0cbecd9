"""What happens in the cluster, taken in: the state is kept up to date, and waiting pods are told what may help them."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from msgspec.structs import force_setattr

from kubestow.cluster.changes import events_of, node_events, pod_update_events
from kubestow.cluster.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
    ClusterEvent,
)
from kubestow.cluster.gate import Gate
from kubestow.cluster.state import Cluster
from kubestow.model.node import Node
from kubestow.model.pod import Pod
from kubestow.model.pod_groups import group_key
from kubestow.model.standing import pod_is_terminal, pod_priority
from kubestow.queue.scheduling_queue import SchedulingQueue
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


class Intake:
    """Takes in objects of every kind as they are added, updated and deleted."""

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
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._names = scheduler_names
        self._reject_waiting = reject_waiting
        self._changed = changed
        self._metrics = metrics
        self._stopwatch = stopwatch
        self._gate = gate
        self._pending: dict[str, Pod] = {}
        """By uid."""

    def pending(self, pod: Pod) -> Pod | None:
        """The latest version of a pod that has no node yet; None if it is gone."""
        return self._pending.get(pod.metadata.uid)

    def latest(self, uid: str) -> Pod | None:
        """The latest version of a pod of ours that has no node yet, or of any that has one."""
        placed = self._cluster.pod(uid)
        return self._pending.get(uid) or (None if placed is None else placed.pod)

    def pending_pods(self) -> Collection[Pod]:
        """The pods of ours that have no node yet."""
        return self._pending.values()

    def names_changed(self, known: Iterable[Pod]) -> None:
        """Pods of other scheduler names are ours from now on; `known` are all pods there are."""
        for pod in [pod for pod in self._pending.values() if not self._is_ours(pod)]:
            self._forget_pending(pod)
            self._queue.delete(pod)
        for pod in known:
            if not pod.spec.nodeName and pod.metadata.uid not in self._pending:
                self._pod_added(pod)

    def added(self, obj: Any) -> None:
        if self._gate.is_closed:
            self._gate.hold(self.added, obj)
            return
        if isinstance(obj, Pod):
            self._pod_added(obj)
        elif isinstance(obj, Node):
            self._node_seen(obj)
        else:
            self._object_changed(None, obj)
        self._changed()

    def updated(self, old: Any, new: Any) -> None:
        if self._gate.is_closed:
            self._gate.hold(self.updated, old, new)
            return
        if isinstance(new, Pod):
            self._pod_updated(old, new)
        elif isinstance(new, Node):
            self._node_seen(new)
        else:
            self._object_changed(old, new)
        self._changed()

    def deleted(self, obj: Any) -> None:
        if self._gate.is_closed:
            self._gate.hold(self.deleted, obj)
            return
        if isinstance(obj, Pod):
            self._pod_deleted(obj)
        elif isinstance(obj, Node):
            self._node_gone(obj)
        else:
            self._object_changed(obj, None)
        self._changed()

    def access_changed(self, kind: type, problem: str) -> None:
        """Objects of a kind cannot be seen, for a reason; with an empty one, they can."""
        if self._gate.is_closed:
            self._gate.hold(self.access_changed, kind, problem)
            return
        # Nothing is scheduled before pods and nodes are seen.
        if not issubclass(kind, Pod | Node):
            self._cluster.set_unreadable(kind, problem)
            self._changed()

    # Nodes and everything else

    def _node_seen(self, new: Node) -> None:
        start = self._stopwatch()
        # Not the version that was seen last: it may have been refused.
        old = self._cluster.node(new.metadata.name)
        try:
            self._cluster.set_node(new)
        except ValueError as error:
            _refuse(new, error)
            return
        self._tell(node_events(old, new), old, new, start)

    def _node_gone(self, node: Node) -> None:
        start = self._stopwatch()
        # Told while the node is still there.
        self._tell(node_events(node, None), node, None, start)
        self._cluster.remove_node(node.metadata.name)

    def _object_changed(self, old: Any, new: Any) -> None:
        start = self._stopwatch()
        try:
            if new is None:
                self._cluster.remove_object(old)
            else:
                self._cluster.set_object(new)
        except ValueError as error:
            _refuse(new or old, error)
            return
        self._tell(events_of(old, new), old, new, start)

    # Pods

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.schedulerName in self._names

    def _pod_added(self, pod: Pod) -> None:
        if pod_is_terminal(pod):
            return
        if pod.spec.nodeName:
            self._assigned(None, pod)
        elif self._is_ours(pod):
            self._keep_pending(pod)
            start = self._stopwatch()
            self._queue.add(pod)
            self._tell_group(pod)
            self._handled(UNSCHEDULED_POD_ADD, start)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if new.spec == old.spec:
            # One for all versions: whoever compares them later is done at once.
            force_setattr(new, "spec", old.spec)
        if pod_is_terminal(new):
            if not pod_is_terminal(old):
                self._pod_deleted(old)
        elif old.spec.nodeName:
            self._assigned(old, new)
        elif new.spec.nodeName:
            self._assigned(None, new)
            if self._is_ours(old):
                self._forget_pending(old)
                self._queue.delete(old)
                self._queue.done(old.metadata.uid)
        elif self._is_ours(old):
            self._keep_pending(new)
            self._waiting_updated(old, new)

    def _pod_deleted(self, pod: Pod) -> None:
        if pod.spec.nodeName:
            if self._cluster.pod(pod.metadata.uid) is None:
                # It has run to its end before, and was taken off its node then.
                return
            start = self._stopwatch()
            self._cluster.remove_pod(pod.metadata.uid)
            self._tell([ASSIGNED_POD_DELETE], pod, None, start)
        elif self._is_ours(pod) or self._cluster.is_assumed(pod.metadata.uid):
            self._forget_pending(pod)
            self._waiting_deleted(pod)

    def _keep_pending(self, pod: Pod) -> None:
        self._pending[pod.metadata.uid] = pod
        if self._cluster.groups is not None and (key := group_key(pod)):
            self._cluster.groups.add_pending(key, pod)

    def _forget_pending(self, pod: Pod) -> None:
        self._pending.pop(pod.metadata.uid, None)
        if self._cluster.groups is not None and (key := group_key(pod)):
            self._cluster.groups.remove_pending(key, pod.metadata.uid)

    def _tell_group(self, pod: Pod) -> None:
        """A pod may complete its group; as long as it does not, it makes no difference to the others."""
        groups = self._cluster.groups
        if groups is None or not (key := group_key(pod)):
            return
        group = groups.get(key)
        if group is not None and groups.members(key).count >= group.min_count:
            self._queue.on_event(UNSCHEDULED_POD_ADD, None, pod)

    def _assigned(self, old: Pod | None, new: Pod) -> None:
        start = self._stopwatch()
        try:
            self._cluster.set_pod(new)
        except ValueError as error:
            _refuse(new, error)
            return
        self._tell([ASSIGNED_POD_ADD] if old is None else pod_update_events(old, new), old, new, start)

    def _waiting_updated(self, old: Pod, new: Pod) -> None:
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
            self._nomination_gone(old)
        self._handled(UNSCHEDULED_POD_UPDATE, start)

    def _waiting_deleted(self, pod: Pod) -> None:
        start = self._stopwatch()
        self._queue.delete(pod)
        if self._cluster.is_assumed(pod.metadata.uid):
            self._assumed_deleted(pod)
        elif pod.status.nominatedNodeName:
            self._nomination_gone(pod)
        self._handled(UNSCHEDULED_POD_DELETE, start)

    def _assumed_deleted(self, pod: Pod) -> None:
        """A pod on its way to a node is to go: what it took there is free again."""
        assumed = self._cluster.pod(pod.metadata.uid)
        assert assumed is not None
        if not self._reject_waiting(assumed.uid, "removed"):
            self._cluster.forget(assumed.uid)
        self._queue.on_event(ASSIGNED_POD_DELETE, assumed.pod, None)

    def _nomination_gone(self, pod: Pod) -> None:
        """Room that was kept for a pod is free for those that are no more important."""
        priority = pod_priority(pod)
        self._queue.on_event(ASSIGNED_POD_DELETE, pod, None, only=lambda other: pod_priority(other) <= priority)

    def _tell(self, events: list[ClusterEvent], old: Any, new: Any, start: float) -> None:
        for event in events:
            self._queue.on_event(event, old, new)
            self._metrics.event_handling_seconds.observe(self._stopwatch() - start, event.label)

    def _handled(self, event: ClusterEvent, start: float) -> None:
        self._metrics.event_handling_seconds.observe(self._stopwatch() - start, event.label)


class IntoIntake:
    """Hands changes of one resource to the intake."""

    def __init__(self, intake: Intake, kind: type) -> None:
        self.on_add = intake.added
        self.on_update = intake.updated
        self.on_delete = intake.deleted
        self.on_access = partial(intake.access_changed, kind)


def _refuse(obj: Any, error: Exception) -> None:
    meta = obj.metadata
    name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    log.error("Object makes no sense and is not taken in", err=error, kind=type(obj).__name__, object=name)
