"""What the plugin knows of the pod that is being scheduled, and of the rows that it is asked about."""

import msgspec

from kubestow.api.devices import AllocationResult, ResourceClaim
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.plugins.dynamic_resources.extended import IN_MEMORY, NodeClaim


class State(msgspec.Struct):
    """The claims of a pod, and what becomes of them."""

    pod: PodInfo
    claims: list[ResourceClaim]
    """In the pod's order; a claim for extended resources comes last."""
    resources: tuple[str, ...] = ()
    """The extended resources that devices stand for."""
    unavailable: set[int] = msgspec.field(default_factory=set)
    """Claims that have devices, but not on some node that would do otherwise."""
    allocations: dict[int, AllocationResult] = msgspec.field(default_factory=dict)
    """What claims were promised on the node that was chosen."""
    shared: set[int] = msgspec.field(default_factory=set)
    """Claims that have only been promised devices, for another pod of the group."""
    node_claim: NodeClaim | None = None
    """The claim for extended resources as it is for that node."""
    unallocated: list[int] = msgspec.field(default_factory=list)
    """The claims that had no devices when the attempt began."""
    wanted: list[ResourceClaim] = msgspec.field(default_factory=list)
    """The same as they are."""
    has_lists: bool = False
    """Whether there are options to choose from."""

    def __post_init__(self) -> None:
        for number, claim in enumerate(self.claims):
            if claim.status.allocation is None:
                self.unallocated.append(number)
                self.wanted.append(claim)
            for request in claim.spec.devices.requests:
                self.has_lists |= bool(request.firstAvailable)

    def is_extended(self, number: int) -> bool:
        """Whether a claim is the one for extended resources."""
        return bool(self.resources) and number == len(self.claims) - 1

    @property
    def left_behind(self) -> ResourceClaim | None:
        """A claim for extended resources that an earlier attempt has made; it has to go first."""
        return self.claims[-1] if self.resources and self.claims[-1].metadata.name != IN_MEMORY else None


class Place(msgspec.Struct, frozen=True):
    """Rows of a view, and their numbers in the cluster."""

    view: NodeView
    rows: IntArray
    source: IntArray
