"""Requested and allocatable resources per node, kind of node and namespace, in the columns of kube-capacity."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubestow.api.natural_order import natural
from kubestow.api.node import Node
from kubestow.api.pod import Container, Pod, ResourceRequirements
from kubestow.api.priority import pod_is_terminal
from kubestow.api.requests import CPU, MEMORY, pod_requests, resource_amounts
from kubestow.simulator.capacity import node_kind
from kubestow.simulator.results import format_share

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Utilization(NamedTuple):
    """Resources of a node or group. CPU in thousandths of a core, memory in bytes."""

    name: str
    cpu: int
    memory: int
    cpu_requests: int = 0
    cpu_limits: int = 0
    memory_requests: int = 0
    memory_limits: int = 0

    def plus(self, *others: "Utilization") -> "Utilization":
        """Return the sum of all, under this one's name."""
        sums = (sum(values) for values in zip(*(one[1:] for one in (self, *others)), strict=True))
        return Utilization(self.name, *sums)

    def cells(self) -> tuple[str, str, str, str]:
        """Return requests and limits of CPU and memory, with their share of the total."""
        return (
            _cores(self.cpu_requests) + _share(self.cpu_requests, self.cpu),
            _cores(self.cpu_limits) + _share(self.cpu_limits, self.cpu),
            _bytes(self.memory_requests) + _share(self.memory_requests, self.memory),
            _bytes(self.memory_limits) + _share(self.memory_limits, self.memory),
        )


HEAD = ("CPU REQUESTS", "CPU LIMITS", "MEMORY REQUESTS", "MEMORY LIMITS")
SORTS = {
    "name": lambda use: natural(use.name),
    "cpu.request": lambda use: -use.cpu_requests,
    "cpu.limit": lambda use: -use.cpu_limits,
    "mem.request": lambda use: -use.memory_requests,
    "mem.limit": lambda use: -use.memory_limits,
}


def _share(part: int, whole: int) -> str:
    return f" ({format_share(part / whole)})" if whole else ""


def _cores(milli: int) -> str:
    digits = 3 if milli < 1_000 else 1 if milli < 100_000 else 0
    cores = f"{milli / 1000:,.{digits}f}"
    cores = cores.rstrip("0").rstrip(".") if digits else cores
    return f"{cores} core{'s' * (cores != '1')}"


def _bytes(amount: float) -> str:
    step = 0
    while amount >= 1024 and step < len(_BINARY) - 1:
        amount /= 1024
        step += 1
    text = f"{amount:.1f}".removesuffix(".0") if amount < 10 and step else f"{amount:,.0f}"
    return f"{text} {_BINARY[step]}"


class ClusterUtilization(NamedTuple):
    """The resources of a cluster."""

    total: Utilization
    nodes: list[Utilization]
    kinds: list[Utilization]
    namespaces: list[Utilization]
    pods: dict[str, list[Utilization]]
    """By node."""


def cluster_utilization(objects: Iterable[Any], exclude: Iterable[str] = ()) -> ClusterUtilization:
    """Add up the pods that are bound and have not ended."""
    excluded, nodes, kinds, pods = set(exclude), dict[str, Utilization](), dict[str, str](), list[Pod]()
    for obj in objects:
        if isinstance(obj, Node) and obj.metadata.name not in excluded:
            allocatable = resource_amounts(obj.status.allocatable)
            nodes[obj.metadata.name] = Utilization(
                obj.metadata.name, allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)
            )
            kinds[obj.metadata.name] = node_kind(obj)
        elif isinstance(obj, Pod) and obj.spec.nodeName and not pod_is_terminal(obj):
            pods.append(obj)
    cpu, memory = sum(use.cpu for use in nodes.values()), sum(use.memory for use in nodes.values())
    by_node: dict[str, list[Utilization]] = {name: [] for name in nodes}
    by_namespace: dict[str, list[Utilization]] = {}
    for pod in pods:
        if pod.spec.nodeName in nodes:
            used = _pod_resources(pod)
            by_node[pod.spec.nodeName].append(used)
            by_namespace.setdefault(pod.metadata.namespace, []).append(used)
    full = {name: use.plus(*by_node[name]) for name, use in nodes.items()}
    by_kind: dict[str, list[Utilization]] = {}
    for name, use in full.items():
        by_kind.setdefault(kinds[name], []).append(use)
    spaces = [Utilization(name, cpu, memory).plus(*used) for name, used in by_namespace.items()]
    grouped = [Utilization(kind, 0, 0).plus(*rows) for kind, rows in by_kind.items()]
    return ClusterUtilization(
        Utilization("*", 0, 0).plus(*full.values()), list(full.values()), grouped, spaces, by_node
    )


def _pod_resources(pod: Pod) -> Utilization:
    requests, limits = pod_requests(pod).amounts, pod_requests(_limits_as_requests(pod)).amounts
    return Utilization(
        pod.key, 0, 0, requests.get(CPU, 0), limits.get(CPU, 0), requests.get(MEMORY, 0), limits.get(MEMORY, 0)
    )


def _limits_as_requests(pod: Pod) -> Pod:
    """Return a copy whose requests are its limits, so that limits are added up by the same rules."""

    def with_limits(container: Container) -> Container:
        return replace(container, resources=ResourceRequirements(requests=container.resources.limits))

    spec = replace(
        pod.spec,
        containers=tuple(map(with_limits, pod.spec.containers)),
        initContainers=tuple(map(with_limits, pod.spec.initContainers)),
    )
    return replace(pod, spec=spec, status=replace(pod.status, containerStatuses=()))
