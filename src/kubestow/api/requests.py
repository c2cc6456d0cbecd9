"""What a pod asks of a node: CPU, memory, ephemeral storage and countable resources, as kube-scheduler adds them up.

Containers run together, so their requests add up. Init containers run one after the other before them, so of each
resource the largest need counts; but one with restartPolicy Always (a sidecar) keeps running, and adds to everything
that starts after it. Requests of the pod as a whole replace the sum, and the overhead of its runtime comes on top.

A pod on a node may be in the middle of a resize: until the node has followed, each container holds the largest of what
is wanted, allocated and in use; if the node has refused, what is wanted does not count.

Scoring pretends that a container without a request for CPU or memory wants a little, so that such pods spread.

Sums are exact, in nano-units, and rounded up once at the end.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache

from msgspec.structs import replace

from kubestow.api.label_syntax import key_problems
from kubestow.api.meta import Base, ResourceList
from kubestow.api.pod import Container, ContainerStatus, Pod, PodSpec, ResourceRequirements
from kubestow.api.quantity import INT64_MAX, NANO_PER_MILLI, NANO_PER_UNIT, milli, millis_up, nano, units_up, value

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

NON_ZERO_CPU = 100
"""Thousandths of a CPU that scoring assumes for a container without a request."""
NON_ZERO_MEMORY = 200 * 1024 * 1024

_HUGE_PAGES = "hugepages-"
_NON_ZERO = {CPU: NON_ZERO_CPU * NANO_PER_MILLI, MEMORY: NON_ZERO_MEMORY * NANO_PER_UNIT}

Nanos = dict[str, int]


class PodRequests(Base, frozen=True):
    """What one pod asks for: CPU in thousandths, the rest in whole units."""

    amounts: dict[str, int]
    """By resource; what is not asked for is absent."""
    non_zero_cpu: int
    """What scoring counts, with something for every container that asks for none."""
    non_zero_memory: int


class RequestRules(Base, frozen=True):
    """Which of the feature-gated parts of a pod count."""

    status: bool = True
    """Allocated and used amounts in the status, which in-place resize leaves there."""
    pod_level: bool = True
    """Requests of the pod as a whole."""
    pod_level_status: bool = True
    """In-place resize of those."""


ON_NODE = RequestRules()
"""For a pod that takes up room on a node."""
TO_SCORE = RequestRules(status=False, pod_level=False)
"""For a pod whose fit is scored: kube-scheduler leaves the requests of the pod as a whole out there."""


def pod_requests(pod: Pod, rules: RequestRules = ON_NODE) -> PodRequests:
    """What a pod asks for; raises QuantityError for amounts that are none."""
    spec = pod.spec
    if (
        len(spec.containers) == 1
        and not spec.initContainers
        and not spec.overhead
        and spec.resources is None
        and not (rules.status and pod.status.containerStatuses)
    ):
        return _requests_of_one(spec.containers[0].resources.requests)
    return _requests_of_many(pod, rules)


@lru_cache(maxsize=1024)
def is_scalar_resource(resource: str) -> bool:
    """Whether a resource is one that is merely counted: extended, huge pages, attachable volumes, kubernetes.io/…"""
    if resource.startswith((_HUGE_PAGES, "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return is_extended_resource(resource)


@lru_cache(maxsize=1024)
def is_extended_resource(resource: str) -> bool:
    """Whether a resource is one that Kubernetes knows nothing about, such as example.com/gpu."""
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return not key_problems(f"requests.{resource}")


@lru_cache(maxsize=1024)
def _is_counted(resource: str) -> bool:
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(resource)


def resource_amounts(resources: ResourceList) -> dict[str, int]:
    """A list of resources, such as a node's allocatable, in the units of `PodRequests`; `pods` included."""
    return {
        name: milli(raw) if name == CPU else value(raw)
        for name, raw in resources.items()
        if _is_counted(name) or name == PODS
    }


def requests_signature(pod: Pod) -> Hashable | None:
    """Equal for pods that ask for the same in the same words; None for a pod whose status counts as well."""
    spec = pod.spec
    if holds_by_status(pod):
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
    """Whether two pods are the same but for what their containers ask for."""
    if len(one.containers) != len(other.containers):
        return False
    pairs = zip(one.containers, other.containers, strict=True)
    containers = tuple([replace(own, resources=its.resources) for own, its in pairs])
    return replace(one, containers=containers) == other


def rules_make_no_difference(pod: Pod) -> bool:
    """Whether a pod asks for the same by any rules."""
    return pod.spec.resources is None and not holds_by_status(pod)


