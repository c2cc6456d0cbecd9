"""Place the pods of an AppGroup where the network to the pods that they depend on costs little.

The kinds are those of the plugin NetworkOverhead of scheduler-plugins: an AppGroup lists the dependencies of each
workload with the highest cost that each tolerates, a NetworkTopology the costs between regions and between zones.
Labels of a pod name its group and workload. A node that violates more dependencies than it satisfies is rejected; a
lower sum of costs scores higher.

Nodes of a zone differ only in the dependencies that they run themselves: the rule is evaluated once per zone, and
NumPy spreads the results over the nodes.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct

from kubestow.plugin import (
    MAX_SCORE,
    SKIP,
    Action,
    CustomObject,
    Handle,
    Pod,
    PodInfo,
    PreFilter,
    Registration,
    Requeues,
    Resource,
    Skip,
    custom_resource,
    on,
    unschedulable,
)
from kubestow.plugin.fast import (
    FilterRows,
    IntArray,
    NodeView,
    NormalizeScore,
    PodsRead,
    Rejections,
    Rows,
    ScoreRows,
    Signs,
)

GROUP = "appgroup.diktyo.x-k8s.io"
WORKLOAD = "appgroup.diktyo.x-k8s.io.workload"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
SAME_ZONE, UNKNOWN = 1, 100  # costs within a zone, and where no cost is known

Place = tuple[str, str]  # region and zone of a node, empty without the label
NOWHERE: Place = ("", "")
Costs = dict[tuple[str, str, str], int]  # by key of the label, origin and destination
Totals = tuple[int, int, int]  # how many dependencies are satisfied and violated, and the sum of their costs


class Workload(Struct, frozen=True):
    selector: str


class Dependency(Struct, frozen=True):
    workload: Workload
    maxNetworkCost: int = 0


class Member(Struct, frozen=True):
    workload: Workload
    dependencies: tuple[Dependency, ...] = ()


class AppGroupSpec(Struct, frozen=True):
    workloads: tuple[Member, ...] = ()


@custom_resource("appgroup.diktyo.x-k8s.io/v1alpha1", "appgroups")
class AppGroup(CustomObject, frozen=True):
    spec: AppGroupSpec = AppGroupSpec()


class Cost(Struct, frozen=True):
    destination: str
    networkCost: int


class Origin(Struct, frozen=True):
    origin: str
    costList: tuple[Cost, ...] = ()


class Level(Struct, frozen=True):
    topologyKey: str
    originList: tuple[Origin, ...] = ()


class Weights(Struct, frozen=True):
    name: str
    topologyList: tuple[Level, ...] = ()


class NetworkTopologySpec(Struct, frozen=True):
    weights: tuple[Weights, ...] = ()


@custom_resource("networktopology.diktyo.x-k8s.io/v1alpha1", "networktopologies")
class NetworkTopology(CustomObject, frozen=True):
    spec: NetworkTopologySpec = NetworkTopologySpec()


@dataclass
class NetworkOverheadArgs:
    namespaces: list[str] = field(default_factory=lambda: ["default"])
    weightsName: str = "UserDefined"
    networkTopologyName: str = "nt-default"


@dataclass
class Needs:
    """The dependencies of a pod: their groups and workloads, and how many are in each place, by tolerated cost."""

    keys: list[tuple[str, str]]
    placed: Counter[tuple[Place, int]]
    costs: Costs
    known: dict[Place, Totals] = field(default_factory=dict)

    def totals(self, here: Place) -> Totals:
        """Return the totals of a node in a place that runs no dependency itself."""
        if here in self.known:
            return self.known[here]
        satisfied = violated = total = 0
        for (there, limit), count in self.placed.items():
            level = 0 if here[0] != there[0] else 1
            cost = self.costs.get(((REGION, ZONE)[level], here[level], there[level]))
            if there == NOWHERE:
                violated, cost = violated + count, None
            elif here == there:
                satisfied, cost = satisfied + count, SAME_ZONE
            elif cost is not None:
                satisfied, violated = satisfied + count * (cost <= limit), violated + count * (cost > limit)
            total += count * (UNKNOWN if cost is None else cost)
        self.known[here] = satisfied, violated, total
        return self.known[here]


class NetworkOverhead(
    PreFilter[Needs], FilterRows[Needs], ScoreRows[Needs | None], NormalizeScore[object], Requeues, Signs
):
    name = "NetworkOverhead"
    watches = (AppGroup, NetworkTopology)
    reads_pods = PodsRead.NOTHING
    normalizes_scores_alone = True

    def __init__(self, args: NetworkOverheadArgs, handle: Handle) -> None:
        def name_of(one: CustomObject) -> str | None:
            return one.metadata.name if one.metadata.namespace in args.namespaces else None

        self._args = args
        self._cluster = handle.cluster
        self._groups = handle.objects(AppGroup).index_by(name_of)
        self._topologies = handle.objects(NetworkTopology).index_by(name_of)
        self._costs: tuple[NetworkTopology | None, Costs] = (None, {})
        self._members = handle.pods.index_by(_key)
        # How many members of groups are on each node, by group and workload.
        self._here = handle.node_columns()
        self._on_node = handle.pods.index_by(_node_of_member, read_in_cycle=False)
        self._on_node.on_change(lambda node: self._here.set(node, Counter(map(_key, self._on_node.assigned(node)))))

    def requeue_on(self) -> list[Registration]:
        return [
            on(AppGroup, Action.ALL),
            on(NetworkTopology, Action.ALL),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE, self._is_in_same_group),
        ]

    def _is_in_same_group(self, waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
        return any(pod and pod.metadata.labels.get(GROUP) == waiting.metadata.labels.get(GROUP) for pod in (old, new))

    def sign(self, pod: PodInfo) -> tuple[()] | None:
        # The results of members depend on the labels of other nodes.
        return None if GROUP in pod.labels else ()

    def pre_filter(self, pod: PodInfo) -> Needs | Skip:
        key = _key(pod)
        if not key:
            return SKIP
        needs = Needs([], Counter(), self._current_costs())
        own = (one for group in self._groups[key[0]] for one in group.spec.workloads if one.workload.selector == key[1])
        for dependency in (dependency for member in own for dependency in member.dependencies):
            needs.keys.append((key[0], dependency.workload.selector))
            for other in self._members.assigned(needs.keys[-1]):
                node = self._cluster.node(other.pod.spec.nodeName)
                if node is not None:
                    place = node.metadata.labels.get(REGION, ""), node.metadata.labels.get(ZONE, "")
                    needs.placed[place, dependency.maxNetworkCost] += 1
        return needs if needs.placed else SKIP

    def _current_costs(self) -> Costs:
        topology = next(iter(self._topologies[self._args.networkTopologyName]), None)
        if topology is not self._costs[0]:
            weights = topology.spec.weights if topology is not None else ()
            levels = [level for one in weights if one.name == self._args.weightsName for level in one.topologyList]
            costs = {
                (level.topologyKey, origin.origin, cost.destination): cost.networkCost
                for level in levels
                for origin in level.originList
                for cost in origin.costList
            }
            self._costs = topology, costs
        return self._costs[1]

    def _totals(self, state: Needs, view: NodeView, rows: Rows) -> tuple[IntArray, IntArray, IntArray]:
        regions, zones = view.label_values(REGION), view.label_values(ZONE)
        places = view.label_ids(REGION)[rows].astype(np.int64) * len(zones) + view.label_ids(ZONE)[rows]
        table = np.zeros((4, len(regions) * len(zones)), dtype=np.int64)
        for number in np.flatnonzero(np.bincount(places)).tolist():
            region, zone = divmod(number, len(zones))
            place = regions[region], zones[zone]
            table[:, number] = *state.totals(place), place == NOWHERE
        own: IntArray = self._here.stack(state.keys, view, rows).sum(axis=0)
        # A dependency on the node itself is satisfied at no cost.
        satisfied, violated, cost, bare = table[:, places]
        return satisfied + own * bare, violated - own * bare, cost - own * np.where(bare, UNKNOWN, SAME_ZONE)

    def filter_rows(self, state: Needs, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections:
        satisfied, violated, _ = self._totals(state, view, rows)
        kinds = np.where(violated > satisfied, (violated << 32) + satisfied + violated, 0)
        text = "network to {} of {} dependencies costs too much"
        return Rejections(kinds, lambda kind: unschedulable(text.format(kind >> 32, kind & 0xFFFFFFFF)))

    def score_rows(self, state: Needs | None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        if state is None:
            return np.zeros_like(view.pod_count[rows])
        return self._totals(state, view, rows)[2]

    def normalize(self, state: object, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray) -> IntArray:
        low, high = int(scores.min()), int(scores.max())
        return MAX_SCORE - (scores - low) * MAX_SCORE // max(high - low, 1) if high else scores


def _key(pod: PodInfo) -> tuple[str, str] | None:
    """Return group and workload of a pod."""
    group = pod.labels.get(GROUP)
    return (group, pod.labels.get(WORKLOAD, "")) if group else None


def _node_of_member(pod: PodInfo) -> str | None:
    return pod.pod.spec.nodeName or None if _key(pod) else None
