"""Namespaces: each has a service account and the server's certificate authority; one that goes is emptied first."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from kubestow.apiserver.controllers.api import Api, Object, condition_of
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_BATCH = 100
_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions", "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted", "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}  # fmt: skip
"""Conditions of a namespace that goes, with reason and message as long as nothing stands in the way."""


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
        """Deletes some of what is left in a namespace, pods before all else; lets it go when nothing is."""
        name = key[1]
        record = self._api.store.get("namespaces", "", name)
        if record is None or record.fields[0] != "Terminating":
            return None
        more = self._delete("pods", name)
        if not self._left("pods", name):
            more = max(self._delete(storage, name) for storage in [*self._api.store.collections])
        left = {one: inside for one in self._api.store.collections if (inside := self._left(one, name))}
        if left:
            namespace = record.object()
            status = {"phase": "Terminating", "conditions": self._conditions(namespace, left)}
            self._api.set_status("namespaces", namespace, status)
            return 0.0 if more else 1.0

        def let_go(current: Object) -> None:
            current["spec"]["finalizers"] = [one for one in current["spec"]["finalizers"] if one != "kubernetes"]

        self._api.update("namespaces", "", name, let_go, sub="finalize")
        return None

    def _left(self, storage: str, namespace: str) -> dict[str, Record]:
        return self._api.store.collection(storage).by_namespace.get(namespace, {}) if storage != "namespaces" else {}

    def _delete(self, storage: str, namespace: str) -> bool:
        """Deletes a batch of objects; whether there may be more that nobody asked to go yet."""
        going = (one for one in self._left(storage, namespace).values() if b'"deletionTimestamp":"' not in one.body)
        some = list(islice(going, _BATCH))
        for one in some:
            with suppress(ApiError):
                self._api.delete(storage, namespace, one.name, uid=one.uid)
        return len(some) == _BATCH

    def _conditions(self, namespace: Object, left: dict[str, dict[str, Record]]) -> list[Object]:
        """Why the namespace is still there."""
        told = dict(_FINE)
        held = Counter(
            finalizer
            for inside in left.values()
            for one in inside.values()
            if b'"finalizers":[' in one.body
            for finalizer in one.object()["metadata"].get("finalizers", ())
        )
        counts = [f"{one if '.' in one else f'{one}.'} has {len(left[one])} resource instances" for one in sorted(left)]
        told["NamespaceContentRemaining"] = (
            "SomeResourcesRemain", f"Some resources are remaining: {', '.join(counts)}",
        )  # fmt: skip
        if held:
            listed = ", ".join(f"{finalizer} in {held[finalizer]} resource instances" for finalizer in sorted(held))
            message = f"Some content in the namespace has finalizers remaining: {listed}"
            told["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
        conditions = []
        for kind, (reason, message) in told.items():
            status = "False" if _FINE[kind] == (reason, message) else "True"
            before = condition_of(namespace, kind) or {}
            since = before["lastTransitionTime"] if before.get("status") == status else self._api.store.now()
            conditions.append(
                {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
            )
        return conditions


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
