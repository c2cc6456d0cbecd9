"""Resource quotas: the usage of each namespace, updated incrementally with each change."""

from collections.abc import Iterable

from kubestow.apiserver import quota
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.queue import CUSTOM
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_QUOTAS = "resourcequotas"
_NOT_COUNTED = ("events", "leases.coordination.k8s.io")


class Quotas:
    """Updates the status of ResourceQuotas."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._used: dict[Key, quota.Usage] = {}
        """For each quota, the usage of the objects it counts."""
        counted = (one.storage for one in BY_STORAGE.values() if one.namespaced and one.storage not in _NOT_COUNTED)
        self.sources = {**dict.fromkeys((*counted, CUSTOM), self._object_keys), _QUOTAS: self._quota_keys}

    def _quota_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        key = (record.namespace, record.name)
        previous = change.previous.object()["spec"] if change.previous is not None else None
        if change.type == "DELETED" or previous != record.object()["spec"]:
            self._used.pop(key, None)
        return [key, *self._object_keys(change)]

    def _object_keys(self, change: Change) -> Iterable[Key]:
        """Return the quotas of a namespace whose usage changed with an object."""
        namespace = change.record.namespace
        found = []
        for name in self._api.store.collection(_QUOTAS).by_namespace.get(namespace, ()):
            used = self._used.get((namespace, name))
            if used is not None and self._recount(used, (namespace, name), change):
                found.append((namespace, name))
        return found

    def _recount(self, used: quota.Usage, key: Key, change: Change) -> bool:
        before = self._usage(key, change.previous)
        after = self._usage(key, change.record if change.type != "DELETED" else None)
        if before == after:
            return False
        for sign, amounts in ((-1, before), (1, after)):
            for name, amount in amounts.items():
                used[name] = used.get(name, 0) + sign * amount
        return True

    def _usage(self, key: Key, record: Record | None) -> quota.Usage:
        limits = self._api.read(_QUOTAS, *key) if record is not None else None
        if record is None or limits is None:
            return {}
        obj = record.object()
        return quota.usage_of(record.storage, obj) if quota.is_counted(limits, record.storage, obj) else {}

    def reconcile(self, key: Key) -> float | None:
        """Report the usage of a quota; for a new one, all objects are counted once."""
        limits = self._api.read(_QUOTAS, *key)
        if limits is None:
            return None
        used = self._used.get(key)
        if used is None:
            used = self._used[key] = {}
            for storage, collection in self._api.store.collections.items():
                for record in collection.by_namespace.get(key[0], {}).values() if storage not in _NOT_COUNTED else ():
                    for name, amount in self._usage(key, record).items():
                        used[name] = used.get(name, 0) + amount
        hard = limits["spec"].get("hard", {})
        shown = {name: quota.format_amount(name, used.get(name, 0)) for name in hard}
        self._api.set_status(_QUOTAS, limits, {"hard": hard, "used": shown})
        return None
