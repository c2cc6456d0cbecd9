"""Volumes and claims: bound to each other, and volumes made for claims that ask for some.

Claims of a class that binds at once get a fitting volume, or a new one if the class has a provisioner. Claims of a
class that waits are left to the scheduler, which either names a volume or a node; then the volume is made here.
Provisioning is a stand-in: the volume exists as an object only.
"""

from collections.abc import Iterable
from typing import Any

from kubestow.apiserver.controllers.pods import Object, set_status
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.model import quantity

_CLAIMS = "persistentvolumeclaims"
_VOLUMES = "persistentvolumes"
_CLASSES = "storageclasses.storage.k8s.io"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class Volumes:
    """Looks after claims (keys with a namespace) and volumes (keys without)."""

    def __init__(self, store: Store, writer: Writer, remover: Remover) -> None:
        self._store = store
        self._writer = writer
        self._remover = remover

    def sources(self) -> dict[str, KeysOf]:
        """Follows claims, volumes and the claims volumes speak of."""
        return {_CLAIMS: self._of_claim, _VOLUMES: self._of_volume}

    def _of_claim(self, change: Change) -> Iterable[Key]:
        keys = [(change.record.namespace, change.record.name)]
        volume = change.record.object().get("spec", {}).get("volumeName")
        return [*keys, ("", volume)] if volume else keys

    def _of_volume(self, change: Change) -> Iterable[Key]:
        keys = [("", change.record.name)]
        claim = change.record.object().get("spec", {}).get("claimRef")
        if claim:
            return [*keys, (claim.get("namespace", ""), claim.get("name", ""))]
        waiting = self._store.collection(_CLAIMS).objects.values()
        return [*keys, *((one.namespace, one.name) for one in waiting if b'"phase":"Pending"' in one.body)]

    def visit(self, key: Key) -> float | None:
        """Brings one claim or one volume in line."""
        if key[0]:
            self._visit_claim(key)
        else:
            self._visit_volume(key[1])
        return None

    def _visit_claim(self, key: Key) -> None:
        record = self._store.get(_CLAIMS, *key)
        if record is None:
            return
        claim = record.object()
        if claim.get("status", {}).get("phase") == "Bound" or "deletionTimestamp" in claim["metadata"]:
            return
        volume = self._volume_for(claim)
        if volume is not None:
            self._bind(claim, volume)

    def _volume_for(self, claim: Object) -> Object | None:
        """The volume a claim is to be bound to; made if need be; None if there is none yet."""
        named = claim["spec"].get("volumeName")
        volumes = [record.object() for record in self._store.collection(_VOLUMES).objects.values()]
        for volume in volumes:
            if named == volume["metadata"]["name"] or _refers_to(volume, claim):
                return volume if not volume["spec"].get("claimRef") or _refers_to(volume, claim) else None
        if named:
            return None
        storage_class = self._class_of(claim)
        node = claim["metadata"].get("annotations", {}).get(_SELECTED_NODE)
        waits = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and not node:
            return None
        if not waits:
            fitting = [volume for volume in volumes if _fits(volume, claim)]
            if fitting:
                return min(fitting, key=lambda one: quantity.nano(one["spec"]["capacity"]["storage"]))
        if storage_class is None or storage_class.get("provisioner") == _NO_PROVISIONER:
            return None
        return self._provision(claim, storage_class, node)

    def _class_of(self, claim: Object) -> Object | None:
        record = self._store.get(_CLASSES, "", claim["spec"].get("storageClassName", ""))
        return record.object() if record is not None else None

    def _provision(self, claim: Object, storage_class: Object, node: str | None) -> Object:
        spec: Object = {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
            "claimRef": _reference(claim),
            "csi": {"driver": storage_class["provisioner"], "volumeHandle": claim["metadata"]["uid"]},
        }
        if node:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self._reachable_from(node, storage_class)]}}
        annotations = {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]}
        name = f"pvc-{claim['metadata']['uid']}"
        volume = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
        return self._writer.create(BY_STORAGE[_VOLUMES], "", volume, internal()).object()

    def _reachable_from(self, node: str, storage_class: Object) -> Object:
        """The nodes that reach a volume: those of the chosen node's zone, if it has one."""
        record = self._store.get("nodes", "", node)
        zone = record.labels.get("topology.kubernetes.io/zone") if record is not None else None
        local = any("hostname" in str(one) for one in storage_class.get("allowedTopologies", ()))
        key, value = ("topology.kubernetes.io/zone", zone) if zone and not local else ("kubernetes.io/hostname", node)
        return {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}

    def _bind(self, claim: Object, volume: Object) -> None:
        name, metadata = volume["metadata"]["name"], claim["metadata"]
        if not _refers_to(volume, claim) or not volume["spec"]["claimRef"].get("uid"):
            self._change(_VOLUMES, "", name, lambda one: one["spec"].update(claimRef=_reference(claim)))

        def bound(one: Object) -> None:
            one["spec"]["volumeName"] = name
            one["metadata"].setdefault("annotations", {})[_BOUND] = "yes"

        self._change(_CLAIMS, metadata["namespace"], metadata["name"], bound)
        current = self._store.get(_CLAIMS, metadata["namespace"], metadata["name"])
        assert current is not None
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes", []),
            "capacity": volume["spec"].get("capacity", {}),
        }
        set_status(self._writer, _CLAIMS, current.object(), status)

    def _visit_volume(self, name: str) -> None:
        record = self._store.get(_VOLUMES, "", name)
        if record is None:
            return
        volume = record.object()
        reference = volume["spec"].get("claimRef")
        phase = "Available"
        if reference and reference.get("uid"):
            claim = self._store.get(_CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
            phase = "Bound" if claim is not None and claim.uid == reference["uid"] else "Released"
        if phase == "Released" and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._remover.delete(BY_STORAGE[_VOLUMES], "", name, DeleteOptions(), internal())
            return
        set_status(self._writer, _VOLUMES, volume, {**volume.get("status", {}), "phase": phase})

    def _change(self, storage: str, namespace: str, name: str, alter: Any) -> None:
        def change(current: Object) -> Object:
            alter(current)
            return current

        self._writer.update(BY_STORAGE[storage], namespace, name, change, internal())


def _reference(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def _refers_to(volume: Object, claim: Object) -> bool:
    reference = volume["spec"].get("claimRef")
    metadata = claim["metadata"]
    return bool(
        reference
        and (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
        and reference.get("uid", metadata["uid"]) in ("", metadata["uid"])
    )


def _fits(volume: Object, claim: Object) -> bool:
    """Whether a free volume is large enough, of the class wanted, and can be mounted as wanted."""
    spec, wanted = volume["spec"], claim["spec"]
    return bool(
        not spec.get("claimRef")
        and "deletionTimestamp" not in volume["metadata"]
        and spec.get("storageClassName", "") == wanted.get("storageClassName", "")
        and spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
        and set(wanted.get("accessModes", ())) <= set(spec.get("accessModes", ()))
        and quantity.nano(spec["capacity"]["storage"]) >= quantity.nano(wanted["resources"]["requests"]["storage"])
    )
