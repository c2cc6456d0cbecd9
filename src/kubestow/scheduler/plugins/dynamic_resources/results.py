"""The result of a search as an `AllocationResult`, which is written to the status of a claim."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubestow.api.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from kubestow.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.node_selector import NODE_NAME_FIELD
from kubestow.rng import Rng
from kubestow.scheduler.cluster.devices import DeviceEntry
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError
from kubestow.scheduler.plugins.dynamic_resources.requests import Option, WantedClaim
from kubestow.scheduler.plugins.dynamic_resources.search import Pick, Rules


def allocation_of(
    claim: ResourceClaim,
    wanted: WantedClaim,
    picks: Sequence[Pick],
    entries: Sequence[DeviceEntry],
    chosen: Mapping[int, Option],
    node: str,
    rng: Rng,
    rules: Rules,
) -> AllocationResult:
    """Return the allocation of a claim.

    `entries` are the devices of the node at the positions of `picks`; `chosen` has the chosen alternatives by request.
    """
    options = [chosen.get(number, request.options[0]) for number, request in enumerate(wanted.requests)]
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple([_result(*of, rng, rules) for of in zip(picks, entries, strict=True)]),
            config=tuple(_configuration(claim, options)),
        ),
        nodeSelector=_node_selector(claim, entries, node),
    )


def _result(pick: Pick, entry: DeviceEntry, rng: Rng, rules: Rules) -> DeviceRequestAllocationResult:
    option = pick.option
    return DeviceRequestAllocationResult(
        request=option.name,
        driver=entry.driver,
        pool=entry.pool,
        device=entry.name,
        adminAccess=True if option.admin else None,
        tolerations=option.tolerations,
        bindingConditions=entry.device.bindingConditions if rules.conditions else (),
        bindingFailureConditions=entry.device.bindingFailureConditions if rules.conditions else (),
        shareID=None if pick.consumption is None else share_id(rng),
        consumedCapacity={} if pick.consumption is None else dict(pick.consumption.quantities),
        skipNodeOperations=entry.slice.skipped_operations if rules.operations else (),
    )


def share_id(rng: Rng) -> str:
    """Return a random UUID."""
    digits = f"{(rng.randrange(1 << 128) & ~(0xF << 76) & ~(0x3 << 62)) | (0x4 << 76) | (0x2 << 62):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _configuration(claim: ResourceClaim, options: Sequence[Option]) -> Iterator[DeviceAllocationConfiguration]:
    """Yield the configuration for drivers: of each class once, then of the claim for the chosen options."""
    users: dict[str, tuple[DeviceClass, list[Option]]] = {}
    for option in options:
        users.setdefault(option.device_class.metadata.name, (option.device_class, []))[1].append(option)
    for device_class, using in users.values():
        requests = () if len(using) == len(options) else tuple([option.name for option in using])
        for config in device_class.spec.config:
            yield DeviceAllocationConfiguration("FromClass", requests, config.opaque)
    for config in claim.spec.devices.config:
        concerned = [option.request in config.requests or option.name in config.requests for option in options]
        if not config.requests or any(concerned):
            requests = () if all(concerned) else config.requests
            yield DeviceAllocationConfiguration("FromClaim", requests, config.opaque)


def _node_selector(claim: ResourceClaim, entries: Iterable[DeviceEntry], node: str) -> NodeSelector | None:
    """Return the nodes on which all devices can be used; None: all nodes. Raises AllocationError."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for entry in entries:
        reach = entry.slice.reach if entry.reach is None else entry.reach
        if reach.name is not None or entry.device.bindsToNode:
            only = NodeSelectorRequirement(NODE_NAME_FIELD, "In", (node,))
            return NodeSelector((NodeSelectorTerm(matchFields=(only,)),))
        terms = () if reach.selector is None else reach.selector.nodeSelectorTerms
        if len(terms) > 1:
            problem = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector for claim {claim.metadata.name}: {problem}")
        for term in terms:
            _add_new(term.matchFields, fields)
            _add_new(term.matchExpressions, labels)
    return NodeSelector((NodeSelectorTerm(tuple(labels), tuple(fields)),)) if fields or labels else None


def _add_new(found: Iterable[NodeSelectorRequirement], to: list[NodeSelectorRequirement]) -> None:
    known = {(of.key, of.operator, frozenset(of.values)) for of in to}
    to += [of for of in found if (of.key, of.operator, frozenset(of.values)) not in known]
