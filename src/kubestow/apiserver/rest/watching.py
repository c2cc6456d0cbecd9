"""Watches: streams of the changes after a resource version.

Each watch buffers its lines; all buffers are flushed together, at most every two milliseconds, so that a burst of
writes costs one send per watch rather than one per change. The connection closes a watch whose client does not read
fast enough; that client watches again from the last version it received.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from kubestow.apiserver import errors
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.rest import views
from kubestow.apiserver.rest.reading import Selection, is_true, version_of, whole_number
from kubestow.apiserver.store.collection import Collection
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.server.http.connection import Connection
from kubestow.server.http.messages import Request

_FLUSH_SECONDS = 0.002
_BOOKMARK_SECONDS = 60.0
_DEFAULT_SECONDS = 2400.0


class Watchers:
    """The open watches of a server."""

    def __init__(self, store: Store, *, max_watches: int) -> None:
        self.store = store
        self._max_watches = max_watches
        self._open: dict[Watch, Callable[[], None]] = {}
        """The function to call when a watch is closed, by watch."""
        self._sent: Counter[tuple[str, ...]] = Counter()
        """The number of events sent to closed watches, by group, resource and version."""
        self._due: list[Watch] = []
        self._loop = asyncio.get_running_loop()
        self._flushed_at = 0.0
        self._flush_timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._bookmark_timer: asyncio.TimerHandle = self._loop.call_later(_BOOKMARK_SECONDS, self._send_bookmarks)

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self,
        request: Request,
        connection: Connection,
        resource: Resource,
        selected: Selection,
        form: str,
        opened: Callable[[], Callable[[], None]],
    ) -> None:
        """Start the response to a watch request; raises ApiError at the limit of open watches.

        `opened` is called when the watch is open, and returns the function to call when it is closed.
        """
        if len(self._open) >= self._max_watches:
            raise errors.too_many_requests(
                f"{self._max_watches} watches are open, which is the limit; try again later", retry_after=5
            )
        seconds = whole_number(request.query, "timeoutSeconds") or _DEFAULT_SECONDS
        watch = Watch(self, connection, resource, selected, form, request.query)
        lines = watch.first_lines(request.query)
        self._open[watch] = opened()
        watch.sent = len(lines)
        watch.timer = self._loop.call_later(min(seconds, 24 * 3600.0), watch.finish)
        connection.open_stream(b"application/json", watch.close, b"".join(lines))

    def schedule_flush(self, watch: "Watch") -> None:
        """Flush a watch within two milliseconds."""
        self._due.append(watch)
        if self._flush_timer is None:
            wait = self._flushed_at + _FLUSH_SECONDS - self._loop.time()
            if wait > 0:
                self._flush_timer = self._loop.call_later(wait, self._flush)
            else:
                self._flush_timer = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_timer = None
        due, self._due = self._due, []
        for watch in due:
            watch.flush()
        self._flushed_at = self._loop.time()

    def remove(self, watch: "Watch") -> None:
        """Remove a finished watch."""
        closed = self._open.pop(watch, None)
        if closed is not None:
            self._sent[watch.labels] += watch.sent
            closed()

    def events(self) -> dict[tuple[str, ...], float]:
        """Return the number of events sent to watches, by group, resource and version."""
        found = self._sent.copy()
        for watch in self._open:
            found[watch.labels] += watch.sent
        return dict(found)

    def _send_bookmarks(self) -> None:
        for watch in list(self._open):
            if watch.bookmarks:
                watch.append(views.bookmark(watch.resource, self.store.durable_rv, watch.form))
        self._bookmark_timer = self._loop.call_later(_BOOKMARK_SECONDS, self._send_bookmarks)

    def close(self) -> None:
        """Finish all watches."""
        self._bookmark_timer.cancel()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        for watch in list(self._open):
            watch.finish()


class Watch:
    """A stream of the selected changes of one resource to one client."""

    def __init__(
        self,
        watchers: Watchers,
        connection: Connection,
        resource: Resource,
        selected: Selection,
        form: str,
        query: dict[str, str],
    ) -> None:
        self.resource = resource
        self.form = form
        self.bookmarks = is_true(query, "allowWatchBookmarks")
        self.timer: asyncio.TimerHandle | None = None
        self.labels = (resource.group, resource.plural, resource.version)
        self.sent = 0
        """Number of events sent to the client."""
        self._include = query.get("includeObject", "Metadata")
        self._watchers = watchers
        self._connection = connection
        self._selected = selected
        self._started_at = 0
        self._lines: list[bytes] = []
        self._collection: Collection = watchers.store.collection(resource.storage)
        self._everything = selected.everything
        self._topic = selected.topic
        self._change_callback: Callable[[Change], None] = self.on_change
        self._end_callback: Callable[[], None] = self.finish

    def first_lines(self, query: dict[str, str]) -> list[bytes]:
        """Subscribe to changes; return the events that come before: missed changes, or the existing objects."""
        store = self._watchers.store
        rv = version_of(query.get("resourceVersion", ""))
        initial = query.get("sendInitialEvents")
        match = query.get("resourceVersionMatch", "")
        if initial is not None and match != "NotOlderThan":
            raise errors.bad_request("sendInitialEvents: needs resourceVersionMatch=NotOlderThan")
        if match and initial is None:
            raise errors.bad_request(
                "resourceVersionMatch: is forbidden for watch unless sendInitialEvents is provided"
            )
        if rv > store.rv:
            raise errors.expired(f"too large resource version: {rv}, current: {store.rv}")
        from_start = is_true(query, "sendInitialEvents") or (initial is None and rv == 0)
        lines: list[bytes] = []
        if from_start:
            self._started_at = store.rv
            lines = [
                views.event_line("ADDED", views.single(self.resource, record, self.form, self._include))
                for record in self._collection.ordered(self._selected.namespace)
                if self._everything or self._selected.matches(record)
            ]
            if initial is not None and self.bookmarks:
                lines.append(views.bookmark(self.resource, store.rv, self.form, initial_end=True))
        else:
            self._started_at = rv or store.rv
            for change in self._collection.since(self._started_at):
                line = self._line(change)
                if line is not None:
                    lines.append(line)
        self._collection.subscribe(self._change_callback, self._topic)
        self._collection.end_callbacks.append(self._end_callback)
        return lines

    def _line(self, change: Change) -> bytes | None:
        """Return the event of a change in terms of the selection; None if it is not concerned."""
        type_ = change.type
        if not self._everything:
            before = change.previous is not None and self._selected.matches(change.previous)
            after = type_ != "DELETED" and self._selected.matches(change.record)
            if after:
                type_ = "MODIFIED" if before else "ADDED"
            elif before:
                type_ = "DELETED"
            else:
                return None
        return views.watch_line(self.resource, change, type_, self.form, self._include)

    def on_change(self, change: Change) -> None:
        """Send a change to the client; called by the collection."""
        if change.rv > self._started_at:
            line = self._line(change)
            if line is not None:
                self.append(line)

    def append(self, line: bytes) -> None:
        """Buffer a line and schedule its flush."""
        if not self._lines:
            self._watchers.schedule_flush(self)
        self._lines.append(line)

    def flush(self) -> None:
        """Send the buffered lines."""
        lines, self._lines = self._lines, []
        self.sent += len(lines)
        self._connection.write(b"".join(lines))

    def finish(self) -> None:
        """Send a last bookmark and end the stream."""
        if self.bookmarks:
            self._lines.append(views.bookmark(self.resource, self._watchers.store.durable_rv, self.form))
        self.flush()
        self.close()
        self._connection.end_stream()

    def close(self) -> None:
        """Unsubscribe from changes; called when the client is gone."""
        if self.timer is not None:
            self.timer.cancel()
        self._collection.unsubscribe(self._change_callback, self._topic)
        if self._end_callback in self._collection.end_callbacks:
            self._collection.end_callbacks.remove(self._end_callback)
        self._watchers.remove(self)
