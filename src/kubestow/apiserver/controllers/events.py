"""Expiry of events: they are deleted one hour after they were last written, or earlier if they take too much memory.

A busy cluster writes an event or more for each pod, so that those of an hour would take gigabytes.
"""

from collections import OrderedDict
from collections.abc import Iterable

from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store

_KEEP_SECONDS = 3600.0
_SWEEP_SECONDS = 60.0
_BATCH = 1000
DEFAULT_BYTES = 64 * 1024 * 1024
_KEPT_SHARE = 15 / 16
"""The share of the limit that is left when events are deleted for their size."""


class Events:
    """Deletes old events; there is one key, reconciled once a minute, and when the events exceed the limit."""

    def __init__(self, store: Store, limit: int = DEFAULT_BYTES) -> None:
        """`limit` is the size of all events in bytes."""
        self._store = store
        self._limit = limit
        self._written: OrderedDict[Key, tuple[float, int]] = OrderedDict()
        """The time at which each event was last written, and its size; oldest first."""
        self._bytes = 0
        self.sources = {"events": self._event_keys}

    def _event_keys(self, change: Change) -> Iterable[Key]:
        key = (change.record.namespace, change.record.name)
        _, size = self._written.pop(key, (0.0, 0))
        self._bytes -= size
        if change.type == "DELETED":
            return ()
        size = change.record.size
        self._written[key] = self._store.clock.now(), size
        self._bytes += size
        return (("", "sweep"),) if len(self._written) == 1 or self._bytes > self._limit else ()

    def reconcile(self, key: Key) -> float | None:  # noqa: ARG002
        """Delete a batch of events that are expired or exceed the limit, oldest first."""
        expiry = self._store.clock.now() - _KEEP_SECONDS
        kept = self._limit * _KEPT_SHARE if self._bytes > self._limit else self._limit
        for _ in range(_BATCH):
            if not self._written:
                return None
            oldest = next(iter(self._written))
            written, size = self._written[oldest]
            if written > expiry and self._bytes <= kept:
                return _SWEEP_SECONDS
            del self._written[oldest]
            self._bytes -= size
            record = self._store.get("events", *oldest)
            if record is not None:
                self._store.delete("events", record)
        return 0.0
