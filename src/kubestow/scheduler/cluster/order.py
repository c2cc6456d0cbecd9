"""The order in which nodes are searched, and the number of feasible nodes at which a search stops.

Nodes are taken from the zones in turn, so that the first few are spread over zones. The next search starts where the
previous one stopped.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from kubestow.api.node import Node
from kubestow.api.topology import zone_of
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, are_all_set

MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE = 5
DEFAULT_PERCENTAGE = 50
NODES_PER_PERCENT = 125


@lru_cache(maxsize=64)
def feasible_nodes_to_find(node_count: int, percentage: int | None) -> int:
    """Return the number of feasible nodes at which a search stops. 0 or None: computed from the number of nodes."""
    if node_count < MIN_FEASIBLE_NODES:
        return node_count
    if not percentage:
        percentage = max(DEFAULT_PERCENTAGE - node_count // NODES_PER_PERCENT, MIN_PERCENTAGE)
    return max(node_count * percentage // 100, MIN_FEASIBLE_NODES)


class Search(msgspec.Struct, frozen=True):
    """The rows to search, in order, and when to stop."""

    order: IntArray
    """The rows, from where the search starts."""
    enough: int
    """Number of feasible rows at which the search stops."""
    first: IntArray
    """The first `enough` rows: usually all of them pass."""


def search_for(enough: int, order: IntArray) -> Search:
    """Return a search for a number of feasible rows."""
    return Search(order, enough, order[:enough])


def first_passing(
    passing: Callable[[IntArray], BoolArray], search: Search, at_once: bool = False
) -> tuple[IntArray, int]:
    """Return the first `enough` rows that pass, in searching order, and the number of rows that were searched.

    Rows are filtered in batches: first `enough` of them, then as many as are likely to contain the missing ones. Or
    all `at_once`, if it is likely that none will pass.
    """
    order, enough, some = search.order, search.enough, search.order if at_once else search.first
    found: list[IntArray] = []
    searched, missing = 0, enough
    while missing and len(some):
        passes = passing(some)
        if not (searched or at_once) and are_all_set(passes):
            return some, len(some)
        passed = passes.nonzero()[0][:missing]
        found.append(some[passed])
        missing -= len(passed)
        searched += len(some) if missing else int(passed[-1]) + 1
        number = searched * missing * 5 // (4 * (enough - missing)) + 1 if missing < enough else len(order)
        some = order[searched : searched + number]
    return np.concatenate(found) if found else order[:0], searched


class Place(NamedTuple):
    """The position of a row in the order."""

    zone: str
    zone_number: int
    """Sort key of the zone: the number of the first row of the zone."""
    number: int
    """Sort key of the row in its zone."""


class ZoneOrder:
    """Rows in round robin over zones. Adding and removing is O(1); the order is computed on demand."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[int, Place]] = {}
        """The rows of each zone, sorted unless `_is_unsorted`."""
        self._place_of_row: dict[int, Place] = {}
        self._last = 0
        self._is_unsorted = False
        self._rows: IntArray | None = None
        self._twice: IntArray = np.zeros(0, np.int64)

    def copy(self) -> "ZoneOrder":
        """Return an independent copy."""
        other = ZoneOrder()
        other._zones = {zone: members.copy() for zone, members in self._zones.items()}
        other._place_of_row = self._place_of_row.copy()
        other._last, other._is_unsorted = self._last, self._is_unsorted
        return other

    def place_of(self, row: int) -> Place | None:
        """Return the place of a row; None if it has none."""
        return self._place_of_row.get(row)

    def set(self, row: int, node: Node) -> None:
        zone = zone_of(node.metadata.labels)
        known = self._place_of_row.get(row)
        if known is not None and known.zone == zone:
            return
        members = self._zones.get(zone)
        number = self._last + 1
        self._put(row, Place(zone, number if members is None else next(iter(members.values())).zone_number, number))

    def restore(self, row: int, place: Place) -> None:
        """Give a row the position that it had before."""
        self._put(row, place)
        self._is_unsorted = True

    def _put(self, row: int, place: Place) -> None:
        self.remove(row)
        self._place_of_row[row] = self._zones.setdefault(place.zone, {})[row] = place
        self._last = max(self._last, place.number)
        self._rows = None

    def remove(self, row: int) -> None:
        place = self._place_of_row.pop(row, None)
        if place is None:
            return
        members = self._zones[place.zone]
        del members[row]
        if not members:
            del self._zones[place.zone]
        self._rows = None

    def _sort(self) -> None:
        by_number = sorted(self._place_of_row.items(), key=lambda item: item[1][1:])
        self._zones = {}
        for row, place in by_number:
            self._zones.setdefault(place.zone, {})[row] = place
        self._is_unsorted = False

    def rows(self) -> IntArray:
        if self._is_unsorted:
            self._sort()
        if self._rows is None:
            zones = [np.fromiter(members, np.int64, len(members)) for members in self._zones.values()]
            if not zones:
                self._rows = np.zeros(0, np.int64)
            else:
                turn = np.concatenate([np.arange(len(members)) for members in zones])
                # A stable sort by turn keeps the zones in order within each turn.
                self._rows = np.concatenate(zones)[np.argsort(turn, kind="stable")]
            self._twice = np.concatenate((self._rows, self._rows))
        return self._rows

    def rows_from(self, start: int) -> IntArray:
        """Return all rows in order, starting with position `start`."""
        rows = self.rows() if self._rows is None else self._rows
        return self._twice[start : start + len(rows)]
