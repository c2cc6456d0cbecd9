"""The resource requests of a pod: CPU, memory, ephemeral storage and scalar resources, summed like kube-scheduler does.

Containers run at the same time, so their requests are added. Init containers run one after the other before them, so
the largest request of each resource counts; but one with restartPolicy Always (a sidecar) keeps running, and its
requests are added to all that starts after it. Pod-level requests replace the sum; the pod's overhead is added to it.

A pod on a node may be in the middle of a resize: until it is complete, the pod holds the largest of its requested,
allocated and used amounts, each summed over all containers; if the resize is infeasible, its requests do not count.
The node may report allocated and used amounts of the whole pod; they replace those of its containers.

Scoring assumes small requests for a container without a request for CPU or memory, so that such pods spread.

Sums are exact, in nano-units, and rounded up once at the end.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache

from msgspec.structs import replace

from kubestow.api.meta import Base, RawQuantity, ResourceList
from kubestow.api.name_formats import key_problems
from kubestow.api.pod import Container, Pod, PodSpec, ResourceRequirements
from kubestow.api.quantity import INT64_MAX, NANO_PER_MILLI, NANO_PER_UNIT, milli, millis_up, nano, units_up, value

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

NON_ZERO_CPU = 100
"""CPU in thousandths that scoring assumes for a container without a request."""
NON_ZERO_MEMORY = 200 * 1024 * 1024

_HUGE_PAGES = "hugepages-"
_NON_ZERO = {CPU: NON_ZERO_CPU * NANO_PER_MILLI, MEMORY: NON_ZERO_MEMORY * NANO_PER_UNIT}

Nanos = dict[str, int]
_AmountsOf = Callable[[Container], ResourceList]


class PodRequests(Base, frozen=True):
    """The requests of a pod: CPU in thousandths, all others in whole units."""

    amounts: dict[str, int]
    """The amount of each requested resource."""
    non_zero_cpu: int
    """The CPU for scoring, which includes an assumed amount for each container without a request."""
    non_zero_memory: int


class RequestRules(Base, frozen=True):
    """The feature-gated fields of a pod that count."""

    status: bool = True
    """Allocated and used amounts in the status, written by in-place resize."""
    pod_level: bool = True
    """Pod-level requests."""
    pod_level_status: bool = True
    """In-place resize of pod-level requests."""


ON_NODE = RequestRules()
"""Rules for the resources that a pod holds on a node."""
TO_SCORE = RequestRules(status=False, pod_level=False)
"""Rules for scoring the fit of a pod, where kube-scheduler ignores pod-level requests."""


def pod_requests(pod: Pod, rules: RequestRules = ON_NODE) -> PodRequests:
    """Return the requests of a pod. Raises QuantityError for an invalid amount."""
    spec = pod.spec
    if (
        len(spec.containers) == 1
        and not spec.initContainers
        and not spec.overhead
        and spec.resources is None
        and not (rules.status and has_status_resources(pod))
    ):
        return _requests_of_one(spec.containers[0].resources.requests)
    return _requests_of_many(pod, rules)


@lru_cache(maxsize=1024)
def is_scalar_resource(resource: str) -> bool:
    """Return whether a resource is a scalar resource: extended, huge pages, attachable volumes, kubernetes.io/…"""
    if resource.startswith((_HUGE_PAGES, "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return is_extended_resource(resource)


@lru_cache(maxsize=1024)
def is_extended_resource(resource: str) -> bool:
    """Return whether a resource is not defined by Kubernetes, such as example.com/gpu."""
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return not key_problems(f"requests.{resource}")


@lru_cache(maxsize=1024)
def _is_counted(resource: str) -> bool:
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(resource)


def resource_amounts(resources: ResourceList) -> dict[str, int]:
    """Convert a resource list, such as a node's allocatable, to the units of `PodRequests`; `pods` included."""
    return {
        name: milli(raw) if name == CPU else value(raw)
        for name, raw in resources.items()
        if _is_counted(name) or name == PODS
    }


