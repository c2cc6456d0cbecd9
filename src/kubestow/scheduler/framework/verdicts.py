"""What the filters said of each row: a plugin number and a kind, in words only when asked.

The first plugin, in order, that refuses a row is the one that is remembered.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from kubestow.api.lazy import lazy
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, NDArray, are_all_set
from kubestow.scheduler.framework.caller import worded
from kubestow.scheduler.framework.results import Code, Rejection, Rejections

NOBODY = -1


class VerdictSummary:
    """Why rows were rejected; later changes of the verdicts do not affect it."""

    def __init__(self, rows: IntArray, distinct: Sequence[tuple[Rejection, IntArray]]) -> None:
        self.rows = rows
        self._distinct = distinct

    def kinds(self) -> Sequence[tuple[Rejection, IntArray]]:
        """Every distinct refusal, with the positions it was given for."""
        return self._distinct

    @lazy
    def reasons(self) -> Counter[str]:
        """How many rows each reason was given for."""
        counts: Counter[str] = Counter()
        for rejection, positions in self._distinct:
            for reason in rejection.reasons:
                counts[reason] += len(positions)
        return counts

    @lazy
    def refusing_plugins(self) -> frozenset[str]:
        """The plugins that refused a row; one that could not judge it did not."""
        judged = [rejection for rejection, _ in self._distinct if rejection.code is not Code.ERROR]
        return frozenset(plugin for rejection in judged for plugin in rejection.plugins)

    @lazy
    def has_failures(self) -> bool:
        """Whether a plugin could not judge a row."""
        return any(rejection.code is Code.ERROR for rejection, _ in self._distinct)

    @lazy
    def resolvable_rows(self) -> IntArray:
        """The rows that were refused, but where preempting pods may help."""
        mask: BoolArray = np.zeros(len(self.rows), np.bool_)
        for rejection, positions in self._distinct:
            if rejection.code is Code.UNSCHEDULABLE:
                mask[positions] = True
        return self.rows if are_all_set(mask) else self.rows[mask]


class Verdicts:
    """The filters' answers on `rows` of a view; positions here are positions in `rows`."""

    def __init__(self, rows: IntArray, plugins: Sequence[str]) -> None:
        self.rows = rows
        self._plugins = plugins
        self._refused_by: NDArray[np.int16] = np.full(len(rows), NOBODY, np.int16)
        self._kinds: IntArray = np.zeros(len(rows), np.int64)
        self._answers: dict[int, Rejections] = {}
        self._overrides: list[Rejection] = []
        self._override_number: dict[Rejection, int] = {}
        self._override_of: IntArray | None = None
        self._summary: VerdictSummary | None = None
        self.passing: BoolArray = np.ones(len(rows), np.bool_)
        self.failed: Rejection | None = None
        """What a filter said that could not judge a row."""

    def add(self, plugin: int, answer: Rejections, positions: IntArray | None = None) -> int:
        """Note a plugin's answer on all rows, or on those at some positions. Returns how many rows it newly refused."""
        if positions is None:
            newly = self.passing & (answer.kinds != 0)
            count = int(np.count_nonzero(newly))
            if count:
                self._refused_by[newly] = plugin
                self._kinds[newly] = answer.kinds[newly]
                self.passing &= ~newly
        else:
            refused = self.passing[positions] & (answer.kinds != 0)
            count = int(np.count_nonzero(refused))
            if count:
                where = positions[refused]
                self._refused_by[where] = plugin
                self._kinds[where] = answer.kinds[refused]
                self.passing[where] = False
        if count:
            self._answers[plugin] = answer
            self._summary = None
        if answer.failed is not None:
            self.failed = answer.failed._replace(plugin=self._plugins[plugin])
        return count

    def override(self, positions: IntArray | int, rejection: Rejection) -> None:
        """Refuse rows for what was found on another view of the same nodes."""
        if self._override_of is None:
            self._override_of = np.full(len(self.rows), NOBODY, np.int64)
        number = self._override_number.get(rejection)
        if number is None:
            number = self._override_number[rejection] = len(self._overrides)
            self._overrides.append(rejection)
        self._override_of[positions] = number
        by = rejection.plugin
        # Whoever is none of the filters, an extender for example, comes after them.
        self._refused_by[positions] = self._plugins.index(by) if by in self._plugins else len(self._plugins)
        self.passing[positions] = False
        self._summary = None

    def positions_of(self, rows: IntArray) -> IntArray:
        """Where rows are that were judged."""
        return self.rows.searchsorted(rows)

    def forget(self, positions: IntArray | int) -> None:
        """Let rows pass that were judged, until they are judged again."""
        self._override_all()
        self._refused_by[positions] = NOBODY
        self.passing[positions] = True
        if self._override_of is not None:
            self._override_of[positions] = NOBODY
        self._summary = None

    def revise(self, position: int, rejection: Rejection | None) -> None:
        """A row was judged again; most often the same is said of it, and nothing has changed."""
        self._override_all()
        number = NOBODY if self._override_of is None else self._override_of.item(position)
        if rejection == (None if number == NOBODY else self._overrides[number]):
            return
        self.forget(position)
        if rejection is not None:
            self.override(position, rejection)

    def _override_all(self) -> None:
        """From now on a refusal is remembered as such: what a kind means to a plugin may differ by answer."""
        if self._answers:
            for rejection, positions in self.kinds():
                self.override(positions, rejection)
            self._answers = {}

    def only(self, which: BoolArray) -> "Verdicts":
        """Leave rows out, before anything is overridden."""
        self.rows = self.rows[which]
        self._refused_by = self._refused_by[which]
        self._kinds = self._kinds[which]
        self.passing = self.passing[which]
        return self

    def position_of(self, row: int) -> int | None:
        """Where a row is; None if it was not judged."""
        position = int(np.searchsorted(self.rows, row))
        return position if position < len(self.rows) and self.rows[position] == row else None

    def refused_before(self, plugins: Collection[str]) -> BoolArray:
        """Positions that were refused by a filter before any of these, and by none of these."""
        first = next((number for number, name in enumerate(self._plugins) if name in plugins), len(self._plugins))
        before: BoolArray = (self._refused_by != NOBODY) & (self._refused_by < first)
        for number, rejection in enumerate(self._overrides):
            if not set(plugins).isdisjoint(rejection.others):
                before &= self._override_of != number
        return before

    def feasible(self) -> IntArray:
        """The rows that nobody refused."""
        return self.rows if are_all_set(self.passing) else self.rows[self.passing]

    def rejection(self, position: int) -> Rejection | None:
        """Why a row was refused; None if it was not."""
        plugin = int(self._refused_by[position])
        if plugin == NOBODY:
            return None
        override = NOBODY if self._override_of is None else int(self._override_of[position])
        return self._worded(plugin, int(self._kinds[position])) if override == NOBODY else self._overrides[override]

    def _worded(self, plugin: int, kind: int) -> Rejection:
        return worded(self._plugins[plugin], self._answers[plugin], kind)

    def summary(self) -> VerdictSummary:
        """Return the current verdicts; the same object until they change."""
        if self._summary is None:
            self._summary = VerdictSummary(self.rows, list(self._distinct_rejections()))
        return self._summary

    def kinds(self) -> Sequence[tuple[Rejection, IntArray]]:
        """Return `VerdictSummary.kinds`."""
        return self.summary().kinds()

    def _distinct_rejections(self) -> Iterator[tuple[Rejection, IntArray]]:
        overridden = None if self._override_of is None else self._override_of != NOBODY
        if self._override_of is not None:
            for number, rejection in enumerate(self._overrides):
                positions = (self._override_of == number).nonzero()[0]
                if len(positions):
                    yield rejection, positions
        for plugin in self._answers:
            refused = self._refused_by == plugin
            if overridden is not None:
                refused &= ~overridden
            positions = refused.nonzero()[0]
            for kind, alike in groups(self._kinds[positions]):
                yield self._worded(plugin, kind), positions[alike]


def groups(kinds: IntArray) -> Iterator[tuple[int, BoolArray | slice]]:
    """The distinct kinds, each with where it is."""
    if len(kinds) and kinds[0] == kinds[-1] and (kinds == kinds[0]).all():
        # Most often all nodes are refused for the same, and finding the distinct ones is slow.
        yield int(kinds[0]), slice(None)
        return
    for kind in np.unique(kinds):
        yield int(kind), kinds == kind
