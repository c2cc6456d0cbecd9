"""Plugins with quotas: they read objects and pods by key, write, and preempt; on public names only."""

from collections.abc import Hashable, Sequence

from msgspec import Struct

from kubestow.plugin import (
    SKIP,
    Action,
    Candidates,
    CustomObject,
    FailedEvaluation,
    Handle,
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
    Resource,
    Skip,
    custom_resource,
    format_quantities,
    on,
    parse_quantities,
    unschedulable,
    watch,
)
from kubestow.plugin.fast import Signs


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
