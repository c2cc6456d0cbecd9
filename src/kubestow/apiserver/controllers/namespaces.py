"""Namespaces: their default objects (service account, certificate authority), and deletion of their content."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from kubestow.apiserver.controllers.api import Api, Object, condition_of
from kubestow.apiserver.controllers.queue import own_key
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_BATCH = 100
_UNBLOCKED = {
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
"""The conditions of a terminating namespace, with reason and message while nothing blocks the deletion."""


class Namespaces:
    """Deletes the content of terminating namespaces."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sources = {"namespaces": own_key, "pods": self._namespace_keys}

    def _namespace_keys(self, change: Change) -> Iterable[Key]:
        return (("", change.record.namespace),) if change.type == "DELETED" else ()

    def reconcile(self, key: Key) -> float | None:
        """Delete a batch of the content of a namespace, pods first; remove its finalizer once it is empty."""
        name = key[1]
        record = self._api.store.get("namespaces", "", name)
        if record is None or record.fields[0] != "Terminating":
            return None
        more = self._delete("pods", name)
        if not self._content("pods", name):
            more = max(self._delete(storage, name) for storage in [*self._api.store.collections])
        left = {one: inside for one in self._api.store.collections if (inside := self._content(one, name))}
        if left:
            namespace = record.object()
            status = {"phase": "Terminating", "conditions": self._conditions(namespace, left)}
            self._api.set_status("namespaces", namespace, status)
            return 0.0 if more else 1.0

        def release(current: Object) -> None:
            current["spec"]["finalizers"] = [one for one in current["spec"]["finalizers"] if one != "kubernetes"]

        self._api.update("namespaces", "", name, release, sub="finalize")
        return None

    def _content(self, storage: str, namespace: str) -> dict[str, Record]:
        return self._api.store.collection(storage).by_namespace.get(namespace, {}) if storage != "namespaces" else {}

    def _delete(self, storage: str, namespace: str) -> bool:
        """Delete a batch of objects; return whether more may remain that are not being deleted yet."""
        live = (one for one in self._content(storage, namespace).values() if b'"deletionTimestamp":"' not in one.body)
        batch = list(islice(live, _BATCH))
        for one in batch:
            with suppress(ApiError):
                self._api.delete(storage, namespace, one.name, uid=one.uid)
        return len(batch) == _BATCH

    def _conditions(self, namespace: Object, left: dict[str, dict[str, Record]]) -> list[Object]:
        """Return the conditions that explain why the namespace still exists."""
        found = dict(_UNBLOCKED)
        held = Counter(
            finalizer
            for inside in left.values()
            for one in inside.values()
            if b'"finalizers":[' in one.body
            for finalizer in one.object()["metadata"].get("finalizers", ())
        )
        counts = [f"{one if '.' in one else f'{one}.'} has {len(left[one])} resource instances" for one in sorted(left)]
        found["NamespaceContentRemaining"] = (
            "SomeResourcesRemain", f"Some resources are remaining: {', '.join(counts)}",
        )  # fmt: skip
        if held:
            listed = ", ".join(f"{finalizer} in {held[finalizer]} resource instances" for finalizer in sorted(held))
            message = f"Some content in the namespace has finalizers remaining: {listed}"
            found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
        conditions = []
        for kind, (reason, message) in found.items():
            status = "False" if _UNBLOCKED[kind] == (reason, message) else "True"
            before = condition_of(namespace, kind) or {}
            since = before["lastTransitionTime"] if before.get("status") == status else self._api.store.now()
            conditions.append(
                {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
            )
        return conditions


class InEachNamespace:
    """Maintains an object with a fixed name and content in every namespace that is not terminating."""

    def __init__(self, api: Api, storage: str, name: str, content: Object) -> None:
        self._api = api
        self._storage = storage
        self._name = name
        self._content = content
        self.sources = {"namespaces": own_key, self._storage: self._object_keys}

    def _object_keys(self, change: Change) -> Iterable[Key]:
        return (("", change.record.namespace),) if change.record.name == self._name else ()

    def reconcile(self, key: Key) -> float | None:
        """Create or restore the object in one namespace."""
        record = self._api.store.get("namespaces", "", key[1])
        if record is None or record.fields[0] == "Terminating":
            return None
        current = self._api.read(self._storage, key[1], self._name)
        if current is None:
            self._api.create(self._storage, key[1], {"metadata": {"name": self._name}, **self._content})
        elif any(current.get(field) != value for field, value in self._content.items()):
            self._api.update(self._storage, key[1], self._name, lambda one: one.update(self._content))
        return None
