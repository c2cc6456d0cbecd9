"""Slices and their devices, parsed once.

Devices that are equal for every selector have the same `content`; devices that are equal except for their name have the
same `kind`. So an expression is evaluated once per content, and if one device of a kind cannot be allocated, the others
of the same pool need not be tried.

The slices of a driver mostly offer the same devices, each on its own node: equal lists of devices are parsed once, and
the entries of the devices of a slice are created on demand.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from kubestow.api.devices import Device, DeviceTaint, DeviceTaintRuleSpec, DeviceTaintSelector, ResourceSlice
from kubestow.api.node import Node, NodeSelector
from kubestow.api.node_selector import NodeTerms, compile_node_selector
from kubestow.api.quantity import nano
from kubestow.api.tolerations import REPELLING

CounterName = tuple[str, str]
"""A counter set, and a counter in it."""


NO_GROUPS = frozenset([""])
"""The compatibility groups of a device that has none: it is compatible with others that have none."""


class Numbers(dict[Hashable, int]):
    """Small consecutive numbers for distinct values."""

    def of(self, value: Hashable) -> int:
        return self.setdefault(value, len(self))


class Reach:
    """The nodes on which a slice, or a device with its own node selection, can be used."""

    __slots__ = ("all_nodes", "name", "selector", "terms")

    def __init__(self, name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> None:
        self.name = name
        self.all_nodes = bool(all_nodes)
        self.selector = selector
        self.terms: NodeTerms | None = None if selector is None else compile_node_selector(selector)

    @property
    def is_known(self) -> bool:
        """Whether any known field is set."""
        return bool(self.name) or self.all_nodes or self.terms is not None

    def includes(self, node: Node | None) -> bool:
        if self.name:
            return node is not None and node.metadata.name == self.name
        if self.all_nodes:
            return True
        return (
            node is not None and self.terms is not None and self.terms.matches(node.metadata.labels, node.metadata.name)
        )


class DeviceEntry:
    """A device of a slice, with cached properties."""

    __slots__ = (
        "content",
        "counters",
        "device",
        "driver",
        "groups",
        "kind",
        "name",
        "pool",
        "reach",
        "shared",
        "slice",
        "taints",
    )

    def __init__(self, read: "DeviceRead", of: "SliceEntry") -> None:
        self.device, self.taints, self.counters, self.groups, self.shared, self.reach, self.content, self.kind = read
        self.slice = of
        self.driver, self.pool, self.name = of.driver, of.pool, self.device.name

    @property
    def id(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


class DeviceRead(NamedTuple):
    """The properties of a device that do not depend on its pool."""

    device: Device
    taints: tuple[DeviceTaint, ...]
    """The taints that prevent an allocation unless they are tolerated."""
    counters: tuple[tuple[CounterName, int], ...]
    groups: tuple[tuple[str, frozenset[str]], ...]
    """The compatibility groups for each counter set."""
    shared: bool
    reach: Reach | None
    content: int
    kind: int


class DevicesRead:
    """A list of devices, in the order in which they are tried, with properties of the whole list."""

    __slots__ = ("all", "consumers", "has_conditions", "has_groups", "has_own_reach", "kinds", "position", "shared")

    def __init__(self, devices: list[DeviceRead]) -> None:
        self.all = devices
        self.kinds = [device.kind for device in devices]
        self.position = {device.device.name: position for position, device in enumerate(devices)}
        """Positions by name; fewer than there are devices if two have the same name."""
        self.shared = [device.device.name for device in devices if device.shared]
        self.consumers = [device for device in devices if device.counters]
        """The devices that consume shared counters."""
        self.has_conditions = any(device.device.bindingConditions for device in devices)
        self.has_groups = any(groups is not NO_GROUPS for device in self.consumers for _, groups in device.groups)
        self.has_own_reach = any(device.reach is not None for device in devices)


def _read(device: Device, of: "SliceEntry", taints: tuple[DeviceTaint, ...], numbers: "DeviceNumbers") -> DeviceRead:
    taints = tuple([taint for taint in (*device.taints, *taints) if taint.effect in REPELLING])
    counters = tuple(
        [
            ((consumption.counterSet, name), nano(counter.value))
            for consumption in device.consumesCounters
            for name, counter in sorted(consumption.counters.items())
        ]
    )
    groups = tuple([(of.counterSet, frozenset(of.compatibilityGroups) or NO_GROUPS) for of in device.consumesCounters])
    shared = bool(device.allowMultipleAllocations)
    reach = Reach(device.nodeName, device.allNodes, device.nodeSelector) if of.per_device else None
    attributes = frozenset(device.attributes.items())
    content = numbers.contents.of((of.driver, attributes, _capacities(device), shared))
    own = (device.bindingConditions, device.bindsToNode, of.skipped_operations)
    kind = numbers.kinds.of((content, taints, counters, groups, own))
    return DeviceRead(device, taints, counters, groups, shared, reach, content, kind)


def _capacities(device: Device) -> Hashable:
    return frozenset([(name, capacity.value, capacity.requestPolicy) for name, capacity in device.capacity.items()])


class DeviceNumbers:
    """The numbers of the contents and kinds of all devices."""

    def __init__(self) -> None:
        self.contents = Numbers()
        self.kinds = Numbers()
        self.latest: dict[Hashable, tuple[tuple[Device, ...], DevicesRead]] = {}
        """The devices parsed last, by the properties of their slice that matter; only without taint rules."""


_NO_DEVICES = DevicesRead([])


class SliceEntry:
    """A parsed slice."""

    __slots__ = (
        "_devices",
        "driver",
        "generation",
        "name",
        "number_in_pool",
        "per_device",
        "pool",
        "reach",
        "read",
        "shared_counters",
        "skipped_operations",
        "uses_partitions",
    )

    def __init__(self, source: ResourceSlice, taints_of: "TaintsOf", numbers: DeviceNumbers) -> None:
        spec = source.spec
        self.name = source.metadata.name
        self.driver, self.pool = spec.driver, spec.pool.name
        self.generation = spec.pool.generation
        self.number_in_pool = spec.pool.resourceSliceCount
        """The number of slices in the pool, as given by the slice."""
        self.per_device = bool(spec.perDeviceNodeSelection)
        self.reach = Reach(spec.nodeName, spec.allNodes, spec.nodeSelector)
        self.shared_counters = spec.sharedCounters
        self.uses_partitions = spec.perDeviceNodeSelection is not None or bool(spec.sharedCounters)
        self.skipped_operations = spec.skipNodeOperations
        """The operations that the kubelet must be able to skip to use the devices."""
        key = (self.driver, self.per_device, self.skipped_operations)
        devices, read = numbers.latest.get(key, ((), _NO_DEVICES))
        if taints_of.has_rules or devices != spec.devices:
            read = DevicesRead(
                [_read(of, self, taints_of(self.driver, self.pool, of.name), numbers) for of in spec.devices]
            )
            if not taints_of.has_rules:
                numbers.latest[key] = spec.devices, read
        self.read = read
        self._devices: tuple[DeviceEntry, ...] | None = None

    @property
    def devices(self) -> tuple[DeviceEntry, ...]:
        if self._devices is None:
            self._devices = tuple([DeviceEntry(device, self) for device in self.read.all])
        return self._devices

    @property
    def node_name(self) -> str:
        """The only node that can use it; empty if there may be others."""
        return self.reach.name or ""

    def includes(self, node: Node | None) -> bool:
        """Return whether any of its devices can be used on a node."""
        if self.reach.is_known:
            return self.reach.includes(node)
        return self.per_device and any(
            device.reach is not None and device.reach.includes(node) for device in self.devices
        )


class TaintsOf:
    """The taints that rules add to devices, besides those in their slices.

    A rule without a selector taints all devices, as in kube-scheduler; the API describes that it taints none.
    """

    def __init__(self, rules: Iterable[DeviceTaintRuleSpec] = ()) -> None:
        self._rules = [(rule.deviceSelector or DeviceTaintSelector(), rule.taint) for rule in rules]
        self.has_rules = bool(self._rules)

    def __call__(self, driver: str, pool: str, device: str) -> tuple[DeviceTaint, ...]:
        return tuple(
            [
                taint
                for wanted, taint in self._rules
                if wanted.driver in (None, driver) and wanted.pool in (None, pool) and wanted.device in (None, device)
            ]
        )
