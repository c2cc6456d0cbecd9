"""Requests that are too large for every node: the pod with less, and the nearest node with more."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from kubestow.api.meta import ResourceList
from kubestow.api.node import Node
from kubestow.api.pod import Container, Pod
from kubestow.api.quantity import NANO_PER_MILLI, NANO_PER_UNIT, format_nano
from kubestow.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_sidecar, pod_requests, resource_amounts
from kubestow.insight.explain.changes import NODE, POD, Change
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.nominated import NominatedBeside
from kubestow.scheduler.cluster.whatif import what_if

_MEBI = 1 << 20
_NEAREST = 3


class Request(NamedTuple):
    """What a pod asks for of one resource: CPU in thousandths, the rest in whole units."""

    resource: str
    amount: int


def requests_of(pod: Pod) -> list[Request]:
    return [Request(name, amount) for name, amount in pod_requests(pod).amounts.items() if amount > 0]


def without(pod: Pod, request: Request) -> Change:
    """The pod without a request."""
    said = f"request of {told(request)} {request.resource} dropped"
    return Change(POD, said, 1.0, pod=_with_request(pod, request, 0))


def lowered(world: World, pod: Pod, request: Request, nodes: list[str], beside: NominatedBeside | None) -> list[Change]:
    """The pod with as much as the roomiest of the nodes has left."""
    most = whole(request.resource, max(left for _, left in free(world, request.resource, nodes, beside)))
    return [lowered_to(pod, request, most)] if 0 < most < request.amount else []


def lowered_to(pod: Pod, request: Request, amount: int) -> Change:
    """The pod with less."""
    said = f"request of {request.resource} lowered from {told(request)} to {told(request._replace(amount=amount))}"
    size = (request.amount - amount) / request.amount
    return Change(POD, said, size, pod=_with_request(pod, request, amount))


def raised(
    world: World, request: Request, nodes: list[str], beside: NominatedBeside | None
) -> Iterator[tuple[Change, int]]:
    """The nodes that lack least, with as much more as they lack, and how many nodes lack no more than that."""
    lacking = sorted((request.amount - left, name) for name, left in free(world, request.resource, nodes, beside))
    for lack, name in lacking[:_NEAREST]:
        node = world.cluster.node(name)
        if node is None or lack <= 0:
            continue
        has = resource_amounts(node.status.allocatable).get(request.resource, 0)
        more = Request(request.resource, lack)
        said = f"{told(more)}{' more' if has else ''} {request.resource} on node {name}"
        size = 0.2 + min(lack / has, 1.0) / 2 if has else 0.7
        alike = sum(0 < other <= lack for other, _ in lacking)
        yield Change(NODE, said, size, nodes=(_offering(node, Request(request.resource, has + lack)),)), alike


def one_more_pod(world: World, node: str) -> Change | None:
    """A node that may have one more pod than it has."""
    found = world.cluster.node(node)
    if found is None:
        return None
    table = world.cluster.nodes
    row = table.row_of[node]
    room = Request(PODS, int(table.pod_count[row]) + 1)
    pods = "1 pod" if room.amount == 1 else f"{room.amount} pods"
    return Change(NODE, f"room for {pods} on node {node}", 0.3, nodes=(_offering(found, room),))


def told(request: Request) -> str:
    """The amount as Kubernetes writes it."""
    nano = request.amount * (NANO_PER_MILLI if request.resource == CPU else NANO_PER_UNIT)
    return format_nano(nano, binary=_is_bytes(request.resource))


def _is_bytes(resource: str) -> bool:
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")


def whole(resource: str, amount: int) -> int:
    """At most the amount, in a unit that people use."""
    return amount - amount % _MEBI if _is_bytes(resource) and amount > _MEBI else amount


def free(world: World, resource: str, nodes: list[str], beside: NominatedBeside | None) -> list[tuple[str, int]]:
    """What is left on nodes, with room for the pods that are nominated there."""
    table = world.cluster.nodes
    column = table.resource_index.get(resource)
    view = what_if(table, [table.row_of[name] for name in nodes], beside)
    if column is None or column >= len(view.allocatable):
        return [(name, 0) for name in nodes]
    return list(zip(nodes, (view.allocatable[column] - view.requested[column]).tolist(), strict=True))


def _offering(node: Node, offer: Request) -> Node:
    allocatable = {**node.status.allocatable, offer.resource: told(offer)}
    return replace(node, status=replace(node.status, allocatable=allocatable))


def _with_request(pod: Pod, request: Request, amount: int) -> Pod:
    """The pod with another request in all: its containers, largest first, ask for less."""
    resource, spec = request.resource, pod.spec
    overhead = resource_amounts(spec.overhead).get(resource, 0)
    left = max(amount - overhead, 0)
    if spec.resources is not None and resource in spec.resources.requests:
        requests = _changed(spec.resources.requests, resource, left)
        return replace(pod, spec=replace(spec, resources=replace(spec.resources, requests=requests)))
    held = [_asked(one, resource) for one in spec.containers]
    sidecars = [_asked(one, resource) if is_sidecar(one) else 0 for one in spec.initContainers]
    excess = max(sum(held) + sum(sidecars) - left, 0)
    for amounts in (held, sidecars):
        for index in sorted(range(len(amounts)), key=lambda index: -amounts[index]):
            taken = min(amounts[index], excess)
            amounts[index] -= taken
            excess -= taken
    inits = [
        sidecars[index] if is_sidecar(one) else min(_asked(one, resource), max(left - sum(sidecars), 0))
        for index, one in enumerate(spec.initContainers)
    ]
    containers = tuple(map(_asking, spec.containers, [resource] * len(held), held))
    init_containers = tuple(map(_asking, spec.initContainers, [resource] * len(inits), inits))
    return replace(pod, spec=replace(spec, containers=containers, initContainers=init_containers))


def _asked(container: Container, resource: str) -> int:
    return resource_amounts(container.resources.requests).get(resource, 0)


def _asking(container: Container, resource: str, amount: int) -> Container:
    if resource not in container.resources.requests:
        return container
    requests = _changed(container.resources.requests, resource, amount)
    return replace(container, resources=replace(container.resources, requests=requests))


def _changed(requests: ResourceList, resource: str, amount: int) -> ResourceList:
    if not amount:
        return {name: kept for name, kept in requests.items() if name != resource}
    return {**requests, resource: told(Request(resource, amount))}
