"""The kind NodeResourceTopology, and what it says about a node."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from kubestow.plugin import CustomObject, RawQuantity, custom_resource, parse_quantities

_MAX_ZONE_ID = 63
_DEFAULT_MAX_ZONES = 8
_LARGEST_MAX_ZONES = 1024
_ZONE_NAME = re.compile(r"node-(\d+)")


class Attribute(Struct, frozen=True):
    """A name and a value that the agent of the node chose."""

    name: str = ""
    value: str = ""


class Cost(Struct, frozen=True):
    """The distance to a zone, 10 for the zone itself."""

    name: str = ""
    value: int = 0


class ZoneResource(Struct, frozen=True):
    """The amounts of a resource in a zone."""

    name: str = ""
    allocatable: RawQuantity = 0
    available: RawQuantity = 0

    def __post_init__(self) -> None:
        """Refuse a report with text that is not an amount: the previous one of the node stays."""
        parse_quantities({"available": self.available, "allocatable": self.allocatable})


class Zone(Struct, frozen=True):
    """A part of a node; zones of the type Node are NUMA zones."""

    name: str = ""
    type: str = ""
    costs: tuple[Cost, ...] = ()
    resources: tuple[ZoneResource, ...] = ()


@custom_resource("topology.node.k8s.io/v1alpha2", "noderesourcetopologies", namespaced=False)
class NodeResourceTopology(CustomObject, frozen=True):
    """The zones of the node with the same name."""

    topologyPolicies: tuple[str, ...] = ()
    """The older form of two of the attributes."""
    attributes: tuple[Attribute, ...] = ()
    zones: tuple[Zone, ...] = ()

    def attribute(self, name: str) -> str:
        """Return the value of an attribute; empty if there is none."""
        return next((attribute.value for attribute in self.attributes if attribute.name == name), "")


class Policy(IntEnum):
    """How strictly a kubelet aligns pods, as far as it rejects any."""

    LENIENT = 0
    RESTRICTED = 1
    SINGLE_ZONE = 2


class Scope(IntEnum):
    """What a kubelet aligns with zones."""

    CONTAINER = 0
    POD = 1


_POLICIES = {
    "none": Policy.LENIENT,
    "best-effort": Policy.LENIENT,
    "restricted": Policy.RESTRICTED,
    "single-numa-node": Policy.SINGLE_ZONE,
}
_SCOPES = {"container": Scope.CONTAINER, "pod": Scope.POD}
_COMBINED = {
    f"{name}{scope}Level": (policy, _SCOPES[scope.lower()])
    for name, policy in (
        ("SingleNUMANode", Policy.SINGLE_ZONE),
        ("Restricted", Policy.RESTRICTED),
        ("BestEffort", Policy.LENIENT),
    )
    for scope in ("Pod", "Container")
}


class ZoneAmounts(NamedTuple):
    """A NUMA zone; amounts are in the units of `pod.requests.amounts`."""

    id: int
    available: Mapping[str, int]
    allocatable: Mapping[str, int]
    costs: Mapping[int, int]
    """Distances by the ID of the other zone."""


class NodeZones(NamedTuple):
    """What a report says about a node."""

    policy: Policy
    scope: Scope
    max_zones: int
    """The largest number of zones that the topology manager of the node supports."""
    zones: tuple[ZoneAmounts, ...]
    """By ID."""


def node_zones(topology: NodeResourceTopology) -> NodeZones:
    """Return what a report says; values that a kubelet would not accept count as absent."""
    policy, scope, max_zones = Policy.LENIENT, Scope.CONTAINER, _DEFAULT_MAX_ZONES
    if topology.topologyPolicies:
        policy, scope = _COMBINED.get(topology.topologyPolicies[0], (policy, scope))
    for name, value in [(attribute.name, attribute.value) for attribute in topology.attributes]:
        if name == "topologyManagerPolicy":
            policy = _POLICIES.get(value, policy)
        elif name == "topologyManagerScope":
            scope = _SCOPES.get(value, scope)
        elif name == "topologyManagerMaxNUMANodes" and re.fullmatch(r"\+?\d{1,9}", value) and int(value) > 1:
            max_zones = min(int(value), _LARGEST_MAX_ZONES)
    zones = {}
    for zone in topology.zones:
        number = zone_id(zone.name)
        if zone.type == "Node" and number is not None:
            zones[number] = ZoneAmounts(
                number,
                parse_quantities({resource.name: resource.available for resource in zone.resources}),
                parse_quantities({resource.name: resource.allocatable for resource in zone.resources}),
                {to: cost.value for cost in zone.costs if (to := zone_id(cost.name)) is not None},
            )
    return NodeZones(policy, scope, max_zones, tuple(zones[number] for number in sorted(zones)))


def zone_id(name: str) -> int | None:
    """Return the ID in the name of a zone, such as `node-1`; None for another name, or an ID that is too large."""
    found = _ZONE_NAME.fullmatch(name)
    return int(found[1]) if found and int(found[1]) <= _MAX_ZONE_ID else None
