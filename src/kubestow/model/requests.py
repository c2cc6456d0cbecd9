"""What a pod asks for: resources of a node as kube-scheduler adds them up, host ports, images, and its priority.

Containers run together, so their requests add up. Init containers run one after the other before them, so of each
resource the largest need counts; but one with restartPolicy Always (a sidecar) keeps running, and adds to everything
that starts after it. Requests of the pod as a whole replace the sum, and the overhead of its runtime comes on top.

A pod on a node may be in the middle of a resize: until the node has followed, each container holds the largest of what
is wanted, allocated and in use; if the node has refused, what is wanted does not count.

Scoring pretends that a container without a request for CPU or memory wants a little, so that such pods spread.

Sums are exact, in nano-units, and rounded up once at the end.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from kubestow.model.label_syntax import key_problems
from kubestow.model.meta import Base, ResourceList
from kubestow.model.pod import POD_FAILED, POD_SUCCEEDED, Container, ContainerStatus, Pod
from kubestow.model.quantity import INT64_MAX, NANO_PER_MILLI, NANO_PER_UNIT, milli, millis_up, nano, units_up, value
from kubestow.model.timestamps import parse_time

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

NON_ZERO_CPU = 100
"""Thousandths of a CPU that scoring assumes for a container without a request."""
NON_ZERO_MEMORY = 200 * 1024 * 1024

ANY_IP = "0.0.0.0"  # noqa: S104 - the API's word for every address of a node; nothing is bound here
PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
PREEMPT_NEVER = "Never"

_HUGE_PAGES = "hugepages-"
_NON_ZERO = {CPU: NON_ZERO_CPU * NANO_PER_MILLI, MEMORY: NON_ZERO_MEMORY * NANO_PER_UNIT}

Nanos = dict[str, int]


class PodRequests(Base, frozen=True):
    """What one pod asks for: CPU in thousandths, the rest in whole units."""

    amounts: dict[str, int]
    """By resource; what is not asked for is absent."""
    non_zero_cpu: int
    """What scoring counts for the pod once it is on a node."""
    non_zero_memory: int
    scored_cpu: int
    """What scoring counts while the pod is being placed: differs only where pod-level requests leave CPU out."""
    scored_memory: int


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
TO_SCHEDULE = RequestRules(status=False)
"""For a pod that looks for room: what it wants is all there is to know."""


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
    is_extended = "/" in resource and not resource.startswith("requests.")
    return is_extended and not key_problems(f"requests.{resource}")


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


class HostPort(NamedTuple):
    """A port of a node, on one of its addresses or on all of them."""

    ip: str
    protocol: str
    port: int

    def conflicts_with(self, other: "HostPort") -> bool:
        """Whether the two cannot be taken on the same node."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.ip == other.ip or ANY_IP in (self.ip, other.ip))
        )


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of a pod for as long as it runs: those of sidecars, then those of containers."""
    spec = pod.spec
    containers = spec.containers
    if spec.initContainers:
        containers = (*filter(is_sidecar, spec.initContainers), *containers)
    return tuple(
        HostPort(port.hostIP or ANY_IP, port.protocol or "TCP", port.hostPort)
        for container in containers
        for port in container.ports
        if port.hostPort > 0
    )


def normalized_image_name(name: str) -> str:
    """The name with its tag; an image without one is the latest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def pod_priority(pod: Pod) -> int:
    """The pod's priority; 0 where none was given."""
    return pod.spec.priority or 0


def preemption_policy(pod: Pod) -> str:
    """PREEMPT_NEVER for a pod that must not displace others."""
    return PREEMPT_NEVER if pod.spec.preemptionPolicy == PREEMPT_NEVER else PREEMPT_LOWER_PRIORITY


def pod_start_time(pod: Pod, now: float) -> float:
    """Since when the pod runs, in seconds since the epoch; a pod that has not started counts as starting now."""
    return now if pod.status.startTime is None else parse_time(pod.status.startTime)


def pod_is_terminal(pod: Pod) -> bool:
    """Whether the pod has run to its end, so that it takes up no room."""
    return pod.status.phase in (POD_SUCCEEDED, POD_FAILED)


def _requests_of_one(requests: ResourceList) -> PodRequests:
    amounts = {}
    for name, raw in requests.items():
        if name == CPU:
            amounts[name] = milli(raw)
        elif _is_counted(name):
            amounts[name] = value(raw)
    cpu = amounts.get(CPU, NON_ZERO_CPU)
    memory = amounts.get(MEMORY, NON_ZERO_MEMORY)
    return PodRequests(amounts, cpu, memory, cpu, memory)


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
    scored = total(_NON_ZERO)
    non_zero = total({name: amount for name, amount in _NON_ZERO.items() if name not in asked}) if of_pod else scored
    return PodRequests(
        {name: _rounded(name, amount) for name, amount in asked.items() if _is_counted(name)},
        _rounded(CPU, non_zero.get(CPU, 0)),
        _rounded(MEMORY, non_zero.get(MEMORY, 0)),
        _rounded(CPU, scored.get(CPU, 0)),
        _rounded(MEMORY, scored.get(MEMORY, 0)),
    )


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
    wanted = {
        name: nano(raw)
        for name, raw in pod.spec.resources.requests.items()
        if name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES)
    }
    used = pod.status.resources
    if used is None or not rules.status or not rules.pod_level_status:
        return wanted
    held = _largest(wanted, used.requests, pod.status.allocatedResources, refused)
    return {name: held.get(name, 0) for name in wanted}


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
