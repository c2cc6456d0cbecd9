"""Copies of pods and nodes, including their devices.

A pod is added with the claims that a controller would create from its templates, a node with the slices that its
drivers would publish.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from msgspec.structs import replace

from kubestow.api.claim_templates import with_claims
from kubestow.api.devices import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodStatus
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.scheduler.cluster.listers import key_of
from kubestow.simulator.in_memory.fake_cluster import FakeCluster


class PodCopies:
    """Adds and deletes copies of pods together with their claims."""

    def __init__(self, cluster: FakeCluster, objects: Iterable[Any]) -> None:
        self._cluster = cluster
        self._templates = {key_of(one): one for one in objects if isinstance(one, ResourceClaimTemplate)}
        self._numbers = count()

    def add(self, pod: Pod, name: str) -> Pod:
        """Add a pending copy of a pod, named `name` with a number appended."""
        metas = (replace(pod.metadata, name=f"{name}-{number}") for number in self._numbers)
        free = next(one for one in metas if self._cluster.get(Pod, f"{one.namespace}/{one.name}") is None)
        copy = self._cluster.add(replace(pod, metadata=free, status=PodStatus()))
        claiming = with_claims(copy, self._templates, self._cluster.add)
        return copy if claiming is copy else self._cluster.update(claiming)

    def delete(self, pod: Pod) -> None:
        """Delete a pod at once, together with the claims generated for it."""
        status = self._cluster.pod(pod.metadata.name, pod.metadata.namespace).status
        names = [one.resourceClaimName for one in status.resourceClaimStatuses]
        if status.extendedResourceClaimStatus is not None:
            names.append(status.extendedResourceClaimStatus.resourceClaimName)
        self._cluster.delete(pod, 0)
        for name in names:
            claim = self._cluster.get(ResourceClaim, f"{pod.metadata.namespace}/{name}")
            if claim is not None:
                self._cluster.delete(claim)


@contextmanager
def extra_node(cluster: FakeCluster, example: Node) -> Iterator[None]:
    """Add a copy of a node and of its device pools within a `with` block."""
    name = f"one-more-{example.metadata.name}"
    labels = {**example.metadata.labels, HOSTNAME_LABEL: name}
    added: list[Any] = [cluster.add(replace(example, metadata=replace(example.metadata, name=name, labels=labels)))]
    for one in cluster.all(ResourceSlice):
        spec = one.spec
        if spec.nodeName == example.metadata.name:
            pool = replace(spec.pool, name=f"one-more-{spec.pool.name}")
            metadata = replace(one.metadata, name=f"one-more-{one.metadata.name}")
            added.append(cluster.add(replace(one, metadata=metadata, spec=replace(spec, nodeName=name, pool=pool))))
    yield
    for copy in reversed(added):
        cluster.delete(copy)
