"""The state of all devices, updated by each event.

A claim counts with the allocation that it was received or is assumed with; one that is being written counts as
`pending` from the moment its node was chosen, so that no other pod gets the same device.

All that an allocation on a row can depend on is summarized in one number, the row's `row_state`: rows in the same
row state allow the same allocations, except for device names. So an allocation is tried once per row state, not once
per node, and after an allocation only the row state of the pod's node is computed again.
"""

import sys
from collections.abc import Iterator, Mapping

import numpy as np

from kubestow.api.devices import AllocationResult, DeviceClass
from kubestow.config.features import Features
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, grown, is_any_set
from kubestow.scheduler.cluster.devices.classes import classes_by_resource
from kubestow.scheduler.cluster.devices.entries import DeviceEntry, DeviceNumbers, Numbers, SliceEntry, TaintsOf
from kubestow.scheduler.cluster.devices.pools import Pool, PoolView
from kubestow.scheduler.cluster.devices.usage import PoolUsage
from kubestow.scheduler.cluster.history import PENDING_ALLOCATION, History
from kubestow.scheduler.cluster.listers import Listers, key_of
from kubestow.scheduler.cluster.nodes import NodeTable

OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"
"""The feature that a node declares if its kubelet can skip operations on devices."""
_MAX_NUMBERS = 1_000_000
"""Number of distinct row states, or devices, at which all of them are numbered again."""


