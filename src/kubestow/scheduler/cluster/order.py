"""The order in which nodes are searched, and how many feasible ones are enough.

Nodes are taken from the zones in turn, so that a sample of the first few is spread over zones. The next search starts
where the last one stopped.
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
def enough_nodes(node_count: int, percentage: int | None) -> int:
    """How many feasible nodes to look for; a percentage of 0 or None adapts to the size of the cluster."""
    if node_count < MIN_FEASIBLE_NODES:
        return node_count
    if not percentage:
        percentage = max(DEFAULT_PERCENTAGE - node_count // NODES_PER_PERCENT, MIN_PERCENTAGE)
    return max(node_count * percentage // 100, MIN_FEASIBLE_NODES)


class Search(msgspec.Struct, frozen=True):
    """A search that is about to begin."""

    order: IntArray
    """The rows, from where it starts."""
    enough: int
    """How many that pass are looked for."""
    first: IntArray
    """As many of the rows: most often they will do."""


def search_for(enough: int, order: IntArray) -> Search:
    """A search for so many rows."""
    return Search(order, enough, order[:enough])


def first_passing(
    passing: Callable[[IntArray], BoolArray], search: Search, at_once: bool = False
) -> tuple[IntArray, int]:
    """The first rows that pass, as many as are enough, in searching order; and how many rows were searched.

    Rows are judged some at a time: first as many as are wanted, then as many as are likely to hold what is missing. Or
    all `at_once`, where it is likely that none will pass.
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
    """The place of a row in the order."""

    zone: str
    zone_number: int
    """Orders the zones: the number of the row that the zone began with."""
    number: int
    """Orders the rows of a zone."""


class ZoneOrder:
    """Rows in round robin over zones. Adding and removing is O(1); the order is laid out anew when next asked for."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[int, Place]] = {}
        """The rows of each zone, in order unless `_is_mixed_up`."""
        self._place_of_row: dict[int, Place] = {}
        self._last = 0
        self._is_mixed_up = False
        self._rows: IntArray | None = None
        self._twice: IntArray = np.zeros(0, np.int64)

    def copy(self) -> "ZoneOrder":
        """Return an independent copy."""
        other = ZoneOrder()
        other._zones = {zone: members.copy() for zone, members in self._zones.items()}
        other._place_of_row = self._place_of_row.copy()
        other._last, other._is_mixed_up = self._last, self._is_mixed_up
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

    def put_back(self, row: int, place: Place) -> None:
        """Give a row the place that it had before."""
        self._put(row, place)
        self._is_mixed_up = True

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
        self._is_mixed_up = False

    def rows(self) -> IntArray:
        if self._is_mixed_up:
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
        """All rows in order, from the one at `start` on and around."""
        rows = self.rows() if self._rows is None else self._rows
        return self._twice[start : start + len(rows)]
