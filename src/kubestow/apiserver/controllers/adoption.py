"""Owner references by selectors: matching orphans are adopted, owned objects that no longer match are released.

Only changed objects are checked, and for a new owner the orphans of its namespace: an owner is reconciled often, and
its namespace can contain many objects.
"""

from collections.abc import Iterable

from kubestow.api.labels import EVERYTHING, Selector
from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.objects.removal import set_owners
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record


class Adoption:
    """Updates the owner references of one storage according to the selectors of another."""

    def __init__(self, api: Api, owners: str, owned: str) -> None:
        self._api = api
        self._store = api.store
        self._owners = self._store.collection(owners)
        self._owners_storage = owners
        self._owned = owned
        self._selectors: dict[str, tuple[int, Selector]] = {}
        self._candidates: dict[Key, dict[Key, None]] = {}

    def owner_keys(self, change: Change) -> Iterable[Key]:
        """Return the key of the changed owner; for a new one, record the objects without owner that it selects."""
        owner = change.record
        key = (owner.namespace, owner.name)
        if change.type == "DELETED":
            self._selectors.pop(owner.uid, None)
            self._candidates.pop(key, None)
        elif change.type == "ADDED":
            named = self._store.collection(self._owned).by_namespace.get(owner.namespace, {})
            for record in named.values():
                if not record.owners and self._selects(owner, record):
                    self._candidates.setdefault(key, {})[(record.namespace, record.name)] = None
        return (key,)

    def owned_keys(self, change: Change) -> Iterable[Key]:
        """Return the previous and current owners of a changed object; for an orphan, those that can adopt it."""
        record, previous = change.record, change.previous
        found: dict[Key, None] = {}
        for uid in {*record.owners, *(previous.owners if previous is not None else ())}:
            entry = self._store.by_uid.get(uid)
            if entry is not None and entry[0] == self._owners_storage:
                key = (entry[1].namespace, entry[1].name)
                found[key] = None
                if change.type != "ADDED" and previous is not None and previous.labels != record.labels:
                    self._candidates.setdefault(key, {})[(record.namespace, record.name)] = None
        if not record.owners and change.type != "DELETED":
            for owner in self._owners.by_namespace.get(record.namespace, {}).values():
                if self._selects(owner, record):
                    key = (owner.namespace, owner.name)
                    found[key] = None
                    self._candidates.setdefault(key, {})[(record.namespace, record.name)] = None
        return found

    def apply(self, owner: Record) -> None:
        """Adopt and release the objects recorded for an owner."""
        candidates = self._candidates.pop((owner.namespace, owner.name), None)
        if not candidates:
            return
        obj = owner.object()
        if "deletionTimestamp" in obj["metadata"]:
            return
        for namespace, name in candidates:
            record = self._store.get(self._owned, namespace, name)
            if record is None:
                continue
            selected = self._selects(owner, record)
            if selected and not record.owners:
                self._adopt(record, obj)
            elif not selected and owner.uid in record.owners:
                self._release(record, owner.uid)

    def _selects(self, owner: Record, record: Record) -> bool:
        known = self._selectors.get(owner.uid)
        if known is None or known[0] != owner.rv:
            selector = owner.object()["spec"].get("selector") or {}
            if self._owners_storage == "replicationcontrollers":
                selector = {"matchLabels": selector}
            known = (owner.rv, from_object(selector) or EVERYTHING)
            self._selectors[owner.uid] = known
        return bool(known[1].requirements) and known[1].matches(record.labels)

    def _adopt(self, record: Record, owner: Object) -> None:
        def adopt(current: Object) -> None:
            if "deletionTimestamp" not in current["metadata"]:
                current["metadata"]["ownerReferences"] = [reference(owner)]

        self._api.update(self._owned, record.namespace, record.name, adopt)

    def _release(self, record: Record, uid: str) -> None:
        def release(current: Object) -> None:
            set_owners(current, [one for one in current["metadata"]["ownerReferences"] if one["uid"] != uid])

        self._api.update(self._owned, record.namespace, record.name, release)
