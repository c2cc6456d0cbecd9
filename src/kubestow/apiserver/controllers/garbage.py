"""Garbage collection: objects without any remaining owner are deleted; foreground deletion waits for dependents."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.queue import CUSTOM
from kubestow.apiserver.objects.removal import FOREGROUND
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_BATCH = 100


class GarbageCollector:
    """Deletes dependents of deleted owners. Keys are a UID and what to do: `owner`, `orphan` or `orphans`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._store = api.store
        watched = (*(storage for storage in BY_STORAGE if storage != "leases.coordination.k8s.io"), CUSTOM)
        self.sources = dict.fromkeys(watched, self._keys)

    def _keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        keys: list[Key] = []
        if change.type == "DELETED":
            keys += [("orphans", record.uid)] if record.uid in self._store.dependents else []
            keys += [("owner", owner) for owner in record.owners]
        else:
            if record.owners and (change.previous is None or change.previous.owners != record.owners):
                keys.append(("orphan", record.uid))
            if b'"deletionTimestamp"' in record.body and FOREGROUND.encode() in record.body:
                keys.append(("owner", record.uid))
        return keys

    def reconcile(self, key: Key) -> float | None:
        """Delete an object without owners, or the dependents of an owner."""
        what, uid = key
        if what == "orphan":
            entry = self._store.by_uid.get(uid)
            if entry is not None:
                self._collect(*entry)
        elif what == "orphans":
            return self._collect_dependents(uid)
        else:
            self._foreground(uid)
        return None

    def _collect_dependents(self, uid: str) -> float | None:
        """Delete a batch of the dependents of a deleted owner."""
        deleted = 0
        for storage, namespace, name in tuple(self._store.dependents.get(uid, ())):
            record = self._store.get(storage, namespace, name)
            if record is not None:
                deleted += self._collect(storage, record)
                if deleted >= _BATCH:
                    return 0.0
        return None

    def _collect(self, storage: str, record: Record) -> bool:
        """Delete an object if none of its owners remains, else drop the missing ones; return whether it was deleted."""
        metadata = record.object()["metadata"]
        owners = metadata.get("ownerReferences", ())
        if not owners or "deletionTimestamp" in metadata:
            return False
        waiting = [owner["uid"] for owner in owners if self._waits(owner["uid"])]
        remaining = [owner for owner in owners if self._exists(owner) and owner["uid"] not in waiting]
        if not remaining:
            how = "Foreground" if waiting else ""
            self._api.delete(storage, record.namespace, record.name, uid=record.uid, how=how)
            return True
        if len(remaining) < len(owners):
            alter = lambda one: one["metadata"].update(ownerReferences=remaining)  # noqa: E731
            self._api.update(storage, record.namespace, record.name, alter)
        return False

    def _waits(self, uid: str) -> bool:
        """Return whether an owner is being deleted in the foreground."""
        entry = self._store.by_uid.get(uid)
        return entry is not None and b'"deletionTimestamp":' in entry[1].body and FOREGROUND.encode() in entry[1].body

    def _exists(self, owner: dict[str, str]) -> bool:
        """Return whether an owner exists; owners of kinds that are not served count as existing."""
        known = (owner["apiVersion"], owner["kind"]) in self._store.registry.by_kind
        return not known or owner["uid"] in self._store.by_uid

    def _foreground(self, uid: str) -> None:
        """Delete the dependents of an owner deleted in the foreground; remove its finalizer once none blocks it."""
        entry = self._store.by_uid.get(uid)
        if entry is None:
            return
        storage, record = entry
        if not self._waits(uid):
            return
        blocking = False
        for dependent_storage, namespace, name in tuple(self._store.dependents.get(uid, ())):
            dependent = self._store.get(dependent_storage, namespace, name)
            if dependent is not None:
                self._collect(dependent_storage, dependent)
                dependent = self._store.get(dependent_storage, namespace, name)
            if dependent is not None:
                owners = dependent.object()["metadata"].get("ownerReferences", ())
                blocking |= any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in owners)
        if not blocking:
            self._api.remove_finalizer(storage, record.namespace, record.name, FOREGROUND)
