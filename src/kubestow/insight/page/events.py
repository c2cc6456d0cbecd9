"""Sends moments as server-sent events: one message for all readers; a reader that reconnects gets the changes since."""

import asyncio
from typing import Any

import msgspec

from kubestow.insight.page.history import PageHistory
from kubestow.insight.page.moments import Moment
from kubestow.insight.page.tables import live_rows, rows_of, usage
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import chunk
from kubestow.server.pages import Stream
from kubestow.server.serving import SAFE

MOST_READERS = 16
_TYPE = b"text/event-stream"


class Events:
    """Sends every moment to all readers."""

    def __init__(self, history: PageHistory) -> None:
        self._history = history
        self._readers: set[Connection] = set()
        self._layout = -1
        self._positions: dict[int, int] = {}
        """The positions of nodes in this layout, by row."""
        self.came = asyncio.Event()
        """Set when a reader connects."""

    def __len__(self) -> int:
        """Return the number of readers."""
        return len(self._readers)

    def publish(self, moment: Moment) -> None:
        """Send the last moment, right after it was added to the history."""
        if moment.layout != self._layout:
            self._layout, rows = moment.layout, live_rows(self._history.now.cluster.nodes)
            self._positions = {row: position for position, row in enumerate(rows)}
        if self._readers and (line := self._change(moment.number - 1)) is not None:
            for reader in list(self._readers):
                reader.write(line)

    def follow(self, since: int | None, about: bytes) -> Stream:
        """Return a stream from a moment on, or from now for None. Raises ApiError if there are too many readers."""
        if len(self._readers) >= MOST_READERS:
            raise ApiError(429, "TooManyRequests", f"{MOST_READERS} pages are open, which is the limit")

        def begin(connection: Connection) -> None:
            # Only now, as the reader joins the others: nothing is missed in between.
            number = self._history.now.last.number
            first = None if since is None else b"" if since == number else self._change(since)
            if first is None:
                first = _event("reset", number, about)
            self._readers.add(connection)
            self.came.set()
            connection.open_stream(_TYPE, lambda: self._readers.discard(connection), first, SAFE)

        return begin

    def _change(self, since: int) -> bytes | None:
        """Return an event with all changes since a moment; None if that is too long ago."""
        found = self._history.since(since)
        if found is None:
            return None
        before, moment = found
        queue = rows_of(moment.waiting)
        tree: dict[str, Any] = {
            "time": moment.time,
            "moment": moment.number,
            "layout": moment.layout,
            "queue": {
                "counts": moment.figures.pending,
                "reasons": queue["reasons"],
                "rows": queue["rows"],
                "left": moment.left,
            },
            "figures": moment.figures,
            "decision": moment.decision,
        }
        if before.layout == moment.layout:
            table = self._history.now.cluster.nodes
            rows = [row for row in table.changes.since(before.row_changes) if row in self._positions]
            if rows:
                tree["usage"] = {"at": [self._positions[row] for row in rows], **usage(table, rows)}
        return _event("change", moment.number, msgspec.json.encode(tree))


def _event(kind: str, number: int, data: bytes) -> bytes:
    return chunk(b"id: %d\nevent: %b\ndata: %b\n\n" % (number, kind.encode(), data))
