"""CapacityScheduling: namespaces borrow what other namespaces have reserved, and give it back by preemption.

An ElasticQuota of scheduling.x-k8s.io reserves `min` for its namespace, and limits it to `max`:

- PreFilter rejects a pod with which its namespace would exceed `max`, or all namespaces with a quota together the sum
  of all `min`. A namespace may thus use more than its own `min` as long as others use less: it borrows.
- PostFilter evicts pods. If the pod is within the `min` of its namespace, these are pods of namespaces that borrow;
  otherwise, pods of lower priority in its own namespace.
- The status of a quota shows what its namespace uses.

Pods of namespaces without a quota are not limited, and preempt only one another.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kubestow.plugin import (
    SKIP,
    Action,
    Candidates,
    CustomObject,
    FailedEvaluation,
    Handle,
    PodInfo,
    PostFilter,
    PostFilterResult,
    Preemption,
    PreFilter,
    RawQuantity,
    Registration,
    Rejection,
    Reserve,
    Resource,
    Skip,
    Timer,
    custom_resource,
    format_quantities,
    on,
    parse_quantities,
    unresolvable,
    unschedulable,
    watch,
)

STATUS_DELAY_SECONDS = 1.0
"""The time in which changes of the use of a quota are collected before its status is written."""
STATUS_CHECK_SECONDS = 30.0
"""The time after a write in which the status must show it. It does not if this replica was not the leader."""
_ALWAYS_COMPARED = ("cpu", "memory", "ephemeral-storage")
"""A limit that does not list one of these is 0 for it."""
_UNLIMITED = (1 << 63) - 1

Amounts = Mapping[str, int]


class QuotaSpec(Struct, frozen=True):
    min: dict[str, RawQuantity] | None = None
    max: dict[str, RawQuantity] | None = None


class QuotaStatus(Struct, frozen=True):
    used: dict[str, RawQuantity] | None = None


@custom_resource("scheduling.x-k8s.io/v1alpha1", "elasticquotas")
class ElasticQuota(CustomObject, frozen=True):
    """What a namespace is guaranteed, and what it may use at most."""

    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


def _exceeds(amounts: Amounts, limit: Amounts, unlisted: int, added: Amounts | None = None) -> bool:
    """Return whether amounts, with those that are added, exceed a limit.

    Of other resources than CPU, memory and ephemeral storage, only those in `amounts` are compared; one that the limit
    does not list is limited to `unlisted`.
    """
    more = added or {}
    return any(amounts.get(name, 0) + more.get(name, 0) > limit.get(name, 0) for name in _ALWAYS_COMPARED) or any(
        amount + more.get(name, 0) > limit.get(name, unlisted)
        for name, amount in amounts.items()
        if name not in _ALWAYS_COMPARED
    )


class _Quota:
    """The quota of a namespace, and what its pods use."""

    def __init__(self, source: ElasticQuota) -> None:
        self.source = source
        self.problem = ""
        """Why the quota cannot be applied; empty if it can."""
        self.used: Amounts = {}
        self.min: Amounts = {}
        self.max: Amounts | None = None
        try:
            self.min = parse_quantities(source.spec.min or {})
            self.max = None if source.spec.max is None else parse_quantities(source.spec.max)
        except ValueError as error:
            self.problem = str(error)

    @property
    def is_borrowing(self) -> bool:
        return _exceeds(self.used, self.min, 0)


class CapacityScheduling(PreFilter[None], PostFilter, Reserve[None]):
    """Guarantees each namespace the `min` of its ElasticQuota, and lets others use it in the meantime."""

    name = "CapacityScheduling"
    watches = (watch(ElasticQuota, when_unavailable="block", writes=("status",)),)

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle
        self._quotas: dict[str, _Quota] = {}
        """By namespace."""
        self._total_min: Counter[str] = Counter()
        self._total_used: Counter[str] = Counter()
        """The use of all namespaces with a quota."""
        self._unwritten: set[str] = set()
        """The namespaces whose status will be written."""
        self._checks: dict[str, Timer] = {}
        """By namespace, when its status is compared again after a write."""
        self._pods = handle.pods.index_by(lambda pod: pod.namespace)
        self._objects = handle.objects(ElasticQuota)
        self._by_namespace = self._objects.index_by(lambda quota: quota.metadata.namespace)
        self._objects.on_change(lambda key, _: self._set_quota(key.partition("/")[0]))
        self._pods.on_change(self._count)

    def requeue_on(self) -> list[Registration]:
        return [
            on(Resource.ASSIGNED_POD, Action.DELETE, lambda _, old, __: old.metadata.namespace in self._quotas),
            on(ElasticQuota, Action.ALL),
        ]

    # What is used

    def _set_quota(self, namespace: str) -> None:
        """Apply the oldest quota of a namespace: it can have only one."""
        previous = self._quotas.pop(namespace, None)
        if previous is not None:
            self._total_min.subtract(previous.min)
            self._total_used.subtract(previous.used)
        found = self._by_namespace[namespace]
        if not found:
            return
        oldest = min(found, key=lambda one: (one.metadata.creationTimestamp or "", one.metadata.name))
        quota = self._quotas[namespace] = _Quota(oldest)
        self._total_min.update(quota.min)
        self._count(namespace)

    def _count(self, namespace: str) -> None:
        """Count what the pods of a namespace use."""
        quota = self._quotas.get(namespace)
        if quota is None:
            return
        used = dict(self._pods.requested(namespace))
        if used != quota.used:
            self._total_used.subtract(quota.used)
            self._total_used.update(used)
            quota.used = used
        if namespace not in self._unwritten:
            self._unwritten.add(namespace)
            self._handle.call_later(STATUS_DELAY_SECONDS, self._write_status, namespace)

    def _write_status(self, namespace: str) -> None:
        self._unwritten.discard(namespace)
        check = self._checks.pop(namespace, None)
        if check is not None:
            check.cancel()
        quota = self._quotas.get(namespace)
        if quota is None or quota.problem:
            return
        used = {name: quota.used.get(name, 0) for name in {**quota.min, **(quota.max or {}), **quota.used}}
        written = quota.source.status.used or {}
        try:
            is_written = parse_quantities(written) == used
        except ValueError:
            is_written = False
        if not is_written:
            gone = dict.fromkeys(written.keys() - used.keys())
            self._objects.enqueue_patch(quota.source, status={"used": {**format_quantities(used), **gone}})
            self._checks[namespace] = self._handle.call_later(STATUS_CHECK_SECONDS, self._write_status, namespace)

    # What pods may use

    def pre_filter(self, pod: PodInfo) -> Skip | Rejection:
        quota = self._quotas.get(pod.namespace)
        if quota is None:
            return SKIP
        if quota.problem:
            return unresolvable(f"ElasticQuota {pod.namespace}/{quota.source.metadata.name}: {quota.problem}")
        own, total = self._with_nominated(pod)
        if quota.max is not None and _exceeds(own, quota.max, _UNLIMITED, quota.used):
            return unschedulable(
                f"Pod {pod.key} is rejected in PreFilter because ElasticQuota {pod.namespace} is more than Max"
            )
        if _exceeds(self._total_used + total, self._total_min, 0):
            return unschedulable(
                f"Pod {pod.key} is rejected in PreFilter because total ElasticQuota used is more than min"
            )
        return SKIP

    def _with_nominated(self, pod: PodInfo) -> tuple[Counter[str], Counter[str]]:
        """Return the requests of a pod and of the nominated pods that go first: those of its quota, those of all."""
        own = Counter(pod.requests.amounts)
        total = Counter(own)
        for node in self._handle.nominator.nodes:
            for other in self._handle.nominator.nominated_on(node):
                quota = self._quotas.get(other.namespace)
                if quota is None or other.uid == pod.uid:
                    continue
                if other.namespace != pod.namespace:
                    if not quota.is_borrowing:
                        total.update(other.requests.amounts)
                elif other.priority >= pod.priority:
                    own.update(other.requests.amounts)
                    total.update(other.requests.amounts)
        return own, total

    def reserve(self, state: None, pod: PodInfo, node: str) -> None:
        """Do nothing, as the index counts the pod; configurations for scheduler-plugins enable this point."""

    def unreserve(self, state: None, pod: PodInfo, node: str) -> None:
        """Do nothing."""

    # Preemption

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        own, total = self._with_nominated(pod)
        rules = _Rules(pod, self._quotas, own, total + self._total_used, self._total_min)
        preemption = Preemption(
            self.name,
            self._handle,
            candidates=rules.candidates,
            awaits=rules.awaits,
            fits=rules.fits,
            min_candidate_nodes_percentage=100,
        )
        return preemption.run(pod, cycle)


class _Rules:
    """The rules of preemption for one pod."""

    def __init__(
        self, pod: PodInfo, quotas: Mapping[str, _Quota], own: Amounts, total: Amounts, total_min: Amounts
    ) -> None:
        """`own` is what the pod requests, with nominated pods of its quota; `total` is what all would use with it."""
        self._quotas = quotas
        self._quota = quotas.get(pod.namespace)
        self._own, self._total, self._total_min = own, total, total_min
        self._borrows = self._quota is not None and _exceeds(own, self._quota.min, 0, self._quota.used)
        """Whether the namespace would use more than its `min` with the pod."""
        self._borrowers = {namespace for namespace, quota in quotas.items() if quota.is_borrowing}

    def candidates(self, pod: PodInfo, others: Sequence[PodInfo]) -> list[PodInfo]:
        """Return the pods of a node that may be evicted; no more of a namespace than it has borrowed."""
        if self._quota is None or self._borrows:
            return [other for other in others if self._may_evict_by_priority(pod, other)]
        chosen: list[PodInfo] = []
        left: dict[str, Amounts] = {}
        for other in others:
            namespace = other.namespace
            if namespace == pod.namespace or namespace not in self._borrowers:
                continue
            quota = self._quotas[namespace]
            used = left.get(namespace, quota.used)
            if _exceeds(used, quota.min, 0):
                chosen.append(other)
                left[namespace] = _without(used, other.requests.amounts)
        return chosen

    def awaits(self, pod: PodInfo, other: PodInfo) -> bool:
        """Return whether the pod uses what another one frees that is being deleted, and so evicts no more for now."""
        if self._may_evict_by_priority(pod, other):
            return True
        is_limited = self._quota is not None and not self._borrows
        return is_limited and other.namespace != pod.namespace and other.namespace in self._borrowers

    def _may_evict_by_priority(self, pod: PodInfo, other: PodInfo) -> bool:
        competes = other.namespace not in self._quotas if self._quota is None else other.namespace == pod.namespace
        return competes and other.priority < pod.priority

    def fits(self, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> bool:
        """Return whether the quotas allow the pod without the victims."""
        quota = self._quota
        if quota is None:
            return True
        used, total = quota.used, self._total
        for victim in victims:
            if victim.namespace == pod.namespace:
                used = _without(used, victim.requests.amounts)
            total = _without(total, victim.requests.amounts)
        if quota.max is not None and _exceeds(self._own, quota.max, _UNLIMITED, used):
            return False
        return not _exceeds(total, self._total_min, 0)


def _without(amounts: Amounts, taken: Amounts) -> Amounts:
    return {name: amount - taken.get(name, 0) for name, amount in amounts.items()}
