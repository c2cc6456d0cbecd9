"""What was said of rows, kept so that it can be read later as it was at any cycle.

A journal notes what is said of a row whenever that is judged again. A cycle notes how far these changes have come:
whoever reads takes what was said when the chapter began, and goes through the changes up to there. Pods that are equal
share all of it, and a cycle adds no more than the rows that have changed.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, row_numbers
from kubestow.cluster.nodes import NodeTable
from kubestow.framework.placements import Placement
from kubestow.framework.results import Rejection

REFUSED = "refused"
"""Said of a row that is refused as long as nobody has asked why."""

Said = tuple[int, ...] | Rejection | str | None
"""The scores that plugins gave; or why the row is refused; None: it was never judged."""


def lets_pass(said: Said) -> bool:
    """Whether the row is not refused."""
    return isinstance(said, tuple) and not isinstance(said, Rejection)


MOST_CHANGES = 4_096
_PLACE_BYTES = 8
_ROW_NUMBER_BYTES = 40
_REFUSAL_BYTES = 120
JOURNAL_ROW_BYTES = 10
"""What a row takes in a journal that goes on, with whether anybody has asked why it is refused."""


class PluginPart(msgspec.Struct, frozen=True):
    """Whose scores are at a position, and what they count."""

    plugin: str
    weight: int
    normalizes: bool


class Chapter:
    """Some changes one after the other, and what was said before the first of them."""

    __slots__ = ("_first", "_refused", "changes", "counted", "holders", "parts", "width")

    def __init__(self, first: list[Said], parts: Sequence[PluginPart]) -> None:
        self._first = first
        self.changes: list[int] = []
        """Of each in turn the row, and the scores by plugin: a list of numbers takes the least time and room."""
        self._refused: dict[int, Said] = {}
        """By where the change begins: that the row is refused, and its scores mean nothing."""
        self.parts = parts
        self.width = 1 + len(parts)
        self.counted = self.holders = 0
        """What whoever counts bytes has counted, and for how many who hold it."""

    @property
    def bytes(self) -> int:
        """What it takes, about."""
        changes = _ROW_NUMBER_BYTES * (len(self.changes) // self.width) + _PLACE_BYTES * len(self.changes)
        return _PLACE_BYTES * len(self._first) + changes + _REFUSAL_BYTES * len(self._refused)

    def refuse(self, row: int, why: Rejection | str) -> None:
        """From now on a row is refused."""
        self._refused[len(self.changes)] = why
        self.changes.extend([row] + [0] * len(self.parts))

    def at(self, moment: int) -> list[Said]:
        """What was said of each row when changes had come so far."""
        said = self._first.copy()
        for row, told in self.between(0, moment):
            said[row] = told
        return said

    def about(self, row: int) -> list[tuple[int, Said]]:
        """What was said of a row, and how far changes had come then."""
        changes = enumerate(self.between(0, len(self.changes)), 1)
        later = [(number * self.width, told) for number, (changed, told) in changes if changed == row]
        return [(0, self._first[row]), *later]

    def between(self, start: int, end: int) -> Iterator[tuple[int, Said]]:
        """The changes from one moment to another: the rows, and what was said of them."""
        rows, *columns = (self.changes[start + place : end : self.width] for place in range(self.width))
        told: list[Said] = list(zip(*columns, strict=True)) if columns else [()] * len(rows)
        for place, why in self._refused.items():
            if start <= place < end:
                told[(place - start) // self.width] = why
        return zip(rows, told, strict=True)


Even = Sequence[tuple[str, int]]
"""The plugins that normalize and gave all rows the same, with what that comes to, weighted."""

Layer = tuple[Chapter, int, Even]
"""A moment in a journal: how far changes had come."""


class Layers(msgspec.Struct, frozen=True, gc=False):
    """The journals that a cycle has its results from. Pods that are equal have the same until a chapter ends."""

    nodes: NodeTable
    """Whose rows they are about."""
    layout: int
    """Of the table: as long as the layers are the same, no node has come or gone."""
    below: tuple[Layer, ...]
    """Of those that change seldom, lowest first."""
    chapter: Chapter
    """Of the topmost, in which every pod that is placed makes a change."""
    changes: list[int]
    """Those of this chapter."""
    even: Even
    skipped: frozenset[str]
    """The plugins of these layers whose PreFilter found nothing to filter."""
    group: str = ""
    """The pod group that pods were tried with."""
    placement: Placement | None = None
    """Among which nodes; None: all."""
    has_more: bool = False
    """Whether more is said of pods than journals have: scores of their own."""

    def at(self, change: int) -> tuple[Layer, ...]:
        """When changes in the topmost had come so far; lowest first."""
        return (*self.below, (self.chapter, change, self.even))


class Journal:
    """What some plugins say of rows."""

    def __init__(self, parts: Sequence[PluginPart]) -> None:
        self.even: Even = ()
        self._parts = parts
        self._said: list[Said] = []
        """By row, as it was when somebody last wanted to know."""
        self._known = 0
        """How far changes had come then."""
        self._begin()

    def _begin(self) -> None:
        self.chapter, self._known = Chapter(self._said.copy(), self._parts), 0
        self.changes = self.chapter.changes
        """What one pod after the other adds to."""

    def _catch_up(self) -> None:
        for row, said in self.chapter.between(self._known, len(self.changes)):
            self._said[row] = said
        self._known = len(self.changes)

    @property
    def room(self) -> int:
        """How many changes there may still be in this chapter."""
        return MOST_CHANGES - len(self.changes) // self.chapter.width

    def go_on(self) -> None:
        """What is said from now on is another chapter."""
        self._catch_up()
        self._begin()

    def make_room(self, capacity: int) -> None:
        self._said.extend([None] * (capacity - len(self._said)))

    def note_rows(self, rows: Rows, passing: BoolArray, scores: Iterable[IntArray]) -> None:
        """From now on this is said of rows. If it is of all there are, that is another chapter."""
        numbers = row_numbers(rows).tolist()
        columns = [column.tolist() for column in scores]
        by_row: Iterable[tuple[int, ...]] = zip(*columns, strict=True) if columns else [()] * len(numbers)
        # A few numbers are all that most rows differ in.
        distinct: dict[tuple[int, ...], tuple[int, ...]] = {}
        told: list[tuple[int, ...] | str] = [
            distinct.setdefault(said, said) if passes else REFUSED
            for passes, said in zip(passing.tolist(), by_row, strict=True)
        ]
        if isinstance(rows, slice):
            self._said[rows] = list[Said](told)
            self._begin()
            return
        self._catch_up()
        for row, said in zip(numbers, told, strict=True):
            if isinstance(said, str):
                self.chapter.refuse(row, said)
            elif said != self._said[row]:
                self.changes.extend((row, *said))