def parse_quantities(resources: Mapping[str, RawQuantity]) -> dict[str, int]:
    """Convert quantities to the units of `pod.requests.amounts`: thousandths of a CPU, whole units of everything else.

    Raises ValueError for text that is not a quantity.
    """
    return {name: milli(raw) if name == CPU else value(raw) for name, raw in resources.items()}


def format_quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Convert amounts in the units of `pod.requests.amounts` to quantities."""
    cpu = amounts.get(CPU, 0)
    return {name: str(amount) for name, amount in amounts.items()} | (
        {CPU: f"{cpu}m" if cpu % 1000 else str(cpu // 1000)} if CPU in amounts else {}
    )


def requests_signature(pod: Pod) -> Hashable | None:
    """Return a value that is equal for pods with equally written requests; None for a pod whose status counts, too."""
    spec = pod.spec
    if has_status_resources(pod):
        return None
    if len(spec.containers) == 1 and not spec.initContainers and not spec.overhead and spec.resources is None:
        return tuple(spec.containers[0].resources.requests.items())
    containers = tuple([tuple(container.resources.requests.items()) for container in spec.containers])
    return (
        containers,
        tuple((is_sidecar(init), tuple(init.resources.requests.items())) for init in spec.initContainers),
        tuple(spec.overhead.items()),
        None if spec.resources is None else tuple(spec.resources.requests.items()),
    )


def differ_in_requests(one: PodSpec, other: PodSpec) -> bool:
    """Return whether two pods are equal except for the resources of their containers."""
    if len(one.containers) != len(other.containers):
        return False
    pairs = zip(one.containers, other.containers, strict=True)
    containers = tuple([replace(own, resources=its.resources) for own, its in pairs])
    return replace(one, containers=containers) == other


def requests_ignore_rules(pod: Pod) -> bool:
    """Return whether the requests of a pod are the same for all `RequestRules`."""
    return pod.spec.resources is None and not has_status_resources(pod)


def has_status_resources(pod: Pod) -> bool:
    """Return whether the status of a pod may contain other amounts than its spec, as during an in-place resize."""
    status = pod.status
    return bool(status.containerStatuses or status.initContainerStatuses) or status.resources is not None


def _requests_of_one(requests: ResourceList) -> PodRequests:
    amounts = {}
    for name, raw in requests.items():
        if name == CPU:
            amounts[name] = milli(raw)
        elif _is_counted(name):
            amounts[name] = value(raw)
    cpu = amounts.get(CPU, NON_ZERO_CPU)
    memory = amounts.get(MEMORY, NON_ZERO_MEMORY)
    return PodRequests(amounts, cpu, memory)


def _requests_of_many(pod: Pod, rules: RequestRules) -> PodRequests:
    held = _Held(pod, rules)
    overhead = _nanos(pod.spec.overhead)

    def total(assumed: Mapping[str, int]) -> Nanos:
        needed: Nanos = {}
        for amounts_of in held.by_container:
            _raise_to(needed, _add_up(pod.spec, amounts_of, assumed))
        for amounts in held.by_pod:
            _raise_to(needed, amounts)
        needed.update(held.pod_level)
        _add(needed, overhead)
        return needed

    requested = total({})
    # With pod-level requests, an amount is assumed only for a resource that no container requests either.
    non_zero = total(
        {name: amount for name, amount in _NON_ZERO.items() if not held.has_pod_level or name not in requested}
    )
    return PodRequests(
        {name: _rounded(name, amount) for name, amount in requested.items() if _is_counted(name)},
        _rounded(CPU, non_zero.get(CPU, 0)),
        _rounded(MEMORY, non_zero.get(MEMORY, 0)),
    )


class _Held:
    """What a pod holds: the largest of several amounts, unless there are pod-level requests."""

    def __init__(self, pod: Pod, rules: RequestRules) -> None:
        spec, status = pod.spec, pod.status
        used_by_pod = status.resources if rules.status and rules.pod_level_status else None
        from_status = rules.status and has_status_resources(pod)
        infeasible = from_status and resize_is_infeasible(pod)
        self.by_container: list[_AmountsOf] = [] if infeasible else [_requests]
        self.by_pod: list[Nanos] = []
        """Amounts that the node reports for all containers together."""
        if used_by_pod is not None and used_by_pod.requests and status.allocatedResources:
            self.by_pod += _nanos(status.allocatedResources), _nanos(used_by_pod.requests)
        elif from_status:
            self.by_container += _reported(pod, infeasible)
        self.pod_level: Nanos = {}
        """Amounts that replace the sums of the containers."""
        requested = {} if spec.resources is None or not rules.pod_level else _of_whole_pod(spec.resources.requests)
        self.has_pod_level = bool(requested)
        if requested:
            self.pod_level = {} if used_by_pod is not None and infeasible else requested
            if used_by_pod is not None:
                _raise_to(self.pod_level, _of_whole_pod(used_by_pod.requests))
                _raise_to(self.pod_level, _of_whole_pod(status.allocatedResources or {}))


def _requests(container: Container) -> ResourceList:
    return container.resources.requests


def _reported(pod: Pod, infeasible: bool) -> list[_AmountsOf]:
    """Return the allocated and the used amounts of containers, if the node reports others than the requested ones."""
    statuses = {s.name: s for s in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)}

    def allocated(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        if status is not None and status.allocatedResources:
            return status.allocatedResources
        return {} if infeasible else container.resources.requests

    def used(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        if status is not None and status.resources is not None and status.resources.requests:
            return status.resources.requests
        return allocated(container)

    containers = (*pod.spec.initContainers, *pod.spec.containers)
    return [
        amounts_of
        for amounts_of in (allocated, used)
        if infeasible or any(amounts_of(container) != container.resources.requests for container in containers)
    ]


def declared_requests(pod: Pod) -> Nanos:
    """Return the requests in the pod's spec, for all resources, independent of its status. Raises QuantityError."""
    return _declared(pod, lambda resources: resources.requests)


