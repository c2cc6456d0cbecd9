"""Extended resources that stand for devices: a claim is made for them on the way to the node.

Until then it exists in memory alone. What it asks for depends on the node: a resource that the node offers itself (by a
device plugin) is not the claim's business there.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kubestow.api.devices import (
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubestow.api.meta import ObjectMeta, OwnerReference, controller_of
from kubestow.api.pod import Container, ContainerExtendedResourceRequest, Pod
from kubestow.api.quantity import value
from kubestow.api.requests import is_sidecar
from kubestow.scheduler.cluster.listers import Store

IN_MEMORY = "<extended-resources>"
"""The name of a claim that nobody else knows of; no claim can have it."""


class NodeClaim(msgspec.Struct, frozen=True):
    """The claim as it is for some nodes, and which container's resource each request is for."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def claim_for(pod: Pod, claims: Store[ResourceClaim]) -> ResourceClaim:
    """The claim that an earlier attempt has left behind; else a new one, in memory."""
    meta = pod.metadata
    for claim in claims.group(meta.uid):
        return claim
    owner = OwnerReference("v1", "Pod", meta.name, meta.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=IN_MEMORY,
            namespace=meta.namespace,
            uid=f"{IN_MEMORY}/{meta.uid}",
            annotations={EXTENDED_RESOURCE_CLAIM: "true"},
            ownerReferences=(owner,),
        )
    )


def is_left_behind(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether an attempt has made a claim for the extended resources of a pod."""
    owner = controller_of(claim.metadata) if EXTENDED_RESOURCE_CLAIM in claim.metadata.annotations else None
    return owner is not None and owner.uid == pod.metadata.uid


def node_claim(
    claim: ResourceClaim, pod: Pod, resources: Sequence[str], classes: Mapping[str, DeviceClass]
) -> NodeClaim:
    """The claim for nodes that need devices for some of the resources."""
    containers = (*pod.spec.initContainers, *pod.spec.containers)
    inits = len(pod.spec.initContainers)
    brief = [i for i in range(inits) if not is_sidecar(containers[i])]
    """Init containers that end before the others start, and can use the same devices."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        class_name = classes[resource].metadata.name
        lasting: dict[int, DeviceRequest] = {}
        for i in range(len(containers)):
            if i not in brief:
                request, used = _container_request(i, containers[i], resource, class_name, ())
                mappings += used
                if request is not None:
                    lasting[i] = request
        largest, used_by_brief = _brief_requests(brief, containers, resource, class_name, lasting)
        mappings += used_by_brief
        requests += ([] if largest is None else [largest]) + list(lasting.values())
    requests.sort(key=lambda request: request.name)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return NodeClaim(ResourceClaim(metadata=claim.metadata, spec=spec), tuple(mappings))


def _brief_requests(
    brief: Sequence[int],
    containers: Sequence[Container],
    resource: str,
    class_name: str,
    lasting: Mapping[int, DeviceRequest],
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """One request serves all of them: the largest."""
    largest: DeviceRequest | None = None
    names: set[str] = set()
    mappings: list[ContainerExtendedResourceRequest] = []
    for i in brief:
        reusable = [request for number, request in lasting.items() if number >= i]
        request, used = _container_request(i, containers[i], resource, class_name, reusable)
        mappings += used
        if request is not None:
            names.add(request.name)
            if largest is None or _count(largest) < _count(request):
                largest = request
    if largest is not None:
        mappings = [
            ContainerExtendedResourceRequest(of.containerName, of.resourceName, largest.name)
            if of.requestName in names
            else of
            for of in mappings
        ]
    return largest, mappings


def _container_request(
    number: int, container: Container, resource: str, class_name: str, reusable: Sequence[DeviceRequest]
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """What a container asks for beyond the devices that it can use of others; and all that it uses."""
    wanted = value(container.resources.requests.get(resource, 0))
    mappings: list[ContainerExtendedResourceRequest] = []
    if not wanted:
        return None, mappings
    found = 0
    for request in reusable:
        found += _count(request)
        mappings.append(ContainerExtendedResourceRequest(container.name, resource, request.name))
        if found >= wanted:
            return None, mappings
    index = sorted(container.resources.requests).index(resource)
    name = f"container-{number}-request-{index}"
    mappings.append(ContainerExtendedResourceRequest(container.name, resource, name))
    exactly = ExactDeviceRequest(deviceClassName=class_name, allocationMode="ExactCount", count=wanted - found)
    return DeviceRequest(name=name, exactly=exactly), mappings


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
