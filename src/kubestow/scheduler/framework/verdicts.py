"""The results of filters by row, as a plugin number and a kind; messages are built on demand.

The first plugin, in order, that rejects a row is the one that is stored.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from kubestow.api.lazy import lazy
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, NDArray, are_all_set
from kubestow.scheduler.framework.caller import rejection_for
from kubestow.scheduler.framework.results import Code, Rejection, Rejections

_NONE = -1


class VerdictSummary:
    """The reasons of rejected rows; not affected by later changes of the verdicts."""

    def __init__(self, rows: IntArray, distinct: Sequence[tuple[Rejection, IntArray]]) -> None:
        self.rows = rows
        self._distinct = distinct

    def kinds(self) -> Sequence[tuple[Rejection, IntArray]]:
        """Return the distinct rejections, each with the positions of its rows."""
        return self._distinct

    @lazy
    def reasons(self) -> Counter[str]:
        """The number of rows for each reason."""
        counts: Counter[str] = Counter()
        for rejection, positions in self._distinct:
            for reason in rejection.reasons:
                counts[reason] += len(positions)
        return counts

    @lazy
    def refusing_plugins(self) -> frozenset[str]:
        """The plugins that rejected a row; plugins that failed are not included."""
        rejections = [rejection for rejection, _ in self._distinct if rejection.code is not Code.ERROR]
        return frozenset(plugin for rejection in rejections for plugin in rejection.plugins)

    @lazy
    def has_failures(self) -> bool:
        """Whether a plugin failed for a row."""
        return any(rejection.code is Code.ERROR for rejection, _ in self._distinct)

    @lazy
    def resolvable_rows(self) -> IntArray:
        """The rejected rows where preempting pods may help."""
        mask: BoolArray = np.zeros(len(self.rows), np.bool_)
        for rejection, positions in self._distinct:
            if rejection.code is Code.UNSCHEDULABLE:
                mask[positions] = True
        return self.rows if are_all_set(mask) else self.rows[mask]


class Verdicts:
    """The results of the filters for `rows` of a view; a position is an index of `rows`."""

    def __init__(self, rows: IntArray, plugins: Sequence[str]) -> None:
        self.rows = rows
        self._plugins = plugins
        self._refused_by: NDArray[np.int16] = np.full(len(rows), _NONE, np.int16)
        self._kinds: IntArray = np.zeros(len(rows), np.int64)
        self._answers: dict[int, Rejections] = {}
        self._overrides: list[Rejection] = []
        self._override_number: dict[Rejection, int] = {}
        self._override_of: IntArray | None = None
        self._summary: VerdictSummary | None = None
        self.passing: BoolArray = np.ones(len(rows), np.bool_)
        self.failed: Rejection | None = None
        """The failure of a filter, if one could not evaluate a row."""

    def add(self, plugin: int, answer: Rejections, positions: IntArray | None = None) -> int:
        """Add the result of a plugin for all rows, or for some positions. Return the number of newly rejected rows."""
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
        """Reject rows because of results on another view of the same nodes."""
        if self._override_of is None:
            self._override_of = np.full(len(self.rows), _NONE, np.int64)
        number = self._override_number.get(rejection)
        if number is None:
            number = self._override_number[rejection] = len(self._overrides)
            self._overrides.append(rejection)
        self._override_of[positions] = number
        by = rejection.plugin
        # Rejections by others than filters, such as extenders, come after the filters.
        self._refused_by[positions] = self._plugins.index(by) if by in self._plugins else len(self._plugins)
        self.passing[positions] = False
        self._summary = None

    def positions_of(self, rows: IntArray) -> IntArray:
        """Return the positions of rows, all of which were evaluated."""
        return self.rows.searchsorted(rows)

    def forget(self, positions: IntArray | int) -> None:
        """Mark rows as passing, until they are evaluated again."""
        self._override_all()
        self._refused_by[positions] = _NONE
        self.passing[positions] = True
        if self._override_of is not None:
            self._override_of[positions] = _NONE
        self._summary = None

    def revise(self, position: int, rejection: Rejection | None) -> None:
        """Replace the result for a row after it was evaluated again; usually it has not changed."""
        self._override_all()
        number = _NONE if self._override_of is None else self._override_of.item(position)
        if rejection == (None if number == _NONE else self._overrides[number]):
            return
        self.forget(position)
        if rejection is not None:
            self.override(position, rejection)

    def _override_all(self) -> None:
        """Convert all results to overrides, since the meaning of a kind depends on the result that it came with."""
        if self._answers:
            for rejection, positions in self.kinds():
                self.override(positions, rejection)
            self._answers = {}

    def only(self, which: BoolArray) -> "Verdicts":
        """Drop the other rows; must be called before anything is overridden."""
        self.rows = self.rows[which]
        self._refused_by = self._refused_by[which]
        self._kinds = self._kinds[which]
        self.passing = self.passing[which]
        return self

    def position_of(self, row: int) -> int | None:
        """Return the position of a row; None if it was not evaluated."""
        position = int(np.searchsorted(self.rows, row))
        return position if position < len(self.rows) and self.rows[position] == row else None

    def refused_before(self, plugins: Collection[str]) -> BoolArray:
        """Return the positions rejected by a filter that runs before any of these plugins, and by none of these."""
        first = next((number for number, name in enumerate(self._plugins) if name in plugins), len(self._plugins))
        before: BoolArray = (self._refused_by != _NONE) & (self._refused_by < first)
        for number, rejection in enumerate(self._overrides):
            if not set(plugins).isdisjoint(rejection.others):
                before &= self._override_of != number
        return before

    def feasible(self) -> IntArray:
        """Return the rows that no filter rejected."""
        return self.rows if are_all_set(self.passing) else self.rows[self.passing]

    def rejection(self, position: int) -> Rejection | None:
        """Return why a row was rejected; None if it was not."""
        plugin = int(self._refused_by[position])
        if plugin == _NONE:
            return None
        override = _NONE if self._override_of is None else int(self._override_of[position])
        if override != _NONE:
            return self._overrides[override]
        return self._rejection(plugin, int(self._kinds[position]))

    def _rejection(self, plugin: int, kind: int) -> Rejection:
        return rejection_for(self._plugins[plugin], self._answers[plugin], kind)

    def summary(self) -> VerdictSummary:
        """Return the current verdicts; the same object until they change."""
        if self._summary is None:
            self._summary = VerdictSummary(self.rows, list(self._distinct_rejections()))
        return self._summary

    def kinds(self) -> Sequence[tuple[Rejection, IntArray]]:
        """Return `VerdictSummary.kinds`."""
        return self.summary().kinds()

    def _distinct_rejections(self) -> Iterator[tuple[Rejection, IntArray]]:
        overridden = None if self._override_of is None else self._override_of != _NONE
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
            for kind, members in groups(self._kinds[positions]):
                yield self._rejection(plugin, kind), positions[members]


def groups(kinds: IntArray) -> Iterator[tuple[int, BoolArray | slice]]:
    """Yield the distinct kinds, each with its positions."""
    if len(kinds) and kinds[0] == kinds[-1] and (kinds == kinds[0]).all():
        # Usually all nodes are rejected for the same reason, and finding distinct values is slow.
        yield int(kinds[0]), slice(None)
        return
    for kind in np.unique(kinds):
        yield int(kind), kinds == kind
