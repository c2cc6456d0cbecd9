"""Namespaces: each has a service account and the server's certificate authority; one that goes is emptied first."""

from collections.abc import Iterable
from itertools import islice

from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change

_BATCH = 100


class Namespaces:
    """Empties namespaces that are to go."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def sources(self) -> dict[str, KeysOf]:
        """Follows namespaces, and pods, since those take their time to go."""
        return {"namespaces": own_key, "pods": self._of_gone}

    def _of_gone(self, change: Change) -> Iterable[Key]:
        return (("", change.record.namespace),) if change.type == "DELETED" else ()

    def visit(self, key: Key) -> float | None:
        """Deletes some of what is left in a namespace; lets it go when nothing is."""
        name = key[1]
        record = self._api.store.get("namespaces", "", name)
        if record is None or record.fields[0] != "Terminating":
            return None
        left, more = 0, False
        for storage, collection in self._api.store.collections.items():
            inside = collection.by_namespace.get(name, {}) if storage != "namespaces" else {}
            left += len(inside)
            going = (one for one in inside.values() if b'"deletionTimestamp":"' not in one.body)
            some = list(islice(going, _BATCH))
            more |= len(some) == _BATCH
            for one in some:
                try:
                    left -= self._api.delete(storage, name, one.name, uid=one.uid)
                except ApiError:
                    continue
        if left:
            return 0.0 if more else 1.0

        def let_go(current: Object) -> None:
            current["spec"]["finalizers"] = [one for one in current["spec"]["finalizers"] if one != "kubernetes"]

        self._api.update("namespaces", "", name, let_go, sub="finalize")
        return None


class InEachNamespace:
    """Keeps one object of a name and content in every namespace that stays."""

    def __init__(self, api: Api, storage: str, name: str, content: Object) -> None:
        self._api = api
        self._storage = storage
        self._name = name
        self._content = content

    def sources(self) -> dict[str, KeysOf]:
        """Follows namespaces, and the objects, which may be changed or deleted."""
        return {"namespaces": own_key, self._storage: self._of_mine}

    def _of_mine(self, change: Change) -> Iterable[Key]:
        return (("", change.record.namespace),) if change.record.name == self._name else ()

    def visit(self, key: Key) -> float | None:
        """Creates or restores the object in one namespace."""
        record = self._api.store.get("namespaces", "", key[1])
        if record is None or record.fields[0] == "Terminating":
            return None
        current = self._api.read(self._storage, key[1], self._name)
        if current is None:
            self._api.create(self._storage, key[1], {"metadata": {"name": self._name}, **self._content})
        elif any(current.get(field) != value for field, value in self._content.items()):
            self._api.update(self._storage, key[1], self._name, lambda one: one.update(self._content))
        return None


def default_service_account(api: Api) -> InEachNamespace:
    """The account of pods that name none."""
    return InEachNamespace(api, "serviceaccounts", "default", {})


def root_certificate(api: Api, authority: str) -> InEachNamespace:
    """What pods verify the API server with."""
    return InEachNamespace(api, "configmaps", "kube-root-ca.crt", {"data": {"ca.crt": authority}})
