"""Changes for requests that no node can meet: a lower request of the pod, or more capacity of the nearest node."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from kubestow.api.meta import ResourceList
from kubestow.api.node import Node
from kubestow.api.pod import Container, Pod
from kubestow.api.quantity import NANO_PER_MILLI, NANO_PER_UNIT, format_nano
from kubestow.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_sidecar, pod_requests, resource_amounts
from kubestow.insight.explain.changes import NODE, POD, Change, smallest
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.nominated import CompetingNominations
from kubestow.scheduler.cluster.whatif import what_if

_MEBI = 1 << 20
_NEAREST = 3


class Request(NamedTuple):
    """The request of a pod for one resource: CPU in thousandths, other resources in whole units."""

    resource: str
    amount: int


def requests_of(pod: Pod) -> list[Request]:
    return [Request(name, amount) for name, amount in pod_requests(pod).amounts.items() if amount > 0]


def without(pod: Pod, request: Request) -> Change:
    """Remove a request of the pod."""
    text = f"request of {format_amount(request)} {request.resource} removed"
    return Change(POD, text, 1.0, pod=_with_request(pod, request, 0))


def lowered(
    world: World, pod: Pod, request: Request, nodes: list[str], nominated: CompetingNominations | None
) -> list[Change]:
    """Lower a request to the largest free amount on any of the nodes."""
    most = rounded_down(request.resource, max(left for _, left in free(world, request.resource, nodes, nominated)))
    return [lowered_to(pod, request, most)] if 0 < most < request.amount else []


def lowered_stepwise(pod: Pod, request: Request, is_enough: Callable[[Change], bool]) -> Change | None:
    """Lower a request for devices, of which nodes have no amounts, as little as necessary; None if nothing helps."""

    def lower(less: int) -> Change:
        return lowered_to(pod, request, request.amount - less)

    less = smallest(0, request.amount, lambda less: is_enough(lower(less)))
    return lower(less) if less < request.amount else None


def lowered_to(pod: Pod, request: Request, amount: int) -> Change:
    """Lower a request to an amount."""
    lower = format_amount(request._replace(amount=amount))
    text = f"request of {request.resource} lowered from {format_amount(request)} to {lower}"
    size = (request.amount - amount) / request.amount
    return Change(POD, text, size, pod=_with_request(pod, request, amount))


def raised(
    world: World, request: Request, nodes: list[str], nominated: CompetingNominations | None
) -> Iterator[tuple[Change, int]]:
    """Raise the capacity of the nodes that lack least, each with the number of nodes that lack at most as much."""
    left_by_node = free(world, request.resource, nodes, nominated)
    lacking = sorted(((request.amount - left, name) for name, left in left_by_node), key=lambda one: one[0])
    for lack, name in lacking[:_NEAREST]:
        node = world.cluster.node(name)
        if node is None or lack <= 0:
            continue
        has = resource_amounts(node.status.allocatable).get(request.resource, 0)
        more = Request(request.resource, lack)
        text = f"{format_amount(more)}{' more' if has else ''} {request.resource} on node {name}"
        size = 0.2 + min(lack / has, 1.0) / 2 if has else 0.7
        alike = sum(0 < other <= lack for other, _ in lacking)
        yield Change(NODE, text, size, nodes=(_with_capacity(node, Request(request.resource, has + lack)),)), alike


def one_more_pod(world: World, node: str) -> Change | None:
    """Raise the pod limit of a node to one more than its current number of pods; None if there is no such node."""
    found = world.cluster.node(node)
    if found is None:
        return None
    table = world.cluster.nodes
    row = table.row_of[node]
    limit = Request(PODS, int(table.pod_count[row]) + 1)
    return Change(
        NODE, f"pod limit of node {node} raised to {limit.amount}", 0.3, nodes=(_with_capacity(found, limit),)
    )


def format_amount(request: Request) -> str:
    """Return the amount as a Kubernetes quantity."""
    nano = request.amount * (NANO_PER_MILLI if request.resource == CPU else NANO_PER_UNIT)
    return format_nano(nano, binary=_is_bytes(request.resource))


def _is_bytes(resource: str) -> bool:
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")


def rounded_down(resource: str, amount: int) -> int:
    """Round an amount of bytes down to mebibytes; return other amounts unchanged."""
    return amount - amount % _MEBI if _is_bytes(resource) and amount > _MEBI else amount


def free(
    world: World, resource: str, nodes: list[str], nominated: CompetingNominations | None
) -> list[tuple[str, int]]:
    """Return the free amount on each node, without the requests of pods that are nominated there."""
    table = world.cluster.nodes
    column = table.resource_index.get(resource)
    view = what_if(table, [table.row_of[name] for name in nodes], nominated)
    if column is None or column >= len(view.allocatable):
        return [(name, 0) for name in nodes]
    return list(zip(nodes, (view.allocatable[column] - view.requested[column]).tolist(), strict=True))


def _with_capacity(node: Node, capacity: Request) -> Node:
    allocatable = {**node.status.allocatable, capacity.resource: format_amount(capacity)}
    return replace(node, status=replace(node.status, allocatable=allocatable))


def _with_request(pod: Pod, request: Request, amount: int) -> Pod:
    """Return the pod with another total request, by lowering the requests of its largest containers first."""
    resource, spec = request.resource, pod.spec
    overhead = resource_amounts(spec.overhead).get(resource, 0)
    left = max(amount - overhead, 0)
    if spec.resources is not None and resource in spec.resources.requests:
        requests = _changed(spec.resources.requests, resource, left)
        return replace(pod, spec=replace(spec, resources=replace(spec.resources, requests=requests)))
    held = [_request_of(one, resource) for one in spec.containers]
    sidecars = [_request_of(one, resource) if is_sidecar(one) else 0 for one in spec.initContainers]
    excess = max(sum(held) + sum(sidecars) - left, 0)
    for amounts in (held, sidecars):
        for index in sorted(range(len(amounts)), key=lambda index: -amounts[index]):
            taken = min(amounts[index], excess)
            amounts[index] -= taken
            excess -= taken
    inits = [
        sidecars[index] if is_sidecar(one) else min(_request_of(one, resource), max(left - sum(sidecars), 0))
        for index, one in enumerate(spec.initContainers)
    ]
    containers = tuple(map(_requesting, spec.containers, [resource] * len(held), held))
    init_containers = tuple(map(_requesting, spec.initContainers, [resource] * len(inits), inits))
    return replace(pod, spec=replace(spec, containers=containers, initContainers=init_containers))


def _request_of(container: Container, resource: str) -> int:
    return resource_amounts(container.resources.requests).get(resource, 0)


def _requesting(container: Container, resource: str, amount: int) -> Container:
    if resource not in container.resources.requests:
        return container
    requests = _changed(container.resources.requests, resource, amount)
    return replace(container, resources=replace(container.resources, requests=requests))


def _changed(requests: ResourceList, resource: str, amount: int) -> ResourceList:
    if not amount:
        return {name: kept for name, kept in requests.items() if name != resource}
    return {**requests, resource: format_amount(Request(resource, amount))}
