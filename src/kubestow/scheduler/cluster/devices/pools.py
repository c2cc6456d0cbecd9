"""Pools: the slices of a driver that belong together, and the part of them that a node can use.

Only the newest generation counts, and only if all its slices exist. A pool that is incomplete or inconsistent offers
nothing, but it is visible: a request for all devices must wait for it.
"""

from collections.abc import Hashable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from kubestow.api.lazy import lazy
from kubestow.api.node import Node
from kubestow.api.quantity import nano
from kubestow.scheduler.cluster.devices.entries import (
    NO_GROUPS,
    CounterName,
    DeviceEntry,
    DeviceRead,
    DevicesRead,
    Numbers,
    SliceEntry,
)
from kubestow.scheduler.cluster.devices.reaching import ReachIndex
from kubestow.scheduler.cluster.devices.usage import PoolUsage


class PoolProblem(Enum):
    """The reason why nothing can be allocated from a pool."""

    INCOMPLETE = "currently being updated"
    INVALID = "currently invalid"


class PoolView:
    """A pool as seen from one or several nodes."""

    def __init__(
        self,
        pool: "Pool",
        problem: PoolProblem | None,
        slices: Sequence[SliceEntry] = (),
        counters: dict[CounterName, int] | None = None,
        consumers: Sequence[DeviceRead] = (),
        node: Node | None = None,
    ) -> None:
        self.id = pool.id
        self.usage = pool.usage
        self.problem = problem
        self._slices = slices
        self._read = read = _devices_of(slices)
        self.here: tuple[bool, ...] = (True,) * len(read.all)
        """Whether the node can use each of the devices."""
        if read.has_own_reach:
            self.here = tuple([device.reach is None or device.reach.includes(node) for device in read.all])
        self.has_conditions = read.has_conditions
        self._totals = counters or {}
        self._consumers = consumers
        self._seen = -1
        self._state: tuple[object, ...] = ()
        self._number = -1
        self._left: dict[CounterName, int] = {}
        self._groups: dict[str, frozenset[str]] = {}

    @lazy
    def devices(self) -> tuple[DeviceEntry, ...]:
        """The devices in the order in which they are tried."""
        return tuple([device for entry in self._slices if not entry.shared_counters for device in entry.devices])

    @property
    def order(self) -> tuple[bool, str, str]:
        """Sort key: pools whose devices have binding conditions come last."""
        return self.has_conditions, *self.id

    def state_number(self, numbers: Numbers) -> int:
        """Return a number for all that an allocation from the pool can depend on; equal numbers are equivalent."""
        if self._seen != self.usage.version:
            self._refresh()
        if self._number < 0:
            self._number = numbers.of(self._state)
        return self._number

    @property
    def left(self) -> dict[CounterName, int]:
        """The remaining capacity of the shared counters, in nano-units."""
        if self._seen != self.usage.version:
            self._refresh()
        return self._left

    @property
    def groups(self) -> dict[str, frozenset[str]]:
        """The compatibility groups of the allocated devices, by counter set; see `common_groups`."""
        if self._seen != self.usage.version:
            self._refresh()
        return self._groups

    def _refresh(self) -> None:
        usage = self.usage
        self._seen = usage.version
        self._number = -1
        if self.problem is not None:
            self._state = (self.problem,)
            return
        taken = usage.dedicated
        self._left, self._groups = dict(self._totals), {}
        if taken or usage.shares:
            for device in self._consumers:
                if usage.holds(device.device.name):
                    for counter, amount in device.counters:
                        if counter in self._left:
                            self._left[counter] -= amount
                    for name, groups in device.groups:
                        self._groups[name] = common_groups(self._groups.get(name), groups)
        kinds = self._read.kinds.copy()
        for name in taken:
            position = self._read.position.get(name)
            if position is not None:
                # An allocated device is of another kind than a free one.
                kinds[position] = ~kinds[position]
        shares = [(name in usage.shares, frozenset(usage.capacity.get(name, {}).items())) for name in self._read.shared]
        others = self._shares_of_others()
        self._state = (*kinds, self.here, *shares, *others, *self._left.items(), *self._groups.items())

    def _shares_of_others(self) -> list[Hashable]:
        """Return the usage of devices that were shared when they were allocated, and are no longer."""
        position, read = self._read.position, self._read.all
        found = [(position[name], used) for name, used in self.usage.capacity.items() if name in position]
        return [(at, frozenset(used.items())) for at, used in found if not read[at].shared]


def common_groups(present: frozenset[str] | None, groups: frozenset[str]) -> frozenset[str]:
    """Return the groups that a further device must share after a device with these groups; `present`: so far."""
    if present is None:
        return groups
    return present if NO_GROUPS in (present, groups) else present & groups