def declared_limits(pod: Pod) -> Nanos:
    """Return the limits in the pod's spec, like `declared_requests`; overhead is added to limited resources only."""
    return _declared(pod, lambda resources: resources.limits, only_present=True)


def _declared(pod: Pod, field: Callable[[ResourceRequirements], ResourceList], *, only_present: bool = False) -> Nanos:
    spec = pod.spec
    total = _add_up(spec, lambda container: field(container.resources), {})
    if spec.resources is not None:
        total.update(_of_whole_pod(field(spec.resources)))
    overhead = _nanos(spec.overhead)
    _add(total, {name: amount for name, amount in overhead.items() if not only_present or total.get(name)})
    return total


def is_sidecar(container: Container) -> bool:
    """Return whether an init container keeps running alongside the others."""
    return container.restartPolicy == "Always"


def resize_is_infeasible(pod: Pod) -> bool:
    """Return whether the node has reported the pending resize of the pod as infeasible."""
    return _why_resize_is_pending(pod) == "Infeasible"


def resize_is_deferred(pod: Pod) -> bool:
    """Return whether the node has no capacity yet for the pending resize of the pod."""
    return _why_resize_is_pending(pod) == "Deferred"


def _why_resize_is_pending(pod: Pod) -> str:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason
    return ""


def _add_up(spec: PodSpec, amounts_of: _AmountsOf, assumed: Mapping[str, int]) -> Nanos:
    """Return the maximum that the containers need at any time; `assumed` fills in amounts that a container lacks."""
    needed: Nanos = {}
    for container in spec.containers:
        _add(needed, {**assumed, **_nanos(amounts_of(container))})
    sidecars: Nanos = {}
    starting: Nanos = {}
    for container in spec.initContainers:
        amounts = {**assumed, **_nanos(amounts_of(container))}
        if is_sidecar(container):
            _add(needed, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            _add(amounts, sidecars)
        _raise_to(starting, amounts)
    _raise_to(needed, starting)
    return needed


def _of_whole_pod(resources: ResourceList) -> Nanos:
    """Return the amounts of the resources that are supported at pod level."""
    return {name: nano(raw) for name, raw in resources.items() if name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES)}


def _nanos(resources: ResourceList) -> Nanos:
    return {name: nano(raw) for name, raw in resources.items()}


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Nanos, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _rounded(resource: str, amount: int) -> int:
    return min(millis_up(amount) if resource == CPU else units_up(amount), INT64_MAX)
