"""Whether kubelets can align a pod: the rules of their topology managers, for many nodes at once.

Arrays have one row per zone and one column per node. With `single-numa-node`, everything that a container (or the pod)
requests must be free in one zone. With `restricted`, it may need several zones, but no more than on an empty node: each
resource is taken from as many zones as its total amounts require, and one zone must be among those of every resource.
"""

import numpy as np

from kubestow.contrib.numa.demand import Amounts, Demand, is_bound_to_zones, may_lack_zones
from kubestow.contrib.numa.topology import Policy
from kubestow.plugin.fast import BoolArray, IntArray, NodeColumns, NodeView

ABSENT = -1
"""The default of the columns, such as the free amount of a resource that a zone does not have."""
_EVERYWHERE = frozenset(("cpu", "memory", "ephemeral-storage", "pods"))
"""Resources of every node."""


class Zones:
    """The zones of some nodes, with what is free in them; `take` changes it."""

    def __init__(
        self, columns: NodeColumns[int], view: NodeView, rows: IntArray, count: int, policy: IntArray | None = None
    ) -> None:
        """`count` is the number of zones of the largest node; without `policy`, pods are not aligned."""
        self.columns, self.view, self.rows = columns, view, rows
        self.shape = max(count, 1), len(rows)
        self._free: dict[str, IntArray] = {}
        self._restricted = np.zeros(len(rows), np.bool_) if policy is None else policy == Policy.RESTRICTED
        self._any_restricted = bool(self._restricted.any())

    def free(self, resource: str) -> IntArray:
        """Return the free amounts, ABSENT where a zone lacks the resource."""
        found = self._free.get(resource)
        if found is None:
            found = self._free[resource] = self.stacked("free", resource)
        return found

    def stacked(self, what: str, key: object) -> IntArray:
        """Return a number of each zone, ABSENT where there is none."""
        return self.columns.stack([(what, zone, key) for zone in range(self.shape[0])], self.view, self.rows)

    @property
    def exist(self) -> BoolArray:
        """Return which zones exist; nodes may have fewer than the largest one."""
        found: BoolArray = self.stacked("exists", "") == 1
        return found

    def aligned(self, amounts: Amounts, *, guaranteed: bool) -> BoolArray:
        """Return the zones with which the amounts can be aligned."""
        found: BoolArray = np.ones(self.shape, np.bool_)
        for name, amount in amounts.items():
            if not amount:
                continue
            free = self.free(name)
            fits = free != ABSENT
            if guaranteed or not is_bound_to_zones(name):
                fits &= self._reaches(name, amount, free)
            if may_lack_zones(name):
                fits |= ~(free != ABSENT).any(axis=0)
            found &= fits
            if name not in _EVERYWHERE:
                found &= self._has(name)
        return found

    def take(self, amounts: Amounts, zone: IntArray, *, guaranteed: bool) -> None:
        """Take amounts from the given zone of each node and, if one zone is not enough, from those with most free."""
        columns = np.arange(self.shape[1])
        for name, amount in amounts.items():
            if not amount or (is_bound_to_zones(name) and not guaranteed):
                continue
            free, order = self.free(name), [zone]
            if self._any_restricted:
                rank = free.copy()
                rank[zone, columns] = np.iinfo(np.int64).max
                order = list(np.argsort(-rank, axis=0, kind="stable"))
            left = np.full(self.shape[1], amount)
            for one in order:
                taken = np.minimum(np.maximum(free[one, columns], 0), left)
                free[one, columns] -= taken
                left -= taken

    def _reaches(self, name: str, amount: int, free: IntArray) -> BoolArray:
        """Return the zones with which an amount is free, in as many zones as it may be taken from."""
        fits: BoolArray = free >= amount
        if not self._any_restricted:
            return fits
        total = -np.sort(-np.maximum(self.stacked("total", name), 0), axis=0).cumsum(axis=0)
        enough = total >= amount
        allowed = np.where(self._restricted, enough.argmax(axis=0) + 1, 1)
        ordered = -np.sort(-np.maximum(free, 0), axis=0)
        sums = np.vstack((np.zeros((1, self.shape[1]), np.int64), ordered.cumsum(axis=0)))
        columns = np.arange(self.shape[1])
        among_largest = free >= ordered[allowed - 1, columns]
        best = np.where(among_largest, sums[allowed, columns], free + sums[allowed - 1, columns])
        known = total[-1] > 0
        return np.where(self._restricted, ~known | ((best >= amount) & enough.any(axis=0)), fits)

    def _has(self, name: str) -> BoolArray:
        """Return which nodes have a resource, be it an amount of 0."""
        view, index = self.view, self.view.resource_index.get(name)
        found: BoolArray = np.zeros(self.shape[1], np.bool_)
        if index is not None:
            found = view.allocatable[index][self.rows] > 0
        for position in np.flatnonzero(~found).tolist():
            node = view.nodes[int(self.rows[position])]
            found[position] = node is not None and name in node.status.allocatable
        return found


POD = 1
CONTAINER = 2
INIT_CONTAINER = 3
SIDECAR = 4


def problems_of_pod(zones: Zones, demand: Demand) -> IntArray:
    """Return POD where the kubelet cannot align the pod as a whole, else 0."""
    aligned = zones.aligned(demand.whole, guaranteed=demand.guaranteed).any(axis=0)
    return np.where(aligned, 0, POD)


def problems_of_containers(zones: Zones, demand: Demand) -> IntArray:
    """Return which kind of container the kubelet cannot align; 0 where it can align all of them.

    Init containers run before the others, so that they take nothing away from them.
    """
    found = np.zeros(zones.shape[1], np.int64)
    for amounts, is_sidecar in demand.inits:
        aligned = zones.aligned(amounts, guaranteed=demand.guaranteed).any(axis=0)
        found[~aligned & (found == 0)] = SIDECAR if is_sidecar else INIT_CONTAINER
    for number, amounts in enumerate(demand.containers, 1):
        aligned = zones.aligned(amounts, guaranteed=demand.guaranteed)
        found[~aligned.any(axis=0) & (found == 0)] = CONTAINER
        if number < len(demand.containers):
            zones.take(amounts, aligned.argmax(axis=0), guaranteed=demand.guaranteed)
    return found
