"""Expiry of events: they are deleted one hour after they were last written."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store

_KEEP_SECONDS = 3600.0
_SWEEP_SECONDS = 60.0
_BATCH = 1000


class Events:
    """Deletes old events; there is one key, reconciled once a minute."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: dict[Key, float] = {}

    def sources(self) -> dict[str, KeysOf]:
        """Watch events."""
        return {"events": self._event_keys}

    def _event_keys(self, change: Change) -> Iterable[Key]:
        key = (change.record.namespace, change.record.name)
        self._written.pop(key, None)
        if change.type == "DELETED":
            return ()
        self._written[key] = self._store.clock.now()
        return (("", "sweep"),) if len(self._written) == 1 else ()

    def reconcile(self, key: Key) -> float | None:  # noqa: ARG002
        """Delete a batch of expired events, oldest first."""
        expiry = self._store.clock.now() - _KEEP_SECONDS
        expired: list[Key] = []
        for event, written in self._written.items():
            if written > expiry or len(expired) >= _BATCH:
                break
            expired.append(event)
        for namespace, name in expired:
            record = self._store.get("events", namespace, name)
            if record is not None:
                self._store.delete("events", record)
        if not self._written:
            return None
        return 0.0 if len(expired) == _BATCH else _SWEEP_SECONDS