class Devices:
    """The devices offered, the devices allocated, and the row state of each row."""

    def __init__(self, nodes: NodeTable, listers: Listers, features: Features, history: History | None = None) -> None:
        self._nodes = nodes
        self._listers = listers
        self._features = features
        self._history = history
        self._partitions = features.dra_partitionable_devices
        self._groups = features.dra_device_compatibility_groups
        self._operations = features.dra_optional_node_operations
        self._shares = features.dra_consumable_capacity
        self._extended = features.dra_extended_resource
        self.classes: dict[str, DeviceClass] = {}
        """The device class of each extended resource."""
        self.epoch = 0
        """Incremented when all results cached by row state or content become invalid."""
        self._numbers = DeviceNumbers()
        self._pools: dict[tuple[str, str], Pool] = {}
        self._slices: dict[str, SliceEntry] = {}
        self._of_node: dict[str, dict[tuple[str, str], Pool]] = {}
        """The pools that have slices for a single node, by the name of the node."""
        self._common: dict[tuple[str, str], Pool] = {}
        """The pools that several nodes may use."""
        self._views: dict[str, tuple[PoolView, ...]] = {}
        self._is_loaded = True
        """Whether slices have been parsed and claims counted; a copy does that at the first use."""
        self._needs_refresh = False
        """Whether changes must be processed before rows are read."""
        self._resliced: dict[tuple[str, str], Pool] = {}
        """Pools whose slices have changed since rows were last read."""
        self._reused: dict[tuple[str, str], Pool] = {}
        """Pools whose allocations have changed since rows were last read."""
        self._counted: dict[str, AllocationResult] = {}
        """The allocations of claims, by key, that the usage of pools includes."""
        self._pending: dict[str, AllocationResult] = {}
        """The allocations that are being written, by the UID of the claim."""
        self._max_numbers = _MAX_NUMBERS
        self._states, self._row_state_numbers = Numbers(), Numbers()
        self._row_states: IntArray = np.zeros(0, np.int64)
        self._stale: BoolArray = np.zeros(0, np.bool_)
        listers.resource_claims.listen(self._claim_changed)
        listers.resource_slices.listen(self._slice_changed)
        listers.device_classes.listen(self._class_changed)
        listers.device_taint_rules.listen(self._rule_changed)

    def copy(self, nodes: NodeTable, listers: Listers) -> "Devices":
        """Return an independent copy without history, over copies of the nodes and listers."""
        other = Devices(nodes, listers, self._features)
        # A change of classes replaces the whole dictionary.
        other.classes, other.epoch = self.classes, self.epoch
        other._counted, other._pending = self._counted.copy(), self._pending.copy()
        other._is_loaded, other._needs_refresh = False, True
        return other

    def _load(self) -> None:
        self._is_loaded = True
        for entry in self._listers.resource_slices:
            self._slice_changed(key_of(entry))
        for allocation in (*self._counted.values(), *self._pending.values()):
            self._count(allocation, 1)

    # Rows

    def row_states(self, rows: IntArray) -> IntArray:
        """Return the row state of each row."""
        if self._needs_refresh:
            self._refresh()
        if len(self._stale) < self._nodes.size:
            self._row_states = grown(self._row_states, self._nodes.capacity)
            known = len(self._stale)
            self._stale = grown(self._stale, self._nodes.capacity)
            self._stale[known:] = True
        stale = self._stale.take(rows)
        if is_any_set(stale):
            for row in rows[stale].tolist():
                self._update_row_state(row)
        return self._row_states.take(rows)

    def row_state(self, row: int) -> int:
        """Return the row state of one row."""
        if row >= len(self._stale):
            return int(self.row_states(np.array([row]))[0])
        if self._needs_refresh:
            self._refresh()
        if self._stale.item(row):
            self._update_row_state(row)
        return self._row_states.item(row)

    def _update_row_state(self, row: int) -> None:
        numbers = tuple([view.state_number(self._states) for view in self.pools_of(row)])
        may_skip = self._operations and self.may_skip_operations(row)
        self._row_states[row] = self._row_state_numbers.of((numbers, may_skip))
        self._stale[row] = False

    @property
    def row_state_count(self) -> int:
        """Number of row states so far; they are numbered from 0."""
        return len(self._row_state_numbers)

    def renumber_if_needed(self) -> None:
        """Number everything again if the limit is reached; must be called before results cached by number are used."""
        if len(self._row_state_numbers) > self._max_numbers or len(self._states) > self._max_numbers:
            self._renumber()

    def pools_of(self, row: int) -> tuple[PoolView, ...]:
        """Return the pools that a node sees, in the order in which they are tried."""
        if self._needs_refresh:
            self._refresh()
        name = self._nodes.names[row]
        views = self._views.get(name)
        if views is None:
            node = self._nodes.nodes[row]
            pools = {**self._common, **self._of_node.get(name, {})}
            seen = [view for pool in pools.values() if (view := pool.view_for(node)) is not None]
            views = self._views[name] = tuple(sorted(seen, key=lambda view: view.order))
        return views

    def usable_devices(self, row: int) -> Iterator[tuple[DeviceEntry, PoolUsage]]:
        """Yield each device that a node can use, with its pool's usage; pools without possible allocations included."""
        if self._needs_refresh:
            self._refresh()
        name, node = self._nodes.names[row], self._nodes.nodes[row]
        for pool in {**self._common, **self._of_node.get(name, {})}.values():
            for entry in (*pool.by_node.get(name, {}).values(), *pool.shared.values()):
                if entry.includes(node):
                    for device in entry.devices:
                        if device.reach is None or device.reach.includes(node):
                            yield device, pool.usage

    def node_name(self, row: int) -> str:
        return self._nodes.names[row]

    def may_skip_operations(self, row: int) -> bool:
        """Return whether a node declares that its kubelet can skip operations on devices."""
        node = self._nodes.nodes[row]
        return node is not None and OPTIONAL_OPERATIONS in node.status.declaredFeatures

    def node_changed(self, name: str, row: int) -> None:
        """Record that a node was added, was removed, or has other labels or declared features."""
        self._views.pop(name, None)
        if row < len(self._stale):
            self._stale[row] = True

    def _refresh(self) -> None:
        """Update the rows that see a pool whose slices or allocations have changed.

        Done on demand: when a scheduler starts, slices and claims arrive one by one.
        """
        if not self._is_loaded:
            self._load()
        for pool in self._resliced.values():
            self._update_views(pool)
        for pool in (*self._resliced.values(), *self._reused.values()):
            if pool.shared:
                self._stale[:] = True
            else:
                for name in pool.by_node:
                    self._touch(name)
        self._resliced, self._reused = {}, {}
        self._needs_refresh = False

    def _update_views(self, pool: Pool) -> None:
        for name in pool.by_node:
            self._views.pop(name, None)
        if pool.shared:
            self._reset_views()

    def _reset_views(self) -> None:
        self._views = {}
        self._stale[:] = True

    def _touch(self, node: str) -> None:
        row = self._nodes.row_of.get(node)
        if row is not None and row < len(self._stale):
            self._stale[row] = True

    def _renumber(self) -> None:
        self.epoch += 1
        self._states, self._row_state_numbers = Numbers(), Numbers()
        self._numbers = DeviceNumbers()
        self._max_numbers = sys.maxsize
        for entry in self._listers.resource_slices:
            self._slice_changed(key_of(entry))
        self._max_numbers = max(_MAX_NUMBERS, 2 * len(self._numbers.kinds))
        self._stale[:] = True

    # Slices

    def _slice_changed(self, key: str) -> None:
        if not self._is_loaded:
            return
        old, new = self._slices.pop(key, None), self._listers.resource_slices.get(key)
        if old is not None:
            self._change(old, None)
        if new is not None:
            if len(self._numbers.kinds) > self._max_numbers:
                self._renumber()
                return
            self._slices[key] = entry = SliceEntry(new, self._taints_of(), self._numbers)
            self._change(entry, entry)

    def _change(self, about: SliceEntry, entry: SliceEntry | None) -> None:
        """Remove a slice from its pool (`entry` is None), or add it."""
        pool, name = self._pool_of(about.driver, about.pool), about.node_name
        if entry is None:
            pool.remove(about.name)
        else:
            pool.set(entry)
        self._resliced[pool.id] = pool
        self._needs_refresh = True
        if name:
            of_node = self._of_node.setdefault(name, {})
            of_node.pop(pool.id, None)
            if name in pool.by_node:
                of_node[pool.id] = pool
            elif not of_node:
                del self._of_node[name]
            self._views.pop(name, None)
            self._touch(name)
        was_common = self._common.pop(pool.id, None) is not None
        if pool.shared:
            self._common[pool.id] = pool
        elif was_common:
            self._reset_views()
        if not pool.slices and pool.usage.is_empty:
            del self._pools[pool.id]

    def _pool_of(self, driver: str, name: str) -> Pool:
        pool = self._pools.get((driver, name))
        if pool is None:
            pool = Pool(driver, name, partitions=self._partitions, groups=self._groups)
            self._pools[driver, name] = pool
        return pool

    def _taints_of(self) -> TaintsOf:
        rules = self._listers.device_taint_rules
        return TaintsOf(rule.spec for rule in rules) if len(rules) else _NO_TAINTS

    def _rule_changed(self, _key: str) -> None:
        for entry in self._listers.resource_slices:
            self._slice_changed(key_of(entry))

    # Classes

    def _class_changed(self, _key: str) -> None:
        self.epoch += 1
        if self._extended:
            self.classes = classes_by_resource(self._listers.device_classes)

    # Claims

    def _claim_changed(self, key: str) -> None:
        claim = self._listers.resource_claims.get(key)
        allocation = None if claim is None else claim.status.allocation
        counted = self._counted.get(key)
        if allocation is counted:
            return
        if claim is not None and allocation is not None:
            pending = self._pending.get(claim.metadata.uid)
            if pending is not None and counted is None and pending.devices == allocation.devices:
                # The claim has got the pending allocation, which is already counted.
                self._note_pending(claim.metadata.uid, None)
                del self._pending[claim.metadata.uid]
                self._counted[key] = allocation
                return
            self.remove_pending(claim.metadata.uid)
            if counted is not None and counted.devices == allocation.devices:
                # Nothing has changed: the pools are still valid.
                self._counted[key] = allocation
                return
        if counted is not None:
            self._count(counted, -1)
            del self._counted[key]
        if allocation is not None:
            self._count(allocation, 1)
            self._counted[key] = allocation

    def add_pending(self, uid: str, allocation: AllocationResult) -> None:
        """Reserve devices for a claim that is about to be written."""
        self.remove_pending(uid)
        self._note_pending(uid, allocation)
        self._pending[uid] = allocation
        self._count(allocation, 1)

    def pending(self, uid: str) -> AllocationResult | None:
        """Return the allocation of a claim that is being written."""
        return self._pending.get(uid)

    def remove_pending(self, uid: str) -> None:
        """Release the devices reserved for a claim, after its write has succeeded or failed."""
        pending = self._pending.get(uid)
        if pending is not None:
            self._note_pending(uid, None)
            del self._pending[uid]
            self._count(pending, -1)

    def _note_pending(self, uid: str, pending: AllocationResult | None) -> None:
        if self._history is not None:
            self._history.note(PENDING_ALLOCATION, uid, self._pending.get(uid), pending)

    def pending_allocations(self) -> dict[str, AllocationResult]:
        """Return the allocations that are being written, by the UID of the claim."""
        return self._pending.copy()

    def set_pending_allocations(self, pending: Mapping[str, AllocationResult]) -> None:
        """Replace all allocations that are being written."""
        for uid in self._pending.keys() - pending.keys():
            self.remove_pending(uid)
        for uid, allocation in pending.items():
            if self._pending.get(uid) is not allocation:
                self.add_pending(uid, allocation)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        if not self._is_loaded:
            return
        self._needs_refresh = True
        for result in allocation.devices.results:
            if result.adminAccess:
                continue
            pool = self._pools.get((result.driver, result.pool)) or self._pool_of(result.driver, result.pool)
            pool.usage.count(result, sign, shared=self._shares and result.shareID is not None)
            self._reused[pool.id] = pool
            if not pool.slices and pool.usage.is_empty:
                del self._pools[pool.id]


_NO_TAINTS = TaintsOf()
