"""Plugins that read objects, pods by key and columns of their own; written as an author would, on public names only."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import Struct

from kubestow.plugin import (
    SKIP,
    Action,
    Candidates,
    CustomObject,
    FailedEvaluation,
    Handle,
    Permit,
    PodInfo,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    Preemption,
    PreFilter,
    RawQuantity,
    Registration,
    Rejection,
    Reserve,
    Resource,
    Skip,
    Wait,
    WaitingPod,
    custom_resource,
    format_quantities,
    on,
    parse_quantities,
    unresolvable,
    unschedulable,
    watch,
)
from kubestow.plugin.fast import FilterRows, NodeView, Rejections, Rows, Signs


class ZoneResource(Struct, frozen=True):
    name: str
    available: RawQuantity = 0


class Zone(Struct, frozen=True):
    name: str
    resources: tuple[ZoneResource, ...] = ()


@custom_resource("topology.node.k8s.io/v1alpha2", "noderesourcetopologies", namespaced=False)
class NodeResourceTopology(CustomObject, frozen=True):
    zones: tuple[Zone, ...] = ()


Amounts = dict[str, int]


class NumaFit(PreFilter[Amounts], FilterRows[Amounts], Reserve[Amounts | None], Signs):
    """Rejects nodes on which no single zone can hold all requests of the pod."""

    name = "NumaFit"
    watches = (NodeResourceTopology,)

    def __init__(self, args: None, handle: Handle) -> None:
        self._columns = handle.node_columns()
        self._reserved: dict[str, dict[str, Amounts]] = defaultdict(dict)
        self._max_zones = 0
        self._topologies = handle.objects(NodeResourceTopology, read_in_cycle=False)
        self._topologies.on_change(self._on_topology_change)

    def requeue_on(self) -> list[Registration]:
        return [
            on(NodeResourceTopology, Action.ADD | Action.UPDATE, self._zones_changed),
            on(Resource.NODE, Action.ADD),
            on(Resource.ASSIGNED_POD, Action.DELETE),
        ]

    def _zones_changed(self, pod: object, old: NodeResourceTopology | None, new: NodeResourceTopology | None) -> bool:
        return old is None or new is None or old.zones != new.zones

    def _on_topology_change(self, node: str, topology: NodeResourceTopology | None) -> None:
        self._reserved.pop(node, None)
        self._update_columns(node)

    def _update_columns(self, node: str) -> None:
        topology, reserved = self._topologies.get(node), Counter[str]()
        for requests in self._reserved[node].values():
            reserved.update(requests)
        values: dict[Hashable, int] = {}
        for index, zone in enumerate(topology.zones if topology is not None else ()):
            available = parse_quantities({resource.name: resource.available for resource in zone.resources})
            values[index] = 1
            values.update({(index, name): amount - reserved[name] for name, amount in available.items()})
            self._max_zones = max(self._max_zones, index + 1)
        self._columns.set(node, values)

    def sign(self, pod: PodInfo) -> Hashable:
        return frozenset(pod.requests.amounts.items())

    def pre_filter(self, pod: PodInfo) -> Amounts | Skip:
        return dict(pod.requests.amounts) or SKIP

    def filter_rows(self, state: Amounts, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections:
        feasible = self._columns.get(0, view, rows) == 0
        for index in range(self._max_zones):
            zone_fits = self._columns.get(index, view, rows) == 1
            for name, amount in state.items():
                zone_fits &= self._columns.get((index, name), view, rows, default=1 << 62) >= amount
            feasible |= zone_fits
        return Rejections((~feasible).astype(np.int64), lambda _: unschedulable("cannot align pod"))

    def reserve(self, state: Amounts | None, pod: PodInfo, node: str) -> None:
        self._reserved[node][pod.uid] = dict(pod.requests.amounts)
        self._update_columns(node)

    def unreserve(self, state: Amounts | None, pod: PodInfo, node: str) -> None:
        self._reserved[node].pop(pod.uid, None)
        self._update_columns(node)


class QuotaLimits(Struct, frozen=True):
    min: dict[str, RawQuantity] = {}
    max: dict[str, RawQuantity] = {}


class QuotaStatus(Struct, frozen=True):
    used: dict[str, RawQuantity] = {}


@custom_resource("scheduling.x-k8s.io/v1alpha1", "elasticquotas")
class ElasticQuota(CustomObject, frozen=True):
    spec: QuotaLimits = QuotaLimits()
    status: QuotaStatus = QuotaStatus()


class QuotaGuard(PreFilter[None], Signs):
    """Limits the sum of the requests in a namespace."""

    name = "QuotaGuard"
    watches = (watch(ElasticQuota, when_unavailable="block"),)

    def __init__(self, args: None, handle: Handle) -> None:
        self._quotas = handle.objects(ElasticQuota).index_by(lambda quota: quota.metadata.namespace)
        self._pods = handle.pods.index_by(lambda pod: pod.namespace)

    def requeue_on(self) -> list[Registration]:
        return [on(ElasticQuota, Action.ALL), on(Resource.ASSIGNED_POD, Action.DELETE)]

    def sign(self, pod: PodInfo) -> Hashable:
        return pod.namespace, frozenset(pod.requests.amounts.items())

    def pre_filter(self, pod: PodInfo) -> Rejection | Skip:
        used = self._pods.requested(pod.namespace)
        for quota in self._quotas[pod.namespace]:
            for name, limit in parse_quantities(quota.spec.max).items():
                if used.get(name, 0) + pod.requests.amounts.get(name, 0) > limit:
                    return unschedulable(f"max of ElasticQuota {quota.metadata.name} exceeded: {name}")
        return SKIP


class QuotaReporter(PreBind[None], PostBind[None]):
    """Writes the sums of the requests in a namespace to the status of its quotas, and the last pod to an annotation."""

    name = "QuotaReporter"
    watches = (watch(ElasticQuota, writes=("status", "annotations")),)

    def __init__(self, args: None, handle: Handle) -> None:
        self._quotas = handle.objects(ElasticQuota)
        self._by_namespace = self._quotas.index_by(lambda quota: quota.metadata.namespace)
        self._pods = handle.pods.index_by(lambda pod: pod.namespace)

    def pre_bind_needed(self, state: None, pod: PodInfo, node: str) -> bool:
        return True

    async def pre_bind(self, state: None, pod: PodInfo, node: str) -> None:
        for quota in self._by_namespace[pod.namespace]:
            changes = {"metadata": {"annotations": {f"bound-to-{node}": pod.name}}}
            patched = await self._quotas.patch(quota, changes)
            assert patched.metadata.annotations[f"bound-to-{node}"] == pod.name

    def post_bind(self, state: None, pod: PodInfo, node: str) -> None:
        used = format_quantities(self._pods.requested(pod.namespace))
        for quota in self._by_namespace[pod.namespace]:
            self._quotas.enqueue_patch(quota, status={"used": used}, annotations={"last": pod.name, "first": None})


class LateReporter(QuotaReporter):
    """Writes in the background only."""

    name = "LateReporter"

    def pre_bind_needed(self, state: None, pod: PodInfo, node: str) -> bool:
        return False


class Borrowing(PreFilter[None], PostFilter):
    """Lets a namespace use more than the min of its quota while others use less; evicts borrowers when they need it."""

    name = "Borrowing"
    watches = (ElasticQuota,)

    def __init__(self, args: None, handle: Handle) -> None:
        self._quotas = handle.objects(ElasticQuota)
        self._pods = handle.pods.index_by(lambda pod: pod.namespace)
        self._preemption = Preemption(self.name, handle, candidates=self._candidates, fits=self._fits)

    def requeue_on(self) -> list[Registration]:
        return [on(ElasticQuota, Action.ALL), on(Resource.ASSIGNED_POD, Action.DELETE)]

    def _used(self, namespace: str) -> int:
        return self._pods.requested(namespace).get("cpu", 0)

    def _min(self) -> dict[str, int]:
        return {quota.metadata.namespace: parse_quantities(quota.spec.min)["cpu"] for quota in self._quotas}

    def pre_filter(self, pod: PodInfo) -> Rejection | Skip:
        return SKIP if self._fits(pod, "", ()) else unschedulable("the sum of min of all quotas is in use")

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        return self._preemption.run(pod, cycle)

    def _candidates(self, pod: PodInfo, others: Sequence[PodInfo]) -> Sequence[PodInfo]:
        mins = self._min()
        if self._used(pod.namespace) + pod.requests.amounts["cpu"] > mins.get(pod.namespace, 0):
            return [one for one in others if one.namespace == pod.namespace and one.priority < pod.priority]
        return [one for one in others if one.namespace in mins and self._used(one.namespace) > mins[one.namespace]]

    def _fits(self, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> bool:
        mins = self._min()
        used = sum(self._used(namespace) for namespace in mins)
        freed = sum(one.requests.amounts["cpu"] for one in victims if one.namespace in mins)
        return used - freed + pod.requests.amounts["cpu"] <= sum(mins.values())


class GroupSpec(Struct, frozen=True):
    minMember: int = 1


@custom_resource("scheduling.x-k8s.io/v1alpha1", "podgroups")
class PodGroup(CustomObject, frozen=True):
    spec: GroupSpec = GroupSpec()


GroupKey = tuple[str, str]


def group_key(pod: PodInfo) -> GroupKey | None:
    """Return namespace and name of the group of a pod."""
    name = pod.labels.get("scheduling.x-k8s.io/pod-group")
    return (pod.namespace, name) if name else None


class Coscheduling(PreFilter[None], Permit[None], Reserve[None]):
    """Binds the pods of a group together or not at all."""

    name = "Coscheduling"
    watches = (PodGroup,)

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle, self._groups = handle, handle.objects(PodGroup)
        self._members = handle.pods.index_by(group_key)

    def requeue_on(self) -> list[Registration]:
        return [on(PodGroup, Action.ADD | Action.UPDATE)]

    def pre_filter(self, pod: PodInfo) -> Rejection | Skip:
        if (key := group_key(pod)) is None:
            return SKIP
        group = self._groups.get(key[1], namespace=key[0])
        if group is None:
            return unresolvable(f"PodGroup {key[1]} not found")
        ready = [member for member in self._members[key] if not member.pod.spec.schedulingGates]
        return SKIP if len(ready) >= group.spec.minMember else unresolvable(f"PodGroup {key[1]} has too few pods")

    def permit(self, state: None, pod: PodInfo, node: str) -> Wait | None:
        key = group_key(pod)
        if key is None or (group := self._groups.get(key[1], namespace=key[0])) is None:
            return None
        if self._members.assigned_count(key) < group.spec.minMember:
            self._handle.activate([member.pod for member in self._members.unscheduled(key)])
            return Wait(60)
        for waiting in self._waiting_members(key):
            waiting.allow(self.name)
        return None

    def reserve(self, state: None, pod: PodInfo, node: str) -> None:
        """Reserve nothing."""

    def unreserve(self, state: None, pod: PodInfo, node: str) -> None:
        if (key := group_key(pod)) is not None:
            for waiting in self._waiting_members(key):
                waiting.reject(self.name, "another pod of the PodGroup is unschedulable")

    def _waiting_members(self, key: GroupKey) -> list[WaitingPod]:
        return [waiting for waiting in self._handle.waiting_pods if group_key(waiting.pod) == key]
