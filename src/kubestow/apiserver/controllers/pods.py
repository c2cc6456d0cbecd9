"""What controllers want to know of pods, worked out once for each version; and how they make pods."""

import time
from typing import Any, NamedTuple

from kubestow.apiserver import clock
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change, Record
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
_POD = BY_STORAGE["pods"]
_PHASE = _POD.selectable_fields.index("status.phase")
_NODE = _POD.selectable_fields.index("spec.nodeName")


class Facts(NamedTuple):
    """One version of one pod."""

    record: Record
    phase: str
    bound: bool
    deleting: bool
    ready: bool
    ready_since: float
    created: str

    @property
    def active(self) -> bool:
        """Neither finished nor going."""
        return not self.deleting and self.phase not in ("Succeeded", "Failed")

    def available(self, min_ready_seconds: int) -> bool:
        """Ready for long enough."""
        return self.ready and (not min_ready_seconds or self.ready_since + min_ready_seconds <= time.time())


class Pods:
    """Pods as controllers see them."""

    def __init__(self, store: Store, writer: Writer, remover: Remover) -> None:
        self.store = store
        self._writer = writer
        self._remover = remover
        self._known: dict[str, Facts] = {}
        store.collection("pods").subscribers.append(self._forget)

    def _forget(self, change: Change) -> None:
        if change.type == "DELETED":
            self._known.pop(change.record.uid, None)

    def facts(self, record: Record) -> Facts:
        """What is known of a pod."""
        known = self._known.get(record.uid)
        if known is not None and known.record.rv == record.rv:
            return known
        pod = record.object()
        metadata, status = pod["metadata"], pod.get("status", {})
        ready: Object = next((one for one in status.get("conditions", ()) if one.get("type") == "Ready"), {})
        is_ready = ready.get("status") == "True"
        since = clock.seconds(ready["lastTransitionTime"]) if is_ready and ready.get("lastTransitionTime") else 0.0
        known = Facts(
            record,
            record.fields[_PHASE],
            bool(record.fields[_NODE]),
            "deletionTimestamp" in metadata,
            is_ready and status.get("phase") == "Running",
            since,
            metadata.get("creationTimestamp", ""),
        )
        self._known[record.uid] = known
        return known

    def owned_by(self, uid: str) -> list[Facts]:
        """Pods that an object owns."""
        found = []
        for storage, namespace, name in self.store.dependents.get(uid, ()):
            if storage == "pods":
                record = self.store.get("pods", namespace, name)
                if record is not None:
                    found.append(self.facts(record))
        return found

    def create(self, owner: Object, template: Object, prefix: str, **more: Any) -> None:
        """Makes a pod of a template for an owner."""
        metadata = template.get("metadata", {})
        pod: Object = {
            "metadata": {
                "generateName": prefix,
                "labels": dict(metadata.get("labels", {})),
                "ownerReferences": [reference(owner)],
            },
            "spec": template.get("spec", {}),
        }
        if metadata.get("annotations"):
            pod["metadata"]["annotations"] = dict(metadata["annotations"])
        if metadata.get("finalizers"):
            pod["metadata"]["finalizers"] = list(metadata["finalizers"])
        for key, value in more.items():
            pod["metadata"].setdefault(key, {}).update(value)
        self._writer.create(_POD, owner["metadata"]["namespace"], pod, internal())

    def delete(self, facts: Facts) -> None:
        """Deletes a pod in good order."""
        self._remover.delete(_POD, facts.record.namespace, facts.record.name, DeleteOptions(), internal())


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


def set_status(writer: Writer, storage: str, obj: Object, status: Object) -> None:
    """Writes a status if it differs from the one there is."""
    if obj.get("status", {}) == status:
        return
    metadata = obj["metadata"]

    def change(current: Object) -> Object:
        current["status"] = status
        return current

    writer.update(
        BY_STORAGE[storage], metadata.get("namespace", ""), metadata["name"], change, internal(), sub="status"
    )


def set_condition(conditions: list[Object], type_: str, status: str, reason: str, message: str, **more: str) -> None:
    """Sets a condition in a list; its transition time changes only with its status."""
    new = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": clock.now()}
    new |= more
    for index, old in enumerate(conditions):
        if old["type"] == type_:
            if old["status"] == status:
                new["lastTransitionTime"] = old.get("lastTransitionTime", new["lastTransitionTime"])
                if old.get("reason") == reason and old.get("message") == message:
                    return
            conditions[index] = new
            return
    conditions.append(new)
