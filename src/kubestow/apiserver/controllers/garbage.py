"""Garbage: objects whose owners are all gone go too; owners deleted in the foreground wait for their dependents."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.controllers.queue import CUSTOM, KeysOf
from kubestow.apiserver.objects.removal import FOREGROUND
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_BATCH = 100


class GarbageCollector:
    """Follows everything; its keys are uids."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._store = api.store

    def sources(self) -> dict[str, KeysOf]:
        """An owner that goes concerns its dependents; an object with owners concerns itself and them."""
        followed = (*(storage for storage in BY_STORAGE if storage != "leases.coordination.k8s.io"), CUSTOM)
        return dict.fromkeys(followed, self._keys)

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

    def visit(self, key: Key) -> float | None:
        """Deletes what has lost its owners."""
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
        """Deletes the dependents of an owner that is gone, some at a time."""
        begun = 0
        for storage, namespace, name in tuple(self._store.dependents.get(uid, ())):
            record = self._store.get(storage, namespace, name)
            if record is not None:
                begun += self._collect(storage, record)
                if begun >= _BATCH:
                    return 0.0
        return None

    def _collect(self, storage: str, record: Record) -> bool:
        """Deletes an object if no owner of it stays, else drops the owners that do not; whether it deleted it."""
        metadata = record.object()["metadata"]
        owners = metadata.get("ownerReferences", ())
        if not owners or "deletionTimestamp" in metadata:
            return False
        waiting = [owner["uid"] for owner in owners if self._waits(owner["uid"])]
        stay = [owner for owner in owners if self._is_there(owner) and owner["uid"] not in waiting]
        if not stay:
            how = "Foreground" if waiting else ""
            self._api.delete(storage, record.namespace, record.name, uid=record.uid, how=how)
            return True
        if len(stay) < len(owners):
            alter = lambda one: one["metadata"].update(ownerReferences=stay)  # noqa: E731
            self._api.update(storage, record.namespace, record.name, alter)
        return False

    def _waits(self, uid: str) -> bool:
        """Whether an owner is to go once its dependents are gone."""
        entry = self._store.by_uid.get(uid)
        return entry is not None and b'"deletionTimestamp":' in entry[1].body and FOREGROUND.encode() in entry[1].body

    def _is_there(self, owner: dict[str, str]) -> bool:
        """Whether an owner lives; owners of kinds that are not served here are taken to."""
        known = (owner["apiVersion"], owner["kind"]) in self._store.registry.by_kind
        return not known or owner["uid"] in self._store.by_uid

    def _foreground(self, uid: str) -> None:
        """Deletes the dependents of an owner that waits for them; lets it go once none that blocks it is left."""
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

            def let_go(current: Object) -> None:
                left = [one for one in current["metadata"].get("finalizers", ()) if one != FOREGROUND]
                current["metadata"]["finalizers"] = left

            self._api.update(storage, record.namespace, record.name, let_go)
