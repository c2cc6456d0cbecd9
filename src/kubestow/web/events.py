"""Moments as they come, as server-sent events: one message for all readers; who was away is told what it missed."""

import asyncio
from typing import Any

import msgspec

from kubestow.http.connection import Connection
from kubestow.http.errors import ApiError
from kubestow.http.messages import chunk
from kubestow.server.pages import Stream
from kubestow.server.serving import SAFE
from kubestow.web.history import History
from kubestow.web.moments import Moment
from kubestow.web.tables import rows_of

MOST_READERS = 16
_TYPE = b"text/event-stream"


class Events:
    """Tells readers what is new."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._readers: set[Connection] = set()
        self.came = asyncio.Event()
        """Set when there is one more reader."""

    def __len__(self) -> int:
        """How many listen."""
        return len(self._readers)

    def tell(self, moment: Moment) -> None:
        """One more moment."""
        if self._readers:
            line = self._change(moment)
            for reader in list(self._readers):
                reader.write(line)

    def follow(self, since: int | None, about: bytes) -> Stream:
        """A stream for one more, who knows a moment or nothing; raises ApiError if there are too many."""
        if len(self._readers) >= MOST_READERS:
            raise ApiError(429, "TooManyRequests", f"{MOST_READERS} pages are open, which is the limit")

        def begin(connection: Connection) -> None:
            # As it is when the reader is one of those that are told: nothing is missed in between.
            number = self._history.now.moment
            missed = None if since is None else self._history.since(since)
            first = b""
            if missed is None:
                first = _event("reset", number, about)
            elif since != number:
                first = self._change(missed)
            self._readers.add(connection)
            self.came.set()
            connection.open_stream(_TYPE, lambda: self._readers.discard(connection), first, SAFE)

        return begin

    def _change(self, moment: Moment) -> bytes:
        rows = rows_of(moment.waiting)
        tree: dict[str, Any] = {
            "time": moment.time,
            "moment": moment.number,
            "layout": self._history.now.layout.number,
            "queue": {
                "counts": moment.figures.pending,
                "reasons": rows["reasons"],
                "rows": rows["rows"],
                "left": moment.left,
            },
            "figures": moment.figures,
            "decision": moment.decision,
        }
        if moment.layout is None and moment.usage is not None:
            tree["usage"] = moment.usage
        return _event("change", moment.number, msgspec.json.encode(tree))


def _event(kind: str, number: int, data: bytes) -> bytes:
    return chunk(b"id: %d\nevent: %b\ndata: %b\n\n" % (number, kind.encode(), data))
