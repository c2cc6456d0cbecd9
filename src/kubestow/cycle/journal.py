"""What was said of rows, kept so that it can be read later as it was at any cycle.

A journal holds what is said of each row now, and for every change what was said before. A cycle notes how many changes
there were: whoever reads takes what is said now and goes back over the changes since. Pods that are equal share all of
it, and a cycle adds no more than the rows that have changed.
"""

from collections.abc import Iterable, Sequence

import msgspec

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, row_numbers
from kubestow.framework.results import Rejection

REFUSED = "refused"
"""Said of a row that is refused as long as nobody has asked why."""

Said = tuple[int, ...] | Rejection | str | None
"""The scores that plugins gave; or why the row is refused; None: it was never judged."""

_MOST_CHANGES = 4_096
_CHANGE_BYTES = 120
_ROW_BYTES = 8
JOURNAL_ROW_BYTES = 10
"""What a row takes in a journal that goes on, with whether anybody has asked why it is refused."""


class PluginPart(msgspec.Struct, frozen=True):
    """Whose scores are at a position, and what they count."""

    plugin: str
    weight: int
    normalizes: bool


class Chapter:
    """Some changes one after the other, and what was said after the last of them."""

    __slots__ = ("_after", "before", "counted", "holders", "parts", "rows")

    def __init__(self, after: list[Said], parts: Sequence[PluginPart]) -> None:
        self._after = after
        self.rows: list[int] = []
        """Which row each change is about."""
        self.before: list[Said] = []
        """What was said of it before."""
        self.parts = parts
        self.counted = self.holders = 0
        """What whoever counts bytes has counted, and for how many who hold it."""

    @property
    def bytes(self) -> int:
        """What it takes, about."""
        return _ROW_BYTES * len(self._after) + _CHANGE_BYTES * len(self.rows)

    def end(self) -> None:
        """What is said from now on is another chapter."""
        self._after = self._after.copy()

    def last(self, row: int) -> Said:
        """What was said of a row after the last change."""
        return self._after[row]

    def at(self, change: int) -> list[Said]:
        """What was said of each row when there were so many changes."""
        said = self._after.copy()
        for row, before in zip(reversed(self.rows[change:]), reversed(self.before[change:]), strict=True):
            said[row] = before
        return said


Even = Sequence[tuple[str, int]]
"""The plugins that normalize and gave all rows the same, with what that comes to, weighted."""

Layer = tuple[Chapter, int, Even]
"""A moment in a journal: how many changes there were."""


class Layers(msgspec.Struct, frozen=True, gc=False):
    """The journals that a cycle has its results from. Pods that are equal have the same until a chapter ends."""

    below: tuple[Layer, ...]
    """Of those that change seldom, lowest first."""
    chapter: Chapter
    """Of the topmost, in which every pod that is placed makes a change."""
    even: Even

    def at(self, change: int) -> tuple[Layer, ...]:
        """When there were so many changes in the topmost; lowest first."""
        return (*self.below, (self.chapter, change, self.even))


class Journal:
    """What some plugins say of rows."""

    def __init__(self, parts: Sequence[PluginPart]) -> None:
        self.said: list[Said] = []
        self.even: Even = ()
        self._parts = parts
        self.chapter = Chapter(self.said, parts)
        self._is_empty = True
        """Whether nothing has been said yet."""

    def make_room(self, capacity: int) -> None:
        self.said.extend([None] * (capacity - len(self.said)))

    def note(self, row: int, said: Said) -> None:
        """From now on this is said of a row."""
        before = self.said[row]
        if before == said:
            return
        self.said[row] = said
        if before is None:
            return
        chapter = self.chapter
        chapter.before.append(before)
        rows = chapter.rows
        rows.append(row)
        if len(rows) > _MOST_CHANGES:
            chapter.end()
            self.chapter = Chapter(self.said, self._parts)

    def note_rows(self, rows: Rows, passing: BoolArray, scores: Iterable[IntArray]) -> None:
        """The same for many."""
        columns = [column.tolist() for column in scores]
        numbers = row_numbers(rows).tolist()
        by_row: Iterable[tuple[int, ...]] = zip(*columns, strict=True) if columns else [()] * len(numbers)
        # A few numbers are all that most rows differ in.
        distinct: dict[Said, Said] = {}
        told = [
            distinct.setdefault(said, said) if passes else REFUSED
            for passes, said in zip(passing.tolist(), by_row, strict=True)
        ]
        if isinstance(rows, slice) and self._is_empty:
            self.said[rows] = told
            self._is_empty = False
            return
        for row, said in zip(numbers, told, strict=True):
            self.note(row, said)

    def explain(self, row: int, rejection: Rejection) -> None:
        """Why a row is refused: that is nothing new, so it is no change."""
        self.said[row] = rejection
