"""The rows on which a volume can be provisioned for a claim: its class must have a provisioner and allow the node's
topology, and a storage pool that the node can access must have enough capacity if the driver reports capacity."""

from collections.abc import Sequence

import msgspec
import numpy as np

from kubestow.api.claims import NO_PROVISIONER
from kubestow.api.labels import Operator, Requirement, SelectorError, compile_selector, requirement_problems
from kubestow.api.quantity import value
from kubestow.api.storage import CSIStorageCapacity, TopologySelectorTerm
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, row_count
from kubestow.scheduler.cluster.listers import Listers
from kubestow.scheduler.cluster.node_matching import labels_match, selector_match
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.plugins.volume_binding.claims import DelayedClaim


class Offer(msgspec.Struct, frozen=True):
    """Whether a class can provision a volume for a claim, by row."""

    possible: BoolArray
    enough: BoolArray
    """Whether there is enough storage; True if the driver does not report capacity."""
    _pools: Sequence[CSIStorageCapacity] = ()
    _pool_of: IntArray | None = None

    def pool_at(self, position: int) -> CSIStorageCapacity | None:
        """Return the storage pool of the volume, None if the driver does not report pools."""
        return None if self._pool_of is None else self._pools[int(self._pool_of[position])]


def offer(delayed: DelayedClaim, view: NodeView, rows: Rows, listers: Listers) -> Offer:
    """Return on which rows a volume can be provisioned for a claim."""
    everywhere: BoolArray = np.ones(row_count(rows), np.bool_)
    storage_class = delayed.storage_class
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return Offer(~everywhere, everywhere)
    possible = _allowed(storage_class.allowedTopologies, view, rows)
    driver = listers.csi_drivers.get(storage_class.provisioner)
    size = delayed.size
    if size is None or driver is None or not driver.spec.storageCapacity:
        return Offer(possible, everywhere)
    pools = [
        pool
        for pool in listers.csi_capacities.group(storage_class.metadata.name)
        if (limit := volume_limit(pool)) is not None and limit >= size
    ]
    pool_of: IntArray = np.full(row_count(rows), len(pools), np.int64)
    for number in range(len(pools) - 1, -1, -1):
        pool_of[_within_reach(pools[number], view, rows)] = number
    return Offer(possible, pool_of < len(pools), pools, pool_of)


def volume_limit(pool: CSIStorageCapacity) -> int | None:
    """Return the maximum size of a volume from a storage pool in bytes, None if unknown."""
    limit = pool.maximumVolumeSize if pool.maximumVolumeSize is not None else pool.capacity
    return None if limit is None else value(limit)


def _within_reach(pool: CSIStorageCapacity, view: NodeView, rows: Rows) -> BoolArray:
    try:
        return selector_match(view, rows, compile_selector(pool.nodeTopology))
    except SelectorError:
        return np.zeros(row_count(rows), np.bool_)


def _allowed(terms: Sequence[TopologySelectorTerm], view: NodeView, rows: Rows) -> BoolArray:
    """Return by row whether a topology term of the class allows it: without terms all, for an empty term none."""
    if not terms:
        return np.ones(row_count(rows), np.bool_)
    allowed: BoolArray = np.zeros(row_count(rows), np.bool_)
    for term in terms:
        requested = term.matchLabelExpressions
        if not requested or any(requirement_problems(one.key, Operator.IN, one.values, "") for one in requested):
            continue
        matched: BoolArray = np.ones(row_count(rows), np.bool_)
        for one in requested:
            matched &= labels_match(view, rows, Requirement(one.key, Operator.IN, one.values))
        allowed |= matched
    return allowed
