"""A cluster to try pods in: objects, the profiles of a configuration, and a clock that stands still."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubestow.api.coordination import Binding, Event, Lease
from kubestow.api.devices import ResourceClaimTemplate
from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_is_terminal
from kubestow.api.workloads import PriorityClass
from kubestow.config import Features, SchedulerConfiguration
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.detached import StillClock
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator

_UNREAD = (Binding, Event, Lease)
"""Kinds that schedulers never read."""
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""


class ExplainError(Exception):
    """What was asked for cannot be explained; the message is one line that says why."""


class NoProfileError(ExplainError):
    """The configuration has no profile for a pod."""


class Setup(NamedTuple):
    """How the scheduler decides."""

    configuration: SchedulerConfiguration
    features: Features = Features()
    registry: Registry = in_tree_registry()


class World:
    """Everything a decision depends on."""

    def __init__(self, setup: Setup, objects: Iterable[Any], now: float) -> None:
        """Raises ExplainError for objects that make no sense, ProfileError for plugins that cannot be made."""
        self.now = now
        self.features = setup.features
        self.cluster = Cluster(setup.features)
        self.nominator = Nominator()
        self.pending: dict[str, Pod] = {}
        """Pods without a node, by namespace/name."""
        self._finished: dict[str, Pod] = {}
        """The same of those that need no room any more."""
        self.priority_classes = {
            name: PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in _SYSTEM_CLASSES.items()
        }
        self.claim_templates: dict[str, ResourceClaimTemplate] = {}
        """By namespace/name."""
        self.extenders = setup.configuration.extenders
        for obj in objects:
            self.add(obj)
        handle = offline_handle(self.cluster, setup.features, nominator=self.nominator, clock=StillClock(now))
        self.profiles = build_profiles(setup.configuration, setup.registry, handle, lambda: 0.0)

    def add(self, obj: Any) -> None:
        """An object of any kind is there; raises ExplainError if it makes no sense."""
        try:
            self._add(obj)
        except ValueError as error:
            raise ExplainError(f"{type(obj).__name__} {_name_of(obj)}: {error}") from None

    def _add(self, obj: Any) -> None:
        if isinstance(obj, Node):
            self.cluster.set_node(obj)
        elif isinstance(obj, PriorityClass):
            self.priority_classes[obj.metadata.name] = obj
        elif isinstance(obj, ResourceClaimTemplate):
            self.claim_templates[key_of(obj)] = obj
        elif not isinstance(obj, Pod):
            if not isinstance(obj, _UNREAD):
                self.cluster.set_object(obj)
        elif pod_is_terminal(obj):
            self._finished[obj.key] = obj
        elif obj.spec.nodeName:
            self.cluster.set_pod(obj)
        else:
            self.add_pending(obj)

    def set_unreadable(self, kind: type, problem: str) -> None:
        """Objects of a kind cannot be seen: whoever depends on them says so."""
        if kind not in (Node, Pod, PriorityClass, ResourceClaimTemplate):
            self.cluster.set_unreadable(kind, problem)

    def add_pending(self, pod: Pod) -> None:
        """A pod waits for a node; one of the same name is no longer there."""
        old = self.pending.get(pod.key)
        if old is not None:
            self.nominator.remove(old.metadata.uid)
        self.pending[pod.key] = pod
        self.nominator.nominate(pod)
        if self.cluster.groups is not None and (key := group_key(pod)):
            self.cluster.groups.add_pending(key, pod)

    def make_way(self, pod: Pod) -> str:
        """Whichever other pod on a node has the name of a new one is gone; returns the node's name."""
        for row, old in self.cluster.placed_pods():
            if old.key == pod.key and old.uid != pod.metadata.uid:
                self.cluster.remove_pod(old.uid)
                return str(self.cluster.nodes.names[row])
        return ""

    def profile_of(self, pod: Pod) -> Profile:
        """The profile that schedules a pod; raises ExplainError."""
        name = pod.spec.schedulerName or "default-scheduler"
        found = self.profiles.get(name)
        if found is None:
            known = ", ".join(sorted(self.profiles))
            said = f"no profile has its schedulerName {name}; the configuration has {known}"
            raise NoProfileError(f"pod {pod.key}: {said}")
        return found

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A pod by its name: pending, on a node, or finished."""
        found = self.pending.get(f"{namespace}/{name}")
        if found is not None:
            return found
        return next((pod for pod in self.pods() if pod.key == f"{namespace}/{name}"), None)

    def pods(self) -> Iterator[Pod]:
        """All pods: pending, on a node, or finished."""
        yield from self.pending.values()
        yield from (pod.pod for _, pod in self.cluster.placed_pods())
        yield from self._finished.values()

    def take_out(self, pod: Pod) -> PodInfo:
        """The pod as one that is about to be scheduled: on no node, and nominated to none."""
        is_placed = self.cluster.pod(pod.metadata.uid) is not None
        if is_placed:
            self.cluster.remove_pod(pod.metadata.uid)
        if is_placed or pod_is_terminal(pod):
            pod = replace(pod, spec=replace(pod.spec, nodeName=""))
        self.nominator.remove(pod.metadata.uid)
        self.pending.pop(pod.key, None)
        return PodInfo(pod)


def _name_of(obj: Any) -> str:
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)
