"""A cluster for dry runs: objects, the profiles of a configuration, and a stopped clock."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import json
from msgspec.structs import replace

from kubestow.api.coordination import Binding, Event, Lease
from kubestow.api.custom_kinds import resource_of
from kubestow.api.devices import ResourceClaimTemplate
from kubestow.api.meta import ObjectMeta, controller_of
from kubestow.api.natural_order import natural
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_is_terminal
from kubestow.api.workloads import PriorityClass
from kubestow.config import Features, SchedulerConfiguration
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.detached import FixedClock, WantedWrites
from kubestow.scheduler.framework.polling import Background, NoBackground
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator

T = TypeVar("T")

PendingKind = tuple[str, frozenset[tuple[str, str]], str]
"""Namespace, labels and the UID of the controller of pending pods."""

_NOTHING = NoBackground()
_UNREAD = (Binding, Event, Lease)
"""Kinds that schedulers never read."""
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""


_NOTED_WRITES = 5
_MOST_ADDED = 1_000


class ExplainError(Exception):
    """The request cannot be explained; the message is one line with the reason."""


class NoProfileError(ExplainError):
    """The configuration has no profile for a pod."""

    def __init__(self, message: str, similar: Sequence[str]) -> None:
        """`similar`: the nearest names of profiles."""
        super().__init__(message)
        self.similar = similar


class Setup(NamedTuple):
    """The configuration, features and plugins of the scheduler."""

    configuration: SchedulerConfiguration
    features: Features = Features()
    registry: Registry = in_tree_registry()


class World:
    """All objects and settings that a decision depends on."""

    def __init__(self, setup: Setup, objects: Iterable[Any], now: float, background: Background = _NOTHING) -> None:
        """Raises ExplainError for invalid objects, ProfileError for plugins that cannot be created.

        `background` gets the values that plugins poll.
        """
        self.now = now
        self.features = setup.features
        self.cluster = Cluster(setup.features)
        self.nominator = Nominator()
        self.pending: dict[str, Pod] = {}
        """Pods without a node, by namespace/name."""
        self.pending_kinds: dict[PendingKind, dict[str, None]] = {}
        """Their keys, by namespace, labels and controller."""
        self._finished: dict[str, Pod] = {}
        """Finished pods, which occupy no node, by namespace/name."""
        self.priority_classes = {
            name: PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in _SYSTEM_CLASSES.items()
        }
        self.claim_templates: dict[str, ResourceClaimTemplate] = {}
        """By namespace/name."""
        self.has_unread_templates = False
        self.extenders = setup.configuration.extenders
        for obj in objects:
            self.add(obj)
        self._of_nodes: list[tuple[list[Node | None], dict[Callable[[World], Any], Any]]] = []
        self._names: list[str] = []
        self._ranks: IntArray = np.zeros(0, np.int64)
        self._writes = WantedWrites()
        handle = offline_handle(
            self.cluster,
            setup.features,
            nominator=self.nominator,
            clock=FixedClock(now),
            _writer=self._writes,
            _background=background,
        )
        self.profiles = build_profiles(setup.configuration, setup.registry, handle, lambda: 0.0)

    @property
    def declared_kinds(self) -> set[type]:
        """The kinds that plugins watch."""
        return {kind for profile in self.profiles.values() for kind in profile.declared_kinds}

    def of_nodes(self, compute: Callable[["World"], T]) -> T:
        """Return what a function computes of the nodes; it is kept until a node is changed."""
        nodes = self.cluster.nodes.nodes
        known = next((known for seen, known in self._of_nodes if seen == nodes), None)
        if known is None:
            known = {}
            # The first nodes are kept, and the last changed ones.
            self._of_nodes[1:] = [(nodes.copy(), known)]
        if compute not in known:
            known[compute] = compute(self)
        found: T = known[compute]
        return found

    def in_natural_order(self, rows: IntArray) -> list[str]:
        """Return the names of nodes in natural order."""
        names = self.cluster.nodes.names
        if names[: len(self._names)] != self._names or len(names) > len(self._ranks):
            ordered = sorted(range(len(names)), key=lambda row: natural(names[row]))
            # Nodes that are added for a trial come last.
            self._names, self._ranks = names.copy(), np.arange(len(names) + _MOST_ADDED)
            self._ranks[ordered] = np.arange(len(names))
        return [names[row] for row in rows[np.argsort(self._ranks[rows])].tolist()]

    def add(self, obj: Any) -> None:
        """Add an object of any kind. Raises ExplainError if it is invalid."""
        try:
            self._add(obj)
        except ValueError as error:
            raise ExplainError(f"{type(obj).__name__} {_name_of(obj)}: {error}") from None

    def _add(self, obj: Any) -> None:
        if isinstance(obj, Node):
            self.cluster.set_node(obj)
        elif isinstance(obj, PriorityClass):
            self.priority_classes[obj.metadata.name] = obj
            # For plugins that watch them.
            self.cluster.set_object(obj)
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

    def notes_on_writes(self) -> tuple[str, ...]:
        """Return what plugins would write to objects of their kinds, as sentences."""
        wanted = [(key_of(obj), resource_of(type(obj)), changes) for obj, changes in self._writes.wanted]
        notes = [
            f"a plugin would write to {declared.name} {key}: {json.encode(changes).decode()}."
            for key, declared, changes in wanted[:_NOTED_WRITES]
            if declared is not None
        ]
        more = len(wanted) - _NOTED_WRITES
        return (*notes, *((f"plugins would write {more} more times.",) if more > 0 else ()))

    def set_unreadable(self, kind: type, problem: str) -> None:
        """Record that objects of a kind cannot be read, so that plugins that depend on them report the problem."""
        if kind is ResourceClaimTemplate:
            self.has_unread_templates = True
        elif kind not in (Node, Pod, PriorityClass):
            self.cluster.set_unreadable(kind, problem)

    def add_pending(self, pod: Pod) -> None:
        """Add a pending pod; it replaces a pending pod with the same name."""
        old = self._remove_pending(pod.key)
        if old is not None:
            self.nominator.remove(old.metadata.uid)
        self.pending[pod.key] = pod
        self.pending_kinds.setdefault(_kind_of(pod), {})[pod.key] = None
        self.nominator.nominate(pod)
        if self.cluster.groups is not None and (key := group_key(pod)):
            self.cluster.groups.add_pending(key, pod)

    def _remove_pending(self, key: str) -> Pod | None:
        pod = self.pending.pop(key, None)
        if pod is not None:
            keys = self.pending_kinds[_kind_of(pod)]
            del keys[key]
            if not keys:
                del self.pending_kinds[_kind_of(pod)]
        return pod

    def remove_placed(self, pod: Pod) -> str:
        """Remove another pod with the name of a new one from its node; return the node's name, or an empty string."""
        for row, old in self.cluster.placed_pods():
            if old.key == pod.key and old.uid != pod.metadata.uid:
                self.cluster.remove_pod(old.uid)
                return str(self.cluster.nodes.names[row])
        return ""

    def profile_of(self, pod: Pod) -> Profile:
        """Return the profile that schedules a pod. Raises NoProfileError."""
        name = pod.spec.schedulerName or "default-scheduler"
        found = self.profiles.get(name)
        if found is None:
            known = ", ".join(sorted(self.profiles))
            similar = nearest(name, self.profiles)
            message = f"no profile has schedulerName {name}; the configuration has {known}{did_you_mean(similar)}"
            raise NoProfileError(f"pod {pod.key}: {message}", similar)
        return found

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod by name: pending, on a node, or finished."""
        found = self.pending.get(f"{namespace}/{name}")
        if found is not None:
            return found
        return next((pod for pod in self.pods() if pod.key == f"{namespace}/{name}"), None)

    def pods(self) -> Iterator[Pod]:
        """Yield all pods: pending, on a node, or finished."""
        yield from self.pending.values()
        yield from (pod.pod for _, pod in self.cluster.placed_pods())
        yield from self._finished.values()

    @property
    def namespaces(self) -> set[str]:
        """The names of the namespaces that exist, or have a pod."""
        known = {one.metadata.name for one in self.cluster.listers.namespaces}
        return known | {pod.metadata.namespace for pod in self.pods()}

    def remove_for_scheduling(self, pod: Pod) -> PodInfo:
        """Remove a pod and its nomination from the world; return it as a pod to schedule."""
        is_placed = self.cluster.pod(pod.metadata.uid) is not None
        if is_placed:
            self.cluster.remove_pod(pod.metadata.uid)
        if is_placed or pod_is_terminal(pod):
            pod = replace(pod, spec=replace(pod.spec, nodeName=""))
        self.nominator.remove(pod.metadata.uid)
        self._remove_pending(pod.key)
        return PodInfo(pod)


def _kind_of(pod: Pod) -> PendingKind:
    owner = controller_of(pod.metadata)
    return pod.metadata.namespace, frozenset(pod.metadata.labels.items()), "" if owner is None else owner.uid


def _name_of(obj: Any) -> str:
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)
