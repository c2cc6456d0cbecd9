"""The potential victims on rows that have pods of groups: a group that is evicted as a whole counts as one victim.

A unit is a pod, or all pods of a group whose pods are evicted together, on whichever nodes they are. Only the pods on
the row itself free capacity there; those on other nodes matter to filters that count pods across nodes.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.placements import VictimUnit
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import Victims
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets
from kubestow.scheduler.plugins.default_preemption.group_victims import Unit, in_order, unit_of


class PotentialUnits(msgspec.Struct, frozen=True):
    """The units of lower priority on some rows, in the order in which they are reprieved."""

    rows: IntArray
    units: Sequence[Sequence[VictimUnit]]
    """By row, first those whose eviction violates a disruption budget, each by importance."""
    changes: Sequence[Sequence[Sequence[Change]]]
    """By row and unit, the removal of its pods from their rows."""

    @property
    def turns(self) -> int:
        return max(map(len, self.units))

    @property
    def filled(self) -> BoolArray:
        """Whether there is a unit, by turn and row."""
        lengths = np.array([len(units) for units in self.units])
        filled: BoolArray = np.arange(self.turns)[:, None] < lengths
        return filled

    def pods_at(self, i: int, turn: int) -> Iterator[PodInfo]:
        """Yield the pods of a unit that are on the row itself."""
        row = int(self.rows[i])
        return (change.pod for change in self.changes[i][turn] if change.row == row)

    def changes_at(self, i: int, turn: int) -> Sequence[Change]:
        """Return the removal of all pods of a unit."""
        return self.changes[i][turn]

    def counted_changes(self, is_counted: BoolArray) -> list[Change]:
        """Return the removals from rows whose pods are counted."""
        return [one for units in self.changes for unit in units for one in unit if is_counted[one.row]]

    def are_counted(self, is_counted: BoolArray) -> BoolArray:
        """Return by row whether a unit has a pod on a row whose pods are counted."""
        return np.array([any(is_counted[one.row] for unit in units for one in unit) for units in self.changes])

    def only(self, which: BoolArray) -> "PotentialUnits":
        """Return the units on some of the rows."""
        numbers = np.flatnonzero(which).tolist()
        units, changes = [self.units[i] for i in numbers], [self.changes[i] for i in numbers]
        return PotentialUnits(self.rows[which], units, changes)

    def victims(self, i: int, is_victim: BoolArray) -> Victims:
        """Return the victims of a row, given which units are victims, by turn."""
        chosen = [unit for unit, evicted in zip(self.units[i], is_victim.tolist(), strict=False) if evicted]
        pods = tuple(pod for unit in chosen for pod in unit.pods)
        return Victims(pods, sum(unit.budgets_broken for unit in chosen))


def rows_with_groups(cluster: Cluster) -> BoolArray | None:
    """Return which rows have pods of groups; None if none has."""
    names = set() if cluster.groups is None else cluster.groups.nodes()
    if not names:
        return None
    found: BoolArray = np.zeros(cluster.nodes.size, np.bool_)
    found[[cluster.nodes.row_of[name] for name in names if name in cluster.nodes.row_of]] = True
    return found


def potential_units(cluster: Cluster, rows: IntArray, priority: int, budgets: Budgets, now: float) -> PotentialUnits:
    """Return the units below a priority on some rows; a row may have none."""
    by_row = [in_order(_units_on(cluster, row, priority), budgets, now) for row in rows.tolist()]
    row_of = cluster.nodes.row_of
    changes = [
        [[Change(pod, row_of[cluster.node_name_of(pod.uid) or ""], added=False) for pod in unit.pods] for unit in units]
        for units in by_row
    ]
    return PotentialUnits(rows, by_row, changes)


def _units_on(cluster: Cluster, row: int, priority: int) -> list[Unit]:
    found = (unit_of(cluster, pod) for pod in cluster.nodes.pods[row].values())
    return list({key: unit for key, unit in found if unit[1] < priority}.values())
