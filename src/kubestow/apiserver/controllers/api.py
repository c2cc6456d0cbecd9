"""The interface through which controllers read and write the cluster.

Reads and writes go directly to the store, the time is the store's clock, and nothing waits. In a simulation, the store
has a virtual clock and a seeded random generator, so that controllers act in the same order in every run.
"""

from collections.abc import Callable, Iterator
from typing import Any

from kubestow.apiserver.controllers.recording import Recorder
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.rules.pods import put_condition
from kubestow.apiserver.store.records import Record

Object = dict[str, Any]


class Api:
    """Access of controllers to the store."""

    def __init__(self, writer: Writer, remover: Remover) -> None:
        self.store = writer.store
        self._writer = writer
        self._remover = remover
        self._recorder = Recorder(writer)

    def now(self) -> float:
        """Return the current time in seconds since the epoch."""
        return self.store.clock.now()

    def read(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return a new decoded copy of an object; None if it does not exist."""
        record = self.store.get(storage, namespace, name)
        return record.object() if record is not None else None

    def owned(self, uid: str, storage: str) -> Iterator[Record]:
        """Yield the objects of one storage that an object controls, oldest first."""
        for kind, namespace, name in tuple(self.store.dependents.get(uid, ())):
            record = self.store.get(kind, namespace, name) if kind == storage else None
            if record is not None and _controls(uid, record):
                yield record

    def create(self, storage: str, namespace: str, obj: Object) -> Record:
        """Create an object. Raises ApiError if it is rejected."""
        return self._writer.create(self.store.collection(storage).resource, namespace, obj, internal())

    def update(
        self, storage: str, namespace: str, name: str, alter: Callable[[Object], Any], *, sub: str = ""
    ) -> Record:
        """Call `alter` to modify the current object in place, and write the result."""

        def change(current: Object) -> Object:
            alter(current)
            return current

        return self._writer.update(
            self.store.collection(storage).resource, namespace, name, change, internal(), sub=sub
        )

    def remove_finalizer(self, storage: str, namespace: str, name: str, finalizer: str) -> None:
        """Remove a finalizer of an object; no effect if the object does not exist or does not have it."""

        def alter(current: Object) -> None:
            finalizers = current["metadata"]["finalizers"]
            finalizers.remove(finalizer)
            if not finalizers:
                del current["metadata"]["finalizers"]

        obj = self.read(storage, namespace, name)
        if obj is not None and finalizer in obj["metadata"].get("finalizers", ()):
            self.update(storage, namespace, name, alter)

    def set_status(self, storage: str, obj: Object, status: Object) -> None:
        """Write a status if it differs from that of the object."""
        if obj.get("status", {}) != status:
            metadata = obj["metadata"]
            self.update(
                storage, metadata.get("namespace", ""), metadata["name"], lambda one: one.update(status=status),
                sub="status",
            )  # fmt: skip

    def delete(
        self, storage: str, namespace: str, name: str, *, uid: str = "", grace: int | None = None, how: str = ""
    ) -> bool:
        """Delete an object; return whether it is removed already. It is no error if it does not exist."""
        options = DeleteOptions(grace_seconds=grace, uid=uid, propagation=how or "Background")
        try:
            resource = self.store.collection(storage).resource
            return self._remover.delete(resource, namespace, name, options, internal())[1]
        except ApiError as error:
            if error.code != 404:
                raise
            return True

    def event(self, component: str, obj: Object, reason: str, message: str, type_: str = "Normal") -> None:
        """Record an event of a component about an object."""
        self._recorder.record(component, obj, reason, message, type_)


def reference(owner: Object) -> Object:
    """Return an owner reference to the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(obj: Object, type_: str) -> Object | None:
    """Return a condition of an object's status; None if it is not set."""
    conditions: list[Object] = obj.get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == type_), None)


def has_condition(obj: Object, type_: str) -> bool:
    """Return whether a condition of an object's status is True."""
    return (condition_of(obj, type_) or {}).get("status") == "True"


def set_condition(
    conditions: list[Object], type_: str, status: str, reason: str, message: str, now: str, **more: Any
) -> None:
    """Set a condition in a list; its transition time changes only with its status."""
    new = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
    put_condition(conditions, new | more)


def _controls(uid: str, record: Record) -> bool:
    if b'"controller":true' not in record.body:
        return False
    if len(record.owners) == 1:
        return True
    owners = record.object()["metadata"]["ownerReferences"]
    return any(owner["uid"] == uid and owner.get("controller") for owner in owners)
