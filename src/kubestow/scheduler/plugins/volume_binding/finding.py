"""Finds the rows on which all claims of a pod can be satisfied, and the volume or provisioning for each claim.

Bound claims are checked by the node affinity of their volume. For others the smallest free volume that matches is used.
Without one, a volume must be provisioned, which requires a provisioner, an allowed topology and, for drivers that
report it, enough storage capacity.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from kubestow.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.listers import Listers
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.results import Rejection, unresolvable
from kubestow.scheduler.plugins.volume_binding.affinity import usable_rows
from kubestow.scheduler.plugins.volume_binding.candidates import NONE
from kubestow.scheduler.plugins.volume_binding.claims import DelayedClaim, PodClaims
from kubestow.scheduler.plugins.volume_binding.provisioning import Offer, offer

NODE_CONFLICT, NO_VOLUME, NO_SPACE, VOLUME_GONE = 1, 2, 4, 8
_REASONS = {
    NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
    VOLUME_GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class Match(msgspec.Struct, frozen=True):
    """A claim and the free volume to bind it to."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


class Provision(msgspec.Struct, frozen=True):
    """A claim for which a volume must be provisioned, and the storage pool if its driver reports one."""

    claim: PersistentVolumeClaim
    pool: CSIStorageCapacity | None


class Finding(msgspec.Struct, frozen=True):
    """The result for some rows; a position is an index into these rows."""

    problems: IntArray
    """Bits by row (NODE_CONFLICT and so on) for what is wrong; 0 for a feasible row."""
    matches: Sequence[tuple[DelayedClaim, IntArray]] = ()
    """Claims with the number of the matching volume by row."""
    offers: Sequence[tuple[DelayedClaim, BoolArray, Offer]] = ()
    """Claims with, by row, whether a volume must be provisioned, and the offer for it."""

    def matches_at(self, position: int) -> Iterator[Match]:
        for delayed, numbers in self.matches:
            if numbers[position] != NONE:
                yield Match(delayed.claim, delayed.volumes[int(numbers[position])])

    def provisions_at(self, position: int) -> Iterator[Provision]:
        for delayed, needed, offered in self.offers:
            if needed[position]:
                yield Provision(delayed.claim, offered.pool_at(position))


def rejection_of(problems: int) -> Rejection:
    """Return the rejection of a row with these problems."""
    return unresolvable(*(reason for problem, reason in _REASONS.items() if problems & problem))


def find(claims: PodClaims, view: NodeView, rows: Rows, listers: Listers) -> Finding:
    """Evaluate all claims on all rows."""
    problems = _check_bound(claims.bound, view, rows, listers)
    if not claims.delayed:
        return Finding(problems)
    open_rows: BoolArray = np.ones(len(problems), np.bool_)
    in_provisioning = claims.in_provisioning
    for delayed in in_provisioning:
        open_rows &= _is_named(delayed.selected_node, view, rows)
    problems[~open_rows] |= NO_VOLUME

    matches = _match(claims.to_match, view, rows)
    needed = [(delayed, open_rows) for delayed in in_provisioning]
    needed += [(delayed, numbers == NONE) for delayed, numbers in matches]
    offers = []
    for delayed, unmatched in needed:
        # A row is not evaluated further after the first claim that cannot be provisioned.
        where = unmatched & open_rows
        if where.any():
            offered = offer(delayed, view, rows, listers)
            problems[where & ~offered.possible] |= NO_VOLUME
            problems[where & offered.possible & ~offered.enough] |= NO_SPACE
            offers.append((delayed, where, offered))
            open_rows = open_rows & (~where | (offered.possible & offered.enough))
    return Finding(problems, matches, offers)


def _check_bound(claims: list[PersistentVolumeClaim], view: NodeView, rows: Rows, listers: Listers) -> IntArray:
    """Return the problems of bound claims by row; only the first claim with a problem is reported."""
    problems: IntArray = np.zeros(row_count(rows), np.int64)
    usable_so_far: BoolArray = np.ones(len(problems), np.bool_)
    for claim in claims:
        volume = listers.volumes.get(claim.spec.volumeName)
        if volume is None:
            problems[usable_so_far] |= VOLUME_GONE
            break
        usable = usable_rows(volume, view, rows, listers.csi_nodes)
        problems[usable_so_far & ~usable] |= NODE_CONFLICT
        usable_so_far &= usable
    return problems


def _match(claims: list[DelayedClaim], view: NodeView, rows: Rows) -> list[tuple[DelayedClaim, IntArray]]:
    """Match claims with free volumes, one claim after the other."""
    matches: list[tuple[DelayedClaim, IntArray]] = []
    for delayed in claims:
        taken = [numbers for other, numbers in matches if other.volumes is delayed.volumes]
        matches.append((delayed, delayed.volumes.find(delayed.claim, view, rows, taken)))
    return matches


def _is_named(name: str | None, view: NodeView, rows: Rows) -> BoolArray:
    names = (view.names[row] == name for row in row_numbers(rows).tolist())
    return np.fromiter(names, np.bool_, row_count(rows))