class Generation(NamedTuple):
    """All slices of one generation of a pool."""

    size: int
    counters: dict[CounterName, int] | None
    """The shared counters; None if two sets have the same name."""
    consumers: Sequence[DeviceRead]
    """The devices that consume shared counters, on any node."""


class Pool:
    """All slices of a pool, of any generation, and the allocations of its devices."""

    def __init__(self, driver: str, name: str, *, partitions: bool, groups: bool) -> None:
        self.id = (driver, name)
        self.usage = PoolUsage()
        self.slices: dict[str, SliceEntry] = {}
        self.by_node: dict[str, dict[str, SliceEntry]] = {}
        """The slices that a single node can use."""
        self.shared: dict[str, SliceEntry] = {}
        """The slices that several nodes may use."""
        self._partitions, self._groups = partitions, groups
        self._clear_cache()

    def _clear_cache(self) -> None:
        self._views: dict[tuple[object, ...], PoolView | None] = {}
        self._reach: ReachIndex | None = None
        self._newest: int | None = None
        self._generations: dict[int, Generation] = {}

    def set(self, entry: SliceEntry) -> None:
        self.remove(entry.name)
        self.slices[entry.name] = entry
        if (entry.uses_partitions and not self._partitions) or not self._knows_groups_of(entry):
            # Without the feature its meaning is unknown; but the pool is not complete without it.
            return
        if entry.node_name:
            self.by_node.setdefault(entry.node_name, {})[entry.name] = entry
        else:
            self.shared[entry.name] = entry

    def remove(self, name: str) -> None:
        self._clear_cache()
        old = self.slices.pop(name, None)
        if old is None:
            return
        self.shared.pop(name, None)
        of_node = self.by_node.get(old.node_name)
        if of_node is not None and of_node.pop(name, None) is not None and not of_node:
            del self.by_node[old.node_name]

    def view_for(self, node: Node | None) -> PoolView | None:
        """Return the part that a node can use; None if there is none."""
        name = "" if node is None else node.metadata.name
        own = self.by_node.get(name, {})
        if self._reach is None and self.shared:
            self._reach = ReachIndex(self.shared.values())
        common = [] if self._reach is None else self._reach.groups_for(node)
        has_own_choice = bool(own) or any(group[0].per_device for group in common)
        key = (*(group[0].name for group in common), name if has_own_choice else "")
        if key not in self._views:
            entries = [*own.values(), *(entry for group in common for entry in group)]
            self._views[key] = self._view(entries, node) if entries else None
        return self._views[key]

    def _view(self, entries: Sequence[SliceEntry], node: Node | None) -> PoolView | None:
        newest = max(entry.generation for entry in entries)
        relevant = sorted((entry for entry in entries if entry.generation == newest), key=lambda entry: entry.name)
        wanted, read = relevant[0].number_in_pool, _devices_of(relevant)
        if len(relevant) == wanted:
            generation = Generation(wanted, _counters_of(relevant), read.consumers)
        else:
            if self._newest_generation() > newest:
                # The generation is being replaced by one that offers the node nothing.
                return None
            generation = self._generation(newest)
            if generation.size != wanted:
                return PoolView(self, PoolProblem.INCOMPLETE)
        if len(read.position) < len(read.all):
            return PoolView(self, PoolProblem.INVALID)
        if not self._partitions:
            return PoolView(self, None, relevant, node=node)
        counters, consumers = generation.counters, generation.consumers
        if counters is None or any(name not in counters for device in consumers for name, _ in device.counters):
            return PoolView(self, PoolProblem.INVALID)
        return PoolView(self, None, relevant, counters, consumers, node)

    def _knows_groups_of(self, entry: SliceEntry) -> bool:
        return self._groups or not entry.read.has_groups

    def _newest_generation(self) -> int:
        if self._newest is None:
            self._newest = max(entry.generation for entry in self.slices.values())
        return self._newest

    def _generation(self, number: int) -> Generation:
        """Return a generation with the slices of all nodes."""
        if number not in self._generations:
            of = [of for of in self.slices.values() if of.generation == number and self._knows_groups_of(of)]
            self._generations[number] = Generation(len(of), _counters_of(of), _devices_of(of).consumers)
        return self._generations[number]


def _devices_of(slices: Iterable[SliceEntry]) -> DevicesRead:
    reads = [entry.read for entry in slices if not entry.shared_counters]
    return reads[0] if len(reads) == 1 else DevicesRead([device for read in reads for device in read.all])


def _counters_of(slices: Iterable[SliceEntry]) -> dict[CounterName, int] | None:
    """Return the counters of all sets; None if two sets have the same name."""
    sets = [counter_set for entry in slices for counter_set in entry.shared_counters]
    if len({counter_set.name for counter_set in sets}) < len(sets):
        return None
    return {(of.name, name): nano(counter.value) for of in sets for name, counter in of.counters.items()}
