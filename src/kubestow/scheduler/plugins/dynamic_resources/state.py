"""The state of the plugin for one scheduling attempt."""

import msgspec

from kubestow.api.devices import AllocationResult, ResourceClaim
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.plugins.dynamic_resources.extended import IN_MEMORY, NodeClaim


class State(msgspec.Struct):
    """The claims of a pod and their progress."""

    pod: PodInfo
    claims: list[ResourceClaim]
    """The claims in the order of the pod's spec; a claim for extended resources is last."""
    resources: tuple[str, ...] = ()
    """The device-backed extended resources."""
    unavailable: set[int] = msgspec.field(default_factory=set)
    """Numbers of allocated claims that rule out a node that is feasible otherwise."""
    allocations: dict[int, AllocationResult] = msgspec.field(default_factory=dict)
    """The pending allocations on the chosen node, by number of the claim."""
    shared: set[int] = msgspec.field(default_factory=set)
    """Numbers of claims with a pending allocation by another pod of the group."""
    node_claim: NodeClaim | None = None
    """The claim for extended resources with the requests for the chosen node."""
    unallocated: list[int] = msgspec.field(default_factory=list)
    """Numbers of the claims that were not allocated when the attempt began."""
    wanted: list[ResourceClaim] = msgspec.field(default_factory=list)
    """The claims with these numbers."""
    has_lists: bool = False
    """Whether a request has alternatives."""

    def __post_init__(self) -> None:
        for number, claim in enumerate(self.claims):
            if claim.status.allocation is None:
                self.unallocated.append(number)
                self.wanted.append(claim)
            for request in claim.spec.devices.requests:
                self.has_lists |= bool(request.firstAvailable)

    def is_extended(self, number: int) -> bool:
        """Return whether the claim with this number is the one for extended resources."""
        return bool(self.resources) and number == len(self.claims) - 1

    @property
    def stale_claim(self) -> ResourceClaim | None:
        """A claim for extended resources that an earlier attempt created; it must be deleted first."""
        return self.claims[-1] if self.resources and self.claims[-1].metadata.name != IN_MEMORY else None


class Place(msgspec.Struct, frozen=True):
    """Rows of a view, and the corresponding rows of the cluster."""

    view: NodeView
    rows: IntArray
    source: IntArray