def holds_by_status(pod: Pod) -> bool:
    """Whether its status may say that a pod holds other amounts than it asks for."""
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
    spec, status = pod.spec, pod.status
    statuses: dict[str, ContainerStatus] = {}
    if rules.status:
        statuses = {s.name: s for s in (*status.containerStatuses, *status.initContainerStatuses) if s.resources}
    refused = bool(statuses or status.resources) and resize_is_infeasible(pod)
    containers = [_held(c, statuses, refused) for c in spec.containers]
    inits = [(_held(c, statuses if is_sidecar(c) else {}, refused), is_sidecar(c)) for c in spec.initContainers]
    of_pod = _pod_level(pod, rules, refused)
    overhead = _nanos(spec.overhead)

    def total(assumed: Mapping[str, int]) -> Nanos:
        needed = _add_up(containers, inits, assumed)
        needed.update(of_pod)
        _add(needed, overhead)
        return needed

    asked = total({})
    # With requests of its own the pod as a whole has a size; only a resource that nobody mentions is assumed.
    non_zero = total({name: amount for name, amount in _NON_ZERO.items() if not of_pod or name not in asked})
    return PodRequests(
        {name: _rounded(name, amount) for name, amount in asked.items() if _is_counted(name)},
        _rounded(CPU, non_zero.get(CPU, 0)),
        _rounded(MEMORY, non_zero.get(MEMORY, 0)),
    )


def declared_requests(pod: Pod) -> Nanos:
    """What the pod's spec asks for, of every resource it names, whatever its status says; raises QuantityError."""
    return _declared(pod, lambda resources: resources.requests)


def declared_limits(pod: Pod) -> Nanos:
    """What the pod's spec is limited to, as `declared_requests`; overhead adds only to what is limited."""
    return _declared(pod, lambda resources: resources.limits, only_present=True)


def _declared(pod: Pod, field: Callable[[ResourceRequirements], ResourceList], *, only_present: bool = False) -> Nanos:
    spec = pod.spec
    inits = [(_nanos(field(c.resources)), is_sidecar(c)) for c in spec.initContainers]
    total = _add_up([_nanos(field(c.resources)) for c in spec.containers], inits, {})
    if spec.resources is not None:
        total.update(_of_whole_pod(field(spec.resources)))
    overhead = _nanos(spec.overhead)
    _add(total, {name: amount for name, amount in overhead.items() if not only_present or total.get(name)})
    return total


def is_sidecar(container: Container) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.restartPolicy == "Always"


def resize_is_infeasible(pod: Pod) -> bool:
    """Whether the node has refused the resize that the pod waits for."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _add_up(containers: Iterable[Nanos], inits: Iterable[tuple[Nanos, bool]], assumed: Mapping[str, int]) -> Nanos:
    """The most that the containers need at any moment; `assumed` stands in for requests a container does not make."""
    needed: Nanos = {}
    for held in containers:
        _add(needed, {**assumed, **held} if assumed else held)
    sidecars: Nanos = {}
    starting: Nanos = {}
    for held, sidecar in inits:
        wanted = {**assumed, **held}
        if sidecar:
            _add(needed, wanted)
            _add(sidecars, wanted)
            wanted = sidecars
        else:
            _add(wanted, sidecars)
        _raise_to(starting, wanted)
    _raise_to(needed, starting)
    return needed


def _held(container: Container, statuses: Mapping[str, ContainerStatus], refused: bool) -> Nanos:
    """What a container holds on its node, or wants if it is on none."""
    status = statuses.get(container.name)
    wanted = _nanos(container.resources.requests)
    if status is None or status.resources is None:
        return wanted
    return _largest(wanted, status.resources.requests, status.allocatedResources, refused)


def _pod_level(pod: Pod, rules: RequestRules, refused: bool) -> Nanos:
    """The requests of the pod as a whole."""
    if not rules.pod_level or pod.spec.resources is None:
        return {}
    wanted = _of_whole_pod(pod.spec.resources.requests)
    used = pod.status.resources
    if used is None or not rules.status or not rules.pod_level_status:
        return wanted
    held = _largest(wanted, used.requests, pod.status.allocatedResources, refused)
    return {name: held.get(name, 0) for name in wanted}


def _of_whole_pod(resources: ResourceList) -> Nanos:
    """Those resources that a pod as a whole can have."""
    return {name: nano(raw) for name, raw in resources.items() if name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES)}


def _largest(wanted: Nanos, used: ResourceList, allocated: ResourceList | None, refused: bool) -> Nanos:
    largest = {} if refused else wanted.copy()
    _raise_to(largest, _nanos(used))
    _raise_to(largest, _nanos(allocated or {}))
    return largest


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
