"""The plugin NodeResourceTopologyMatch."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from kubestow.contrib.containers import signature_of
from kubestow.contrib.numa import alignment, scoring
from kubestow.contrib.numa.alignment import ABSENT, Zones
from kubestow.contrib.numa.demand import demand_of
from kubestow.contrib.numa.reservations import Foreign, Reservations
from kubestow.contrib.numa.topology import NodeResourceTopology, Policy, Scope, node_zones
from kubestow.plugin import (
    MAX_SCORE,
    SKIP,
    Action,
    Handle,
    PodInfo,
    PostBind,
    PreFilter,
    Registration,
    Rejection,
    Requeues,
    Reserve,
    Resource,
    Skip,
    on,
    unschedulable,
)
from kubestow.plugin.fast import FilterRows, IntArray, NodeView, PodsRead, Rejections, Rows, ScoreRows, Signs

_NODE_KEYS = ("policy", "scope", "unreliable")
_UNRELIABLE = 5
_REASONS = {
    alignment.POD: "cannot align pod",
    alignment.CONTAINER: "cannot align container",
    alignment.INIT_CONTAINER: "cannot align init container",
    alignment.SIDECAR: "cannot align sidecar container",
    _UNRELIABLE: "invalid node topology data",
}
_RESYNC = {"All": False, "OnlyExclusiveResources": True, "Autodetect": None}


class WeightedResource(Struct, frozen=True):
    """The weight of a resource in a score; 0 counts as 1."""

    name: str
    weight: int = 1


class ScoringStrategy(Struct, frozen=True):
    """How nodes are scored."""

    type: str = "LeastAllocated"
    resources: tuple[WeightedResource, ...] = ()
    """Resources that are not listed have the weight 1."""


class Cache(Struct, frozen=True):
    """Details of the reservations."""

    foreignPodsDetect: str = "All"
    """The pods of other schedulers that count: All, None, or OnlyExclusiveResources."""
    resyncMethod: str = "Autodetect"
    """The pods that fingerprints include: All, OnlyExclusiveResources, or Autodetect (as each report says)."""
    informerMode: str = "Dedicated"
    """Accepted for compatibility: there is one watch of pods."""
    resyncScope: str = "All"
    """All: the attributes of a report apply at once; OnlyResources: with its amounts."""


class NodeResourceTopologyMatchArgs(Struct, frozen=True):
    """The arguments, named as in kubernetes-sigs/scheduler-plugins."""

    scoringStrategy: ScoringStrategy = ScoringStrategy()
    cacheResyncPeriodSeconds: int = 0
    """If positive, pods count until a report includes them. Each change applies at once, whatever the period."""
    discardReservedNodes: bool = False
    """Refuse a node while a pod is being bound to it; replaces reservations."""
    cache: Cache = Cache()
    preemptionMode: str = "Disabled"
    """Accepted for compatibility: reports do not say which zone a victim would free, so preemption does not help."""

    def __post_init__(self) -> None:
        """Raise ValueError for a value that does not exist."""
        strategies = (*scoring.STRATEGIES, scoring.LEAST_ZONES)
        for field, value, valid, kind in (
            ("scoringStrategy.type", self.scoringStrategy.type, strategies, "invalid ScoringStrategyType"),
            ("preemptionMode", self.preemptionMode, ("Disabled", "Enabled"), "invalid PreemptionMode"),
            ("cache.foreignPodsDetect", self.cache.foreignPodsDetect, tuple(Foreign), ""),
            ("cache.resyncMethod", self.cache.resyncMethod, tuple(_RESYNC), ""),
            ("cache.informerMode", self.cache.informerMode, ("Dedicated", "Shared"), ""),
            ("cache.resyncScope", self.cache.resyncScope, ("All", "OnlyResources"), ""),
        ):
            if value not in valid:
                details = kind or f"must be one of {', '.join(valid)}"
                raise ValueError(f'{field}: Invalid value: "{value}": {details}')


class NodeResourceTopologyMatch(
    PreFilter[None],
    FilterRows[None],
    ScoreRows[None],
    Reserve[None],
    PostBind[None],
    Requeues,
    Signs,
):
    """Refuses nodes whose kubelet would not align a pod with NUMA zones, and scores how well the pod fits."""

    name = "NodeResourceTopologyMatch"
    watches = (NodeResourceTopology,)
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: NodeResourceTopologyMatchArgs, handle: Handle) -> None:
        self._strategy = scoring.STRATEGIES.get(args.scoringStrategy.type)
        """None: the number of zones counts."""
        self._weights = {resource.name: resource.weight for resource in args.scoringStrategy.resources}
        self._columns = handle.node_columns(default=ABSENT)
        self._reported: dict[str, tuple[NodeResourceTopology, Mapping[Hashable, int]]] = {}
        """By node, the numbers of the report that was believed last."""
        self._largest = 0
        """The number of zones of the largest node."""
        self._discards = args.discardReservedNodes
        self._binding: dict[str, set[str]] = {}
        """By node, the pods that are being bound, if nodes with such pods are refused."""
        self._topologies = handle.objects(NodeResourceTopology, read_in_cycle=False)
        self._reservations: Reservations | None = None
        if args.cacheResyncPeriodSeconds > 0 and not args.discardReservedNodes:
            self._reservations = Reservations(
                handle,
                self._topologies,
                foreign=Foreign(args.cache.foreignPodsDetect),
                only_exclusive=_RESYNC[args.cache.resyncMethod],
                attributes_at_once=args.cache.resyncScope == "All",
            )
            self._reservations.follow(self._write)
        else:
            self._topologies.on_change(lambda node, _: self._write(node))

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.ASSIGNED_POD, Action.DELETE),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
            on(NodeResourceTopology, Action.ADD | Action.UPDATE),
        ]

    def sign(self, pod: PodInfo) -> Hashable:
        return signature_of(pod.pod)

    def pre_filter(self, pod: PodInfo) -> Skip | None:
        return SKIP if demand_of(signature_of(pod.pod)).ignored else None

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        # Profiles may enable Filter without PreFilter.
        demand = demand_of(signature_of(pod.pod))
        if demand.ignored:
            return None
        columns, numbers = self._columns, _numbers(view, rows)
        policy, scope, unreliable = columns.stack(_NODE_KEYS, view, rows)
        kinds: IntArray = (unreliable == 1) * _UNRELIABLE
        aligning = (policy > Policy.LENIENT) & (kinds == 0)
        for one, problems in (
            (Scope.POD, alignment.problems_of_pod),
            (Scope.CONTAINER, alignment.problems_of_containers),
        ):
            some = np.flatnonzero(aligning & (scope == one))
            if len(some):
                kinds[some] = problems(Zones(columns, view, numbers[some], self._largest, policy[some]), demand)
        return Rejections(kinds, _rejection) if kinds.any() else None

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        columns, numbers = self._columns, _numbers(view, rows)
        demand = demand_of(signature_of(pod.pod))
        if not demand.guaranteed:
            return np.full(len(numbers), MAX_SCORE)
        policy, scope, unreliable = columns.stack(_NODE_KEYS, view, rows)
        scored = (policy == Policy.SINGLE_ZONE if self._strategy else policy >= 0) & (unreliable < 1)
        scores = np.zeros(len(numbers), np.int64)
        for one in Scope:
            some, pod_scope = np.flatnonzero(scored & (scope == one)), one is Scope.POD
            if not len(some):
                continue
            zones = Zones(columns, view, numbers[some], self._largest)
            if self._strategy is None:
                scores[some] = scoring.scores_by_zones_needed(zones, demand, pod=pod_scope)
            else:
                scores[some] = scoring.scores_by_strategy(zones, demand, self._strategy, self._weights, pod=pod_scope)
        return scores

    def reserve(self, state: None, pod: PodInfo, node: str) -> None:
        if self._reservations is not None:
            self._reservations.placed(pod, node)
            return
        if self._discards:
            self._binding.setdefault(node, set()).add(pod.uid)
        self._write(node, self._discards)

    def unreserve(self, state: None, pod: PodInfo, node: str) -> None:
        self._end_binding(pod, node)

    def post_bind(self, state: None, pod: PodInfo, node: str) -> None:
        self._end_binding(pod, node)

    def _end_binding(self, pod: PodInfo, node: str) -> None:
        binding = self._binding.get(node)
        if binding is not None:
            binding.discard(pod.uid)
            if not binding:
                del self._binding[node]
        self._write(node, self._discards)

    def _write(self, node: str, changed: bool = True) -> None:
        """Write the numbers of a node; the same ones declare that results have not changed."""
        if not changed:
            self._columns.set(node, self._columns.values_of(node))
            return
        if self._reservations is None:
            report, reserved = self._topologies.get(node), dict[str, int]()
        else:
            report, reserved = self._reservations.report(node), self._reservations.reserved(node)
        if report is None:
            self._reported.pop(node, None)
        values = {} if report is None else dict(self._numbers_of(node, report))
        for name, amount in reserved.items():
            for zone in range(self._largest):
                key = ("free", zone, name)
                if key in values:
                    values[key] = max(values[key] - amount, 0)
        if node in self._binding:
            values["unreliable"] = 1
        self._columns.set(node, values)

    def _numbers_of(self, node: str, report: NodeResourceTopology) -> Mapping[Hashable, int]:
        """Return the numbers of a report by the keys of the columns."""
        found = self._reported.get(node)
        if found is not None and found[0] is report:
            return found[1]
        known = node_zones(report)
        self._largest = max(self._largest, len(known.zones))
        values: dict[Hashable, int] = {"policy": known.policy, "scope": known.scope, "unreliable": 0}
        values["max zones"] = known.max_zones
        ids = [zone.id for zone in known.zones]
        for number, zone in enumerate(known.zones):
            values["exists", number, ""] = 1
            for name, available in zone.available.items():
                values["free", number, name] = available
                values["total", number, name] = zone.allocatable[name]
            values |= {("distance", number, ids.index(to)): cost for to, cost in zone.costs.items() if to in ids}
        self._reported[node] = report, values
        return values


def _numbers(view: NodeView, rows: Rows) -> IntArray:
    """Return rows as numbers."""
    return np.arange(view.size)[rows] if isinstance(rows, slice) else rows


def _rejection(kind: int) -> Rejection:
    return unschedulable(_REASONS[kind])
