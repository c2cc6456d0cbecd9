"""Compiled topology spread constraints: those of a pod, or the defaults for pods that have none.

Default constraints select pods by the services that select the pod and the controller that owns it.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from kubestow.api.labels import (
    NOTHING,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    compile_selector,
    selector_from_set,
)
from kubestow.api.meta import OwnerReference, controller_of
from kubestow.api.pod import Pod, TopologySpreadConstraint
from kubestow.api.workloads import ReplicaSet, StatefulSet
from kubestow.config.features import Features
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.scheduler.cluster.listers import Listers
from kubestow.scheduler.cluster.state import Cluster

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

_HARD = "DoNotSchedule"
_SOFT = "ScheduleAnyway"
_HONOR = "Honor"

_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topologyKey=HOSTNAME, whenUnsatisfiable=_SOFT, maxSkew=3),
    TopologySpreadConstraint(topologyKey=ZONE, whenUnsatisfiable=_SOFT, maxSkew=5),
)

_CACHE_LIMIT = 10_000


class Constraint(msgspec.Struct, frozen=True):
    """A limit for the difference in the number of selected pods between the domains of a topology key."""

    key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honors_affinity: bool
    """Whether nodes that the pod's node selector and affinity exclude are ignored."""
    honors_taints: bool
    """Whether nodes with taints that the pod does not tolerate are ignored."""


class Constraints(msgspec.Struct, frozen=True):
    hard: tuple[Constraint, ...] = ()
    soft: tuple[Constraint, ...] = ()


_NONE = Constraints()


class ConstraintReader:
    """Returns the constraints of pods; compiled constraints are cached."""

    def __init__(self, args: PodTopologySpreadArgs, features: Features, cluster: Cluster) -> None:
        self._cluster = cluster
        self._match_label_keys = features.match_label_keys_in_pod_topology_spread
        self._uses_system_defaults = args.defaultingType == "System"
        self._defaults = self._compiled(
            _SYSTEM_DEFAULTS if self._uses_system_defaults else args.defaultConstraints, labels={}
        )
        self._of_specs: dict[bytes, Constraints] = {}
        self._default_selectors: dict[tuple[object, ...], tuple[int, Selector]] = {}

    def needs_every_key(self, pod: Pod) -> bool:
        """Return whether nodes that lack one of the topology keys are ignored.

        With the system defaults, nodes without a zone count, too.
        """
        return bool(pod.spec.topologySpreadConstraints) or not self._uses_system_defaults

    def hard(self, pod: Pod) -> tuple[Constraint, ...]:
        """Return the constraints that nodes must satisfy. Raises SelectorError."""
        if pod.spec.topologySpreadConstraints:
            return self._own(pod).hard
        return self._defaulted(pod, self._defaults.hard)

    def soft(self, pod: Pod) -> tuple[Constraint, ...]:
        """Return the constraints that nodes are scored by. Raises SelectorError."""
        if pod.spec.topologySpreadConstraints:
            return self._own(pod).soft
        return self._defaulted(pod, self._defaults.soft)

    def _own(self, pod: Pod) -> Constraints:
        written = pod.spec.topologySpreadConstraints
        labels = pod.metadata.labels
        matched = [labels.get(key) for constraint in written for key in constraint.matchLabelKeys]
        # Pods of one controller have the same constraints, which are compiled once.
        key = msgspec.json.encode((written, matched))
        found = self._of_specs.get(key)
        if found is None:
            if len(self._of_specs) >= _CACHE_LIMIT:
                self._of_specs.clear()
            found = self._of_specs[key] = self._compiled(written, labels)
        return found

    def _compiled(self, written: Iterable[TopologySpreadConstraint], labels: Mapping[str, str]) -> Constraints:
        by_action: dict[str, list[Constraint]] = {_HARD: [], _SOFT: []}
        for constraint in written:
            compiled = by_action.get(constraint.whenUnsatisfiable)
            if compiled is not None:
                compiled.append(self._compile(constraint, labels))
        return Constraints(tuple(by_action[_HARD]), tuple(by_action[_SOFT]))

    def _compile(self, constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> Constraint:
        selector = compile_selector(constraint.labelSelector)
        if self._match_label_keys:
            selector = selector.and_also(
                *(
                    Requirement(key, Operator.EQUALS, (labels[key],))
                    for key in constraint.matchLabelKeys
                    if key in labels
                )
            )
        return Constraint(
            key=constraint.topologyKey,
            max_skew=constraint.maxSkew,
            selector=selector,
            min_domains=1 if constraint.minDomains is None else constraint.minDomains,
            honors_affinity=constraint.nodeAffinityPolicy in (None, _HONOR),
            honors_taints=constraint.nodeTaintsPolicy == _HONOR,
        )

    def _defaulted(self, pod: Pod, defaults: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
        if not defaults:
            return ()
        selector = self._default_selector(pod)
        if selector.is_everything:
            return ()
        return tuple(replace(default, selector=selector) for default in defaults)

    def _default_selector(self, pod: Pod) -> Selector:
        meta = pod.metadata
        owner = controller_of(meta)
        version = self._cluster.listed_version
        key = (meta.namespace, frozenset(meta.labels.items()), owner and (owner.apiVersion, owner.kind, owner.name))
        known = self._default_selectors.get(key)
        if known is not None and known[0] == version:
            return known[1]
        if len(self._default_selectors) >= _CACHE_LIMIT:
            self._default_selectors.clear()
        selector = default_selector(pod, owner, self._cluster.listers)
        self._default_selectors[key] = (version, selector)
        return selector


def default_selector(pod: Pod, owner: OwnerReference | None, listers: Listers) -> Selector:
    """Return the selector of the pods with the same services and controller; everything if none is known."""
    namespace = pod.metadata.namespace
    labels: dict[str, str] = {}
    for selected in listers.services.selecting(namespace, pod.metadata.labels):
        labels.update((requirement.key, requirement.values[0]) for requirement in selected.requirements)
    if owner is None:
        return selector_from_set(labels)
    name = f"{namespace}/{owner.name}"
    if (owner.apiVersion, owner.kind) == ("v1", "ReplicationController"):
        controller = listers.replication_controllers.get(name)
        if controller is not None:
            labels.update(controller.spec.selector)
    return selector_from_set(labels).and_also(*_owner_selector(owner, name, listers).requirements)


def _owner_selector(owner: OwnerReference, name: str, listers: Listers) -> Selector:
    """Return the selector of a ReplicaSet or StatefulSet; NOTHING if it is unknown or its selector is invalid."""
    controller: ReplicaSet | StatefulSet | None = None
    if (owner.apiVersion, owner.kind) == ("apps/v1", "ReplicaSet"):
        controller = listers.replica_sets.get(name)
    elif (owner.apiVersion, owner.kind) == ("apps/v1", "StatefulSet"):
        controller = listers.stateful_sets.get(name)
    if controller is None:
        return NOTHING
    try:
        return compile_selector(controller.spec.selector)
    except SelectorError:
        return NOTHING
