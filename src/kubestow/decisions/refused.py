"""Whether a node was refused in a decision, and by whom, without telling of all the others.

Many records are looked through for one node: what they share, names and journals, is searched once.
"""

from bisect import bisect_right
from operator import itemgetter

from kubestow.cycle.journal import Said, lets_pass
from kubestow.cycle.trace import Trace
from kubestow.decisions.record import Names, Record
from kubestow.framework.results import Rejection


class RefusedNode:
    """Looks for one node in records that stay as they are meanwhile."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._rows: dict[int, int | None] = {}
        self._said: dict[tuple[int, int], list[tuple[int, Said]]] = {}
        """Of chapters, by identity: what they say of a row that the node had."""

    def by(self, record: Record) -> tuple[str, ...] | None:
        """The plugins that refused it, none if they are not known; None if it was not refused."""
        why = self.why(record)
        return None if why is None else why.plugins if why.reasons else ()

    def why(self, record: Record) -> Rejection | None:
        """The refusal, without reasons if nobody asked for them; None if it was not refused."""
        names, refusals = record.found.names, record.found.refusals
        row = None if names is None else self._row(names)
        if row is None:
            return None
        rejection = None if refusals is None else refusals.of(row)
        if rejection is not None:
            return rejection
        trace = record.trace
        if trace is None or trace.order is None or row not in trace.order[: trace.searched]:
            return None
        rows, left = trace.rows, trace.left
        if rows is None:
            said = self._said_in(trace, row)
            if lets_pass(said):
                return None
        elif row in (rows if left is None else left):
            return None
        else:
            said = (trace.failed or {}).get(row) if row in rows else self._said_in(trace, row)
        return said if isinstance(said, Rejection) else Rejection(())

    def _row(self, names: Names) -> int | None:
        key = id(names)
        if key not in self._rows:
            self._rows[key] = names.of_row.index(self._node) if self._node in names.of_row else None
        return self._rows[key]

    def _said_in(self, trace: Trace, row: int) -> Said:
        if trace.layers is None:
            return None
        chapter = trace.layers.chapter
        key = (id(chapter), row)
        if key not in self._said:
            self._said[key] = list(chapter.about(row))
        return self._said[key][bisect_right(self._said[key], trace.change, key=itemgetter(0)) - 1][1]
