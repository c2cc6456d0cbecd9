"""Namespaces: a new one gets its service account; one that goes is emptied first."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store

_BATCH = 100


class Namespaces:
    """Looks after namespaces."""

    def __init__(self, store: Store, writer: Writer, remover: Remover) -> None:
        self._store = store
        self._writer = writer
        self._remover = remover

    def sources(self) -> dict[str, KeysOf]:
        """Follows namespaces, and pods, since those take their time to go."""
        return {"namespaces": own_key, "pods": self._of_gone}

    def _of_gone(self, change: Change) -> Iterable[Key]:
        return (("", change.record.namespace),) if change.type == "DELETED" else ()

    def visit(self, key: Key) -> float | None:
        """Gives a namespace its service account, or empties it."""
        name = key[1]
        record = self._store.get("namespaces", "", name)
        if record is None:
            return None
        if record.fields[0] != "Terminating":
            if self._store.get("serviceaccounts", name, "default") is None:
                account = {"metadata": {"name": "default"}}
                self._writer.create(BY_STORAGE["serviceaccounts"], name, account, internal())
            return None
        return self._empty(name)

    def _empty(self, name: str) -> float | None:
        left = 0
        for storage, collection in self._store.collections.items():
            for record in list(collection.by_namespace.get(name, {}).values()) if storage != "namespaces" else ():
                if left >= _BATCH:
                    return 0.0
                left += 1
                try:
                    _, gone = self._remover.delete(
                        collection.resource, name, record.name, DeleteOptions(uid=record.uid), internal()
                    )
                    left -= gone
                except ApiError:
                    continue
        if left:
            return 1.0

        def change(current: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, list[str]]]:
            current["spec"]["finalizers"] = [one for one in current["spec"]["finalizers"] if one != "kubernetes"]
            return current

        self._writer.update(BY_STORAGE["namespaces"], "", name, change, internal(), sub="finalize")
        return None
