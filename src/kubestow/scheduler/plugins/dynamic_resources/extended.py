"""Device-backed extended resources: PreBind creates a claim for them.

Until then the claim exists in memory only. Its requests depend on the node: a resource of which the node has an own
amount (from a device plugin) is not part of the claim.
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
"""The name of a claim that exists in memory only. It is not a valid object name."""


class NodeClaim(msgspec.Struct, frozen=True):
    """The claim with the requests for some nodes, and the container resource that each request is for."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def claim_for(pod: Pod, claims: Store[ResourceClaim]) -> ResourceClaim:
    """Return the claim that an earlier attempt has created; otherwise a new one, in memory only."""
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


def is_stale_claim_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether an attempt has created this claim for the extended resources of a pod."""
    owner = controller_of(claim.metadata) if EXTENDED_RESOURCE_CLAIM in claim.metadata.annotations else None
    return owner is not None and owner.uid == pod.metadata.uid


def node_claim(
    claim: ResourceClaim, pod: Pod, resources: Sequence[str], classes: Mapping[str, DeviceClass]
) -> NodeClaim:
    """Return the claim for nodes that need devices for the given resources."""
    containers = (*pod.spec.initContainers, *pod.spec.containers)
    inits = len(pod.spec.initContainers)
    brief = [i for i in range(inits) if not is_sidecar(containers[i])]
    """Init containers that end before the others start, so that they can use the same devices."""
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
    """Return the largest request of the short-lived init containers, which serves all of them, and their mappings."""
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
    """Return a request for what a container needs beyond the reusable requests, and the mappings of all it uses."""
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
