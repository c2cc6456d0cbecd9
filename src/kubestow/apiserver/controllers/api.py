"""What a controller sees of the cluster and does to it.

Reads come from the store, writes go to it at once, the time is the store's. Nothing here waits: a simulation gives the
store a virtual clock and seeded chance, and the controllers do the same things in it, in the same order.
"""

from collections.abc import Callable, Iterator
from typing import Any

from kubestow.apiserver.controllers.recording import Recorder
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.store.records import Record

Object = dict[str, Any]


class Api:
    """The store, as controllers use it."""

    def __init__(self, writer: Writer, remover: Remover) -> None:
        self.store = writer.store
        self._writer = writer
        self._remover = remover
        self._recorder = Recorder(writer)

    def now(self) -> float:
        """Seconds since 1970."""
        return self.store.clock.now()

    def read(self, storage: str, namespace: str, name: str) -> Object | None:
        """An object, decoded afresh."""
        record = self.store.get(storage, namespace, name)
        return record.object() if record is not None else None

    def owned(self, uid: str, storage: str) -> Iterator[Record]:
        """What an object controls in one storage, oldest first; owners of other kinds do not count."""
        for kind, namespace, name in tuple(self.store.dependents.get(uid, ())):
            record = self.store.get(kind, namespace, name) if kind == storage else None
            if record is not None and _controls(uid, record):
                yield record

    def create(self, storage: str, namespace: str, obj: Object) -> Record:
        """Creates an object; raises ApiError when it is refused."""
        return self._writer.create(self.store.collection(storage).resource, namespace, obj, internal())

    def update(
        self, storage: str, namespace: str, name: str, alter: Callable[[Object], Any], *, sub: str = ""
    ) -> Record:
        """Has `alter` change the current object, and writes what became of it."""

        def change(current: Object) -> Object:
            alter(current)
            return current

        return self._writer.update(
            self.store.collection(storage).resource, namespace, name, change, internal(), sub=sub
        )

    def set_status(self, storage: str, obj: Object, status: Object) -> None:
        """Writes a status if it differs from the one the object has."""
        if obj.get("status", {}) != status:
            metadata = obj["metadata"]
            self.update(
                storage, metadata.get("namespace", ""), metadata["name"], lambda one: one.update(status=status),
                sub="status",
            )  # fmt: skip

    def delete(
        self, storage: str, namespace: str, name: str, *, uid: str = "", grace: int | None = None, how: str = ""
    ) -> bool:
        """Deletes an object; whether it is gone. One that is gone already is no error."""
        options = DeleteOptions(grace_seconds=grace, uid=uid, propagation=how or "Background")
        try:
            return self._remover.delete(self.store.collection(storage).resource, namespace, name, options, internal())[
                1
            ]
        except ApiError as error:
            if error.code != 404:
                raise
            return True

    def event(self, component: str, obj: Object, reason: str, message: str, type_: str = "Normal") -> None:
        """Tells people what a component did to an object."""
        self._recorder.record(component, obj, reason, message, type_)


def reference(owner: Object) -> Object:
    """A reference to the object that controls another."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(obj: Object, type_: str) -> Object | None:
    """A condition in an object's status."""
    conditions: list[Object] = obj.get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == type_), None)


def set_condition(
    conditions: list[Object], type_: str, status: str, reason: str, message: str, now: str, **more: Any
) -> None:
    """Sets a condition in a list; its transition time changes only with its status."""
    new = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": now} | more
    for index, old in enumerate(conditions):
        if old["type"] == type_:
            if old["status"] == status:
                new["lastTransitionTime"] = old.get("lastTransitionTime", now)
                if old.get("reason") == reason and old.get("message") == message:
                    return
            conditions[index] = new
            return
    conditions.append(new)


def _controls(uid: str, record: Record) -> bool:
    if b'"controller":true' not in record.body:
        return False
    if len(record.owners) == 1:
        return True
    owners = record.object()["metadata"]["ownerReferences"]
    return any(owner["uid"] == uid and owner.get("controller") for owner in owners)
