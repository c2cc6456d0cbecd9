"""Volumes and claims: binding, provisioning of volumes, and creation of the claims of ephemeral volumes.

Claims of a class with immediate binding get a matching volume, or a new one if the class has a provisioner. Claims of
a class that waits for the first consumer are left to the scheduler, which selects a volume or a node; in the latter
case the volume is provisioned here. Provisioning is simulated: the volume exists only as an object.
"""

from collections.abc import Iterable

from kubestow.api import quantity
from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.queue import owners_in
from kubestow.apiserver.errors import ApiError, conflict
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change

_CLAIMS = "persistentvolumeclaims"
_VOLUMES = "persistentvolumes"
_CLASSES = "storageclasses.storage.k8s.io"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_COMPONENT, _EPHEMERAL = "persistentvolume-controller", "ephemeral_volume"


class Volumes:
    """Binds claims (keys with a namespace) and volumes (keys without)."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._store = api.store
        self._claim_volumes: dict[Key, dict[str, None]] = {}
        self._free: dict[str, dict[str, None]] = {}
        self._pending_claims: dict[str, dict[Key, None]] = {}
        self.sources = {_CLAIMS: self._claim_keys, _VOLUMES: self._volume_keys}

    def _claim_keys(self, change: Change) -> Iterable[Key]:
        key, claim = (change.record.namespace, change.record.name), change.record.object()
        waiting = self._pending_claims.setdefault(_class_name(claim), {})
        if change.type != "DELETED" and claim.get("status", {}).get("phase") == "Pending":
            waiting[key] = None
        else:
            waiting.pop(key, None)
        volume = claim["spec"].get("volumeName")
        return [key, ("", volume)] if volume else [key, *(("", name) for name in self._claim_volumes.get(key, ()))]

    def _volume_keys(self, change: Change) -> Iterable[Key]:
        """Return the key of a volume, and that of its claim; for a free volume, the pending claims of its class."""
        key = ("", change.record.name)
        if change.previous is not None:
            self._index(change.previous.object(), present=False)
        volume = change.record.object()
        self._index(volume, present=change.type != "DELETED")
        claim = volume["spec"].get("claimRef")
        return [key, _claim_key(claim)] if claim else [key, *self._pending_claims.get(_class_name(volume), ())]

    def _index(self, volume: Object, *, present: bool) -> None:
        claim, name = volume["spec"].get("claimRef"), volume["metadata"]["name"]
        if claim:
            names = self._claim_volumes.setdefault(_claim_key(claim), {})
        else:
            names = self._free.setdefault(_class_name(volume), {})
        if present:
            names[name] = None
        else:
            names.pop(name, None)
            if claim and not names:
                del self._claim_volumes[_claim_key(claim)]

    def reconcile(self, key: Key) -> float | None:
        """Reconcile one claim or one volume."""
        if key[0]:
            self._reconcile_claim(key)
        else:
            self._reconcile_volume(key[1])
        return None

    def _reconcile_claim(self, key: Key) -> None:
        claim = self._api.read(_CLAIMS, *key)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return
        if claim.get("status", {}).get("phase") == "Bound":
            if self._store.get(_VOLUMES, "", claim["spec"].get("volumeName", "")) is None:
                message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                self._api.event(_COMPONENT, claim, "ClaimLost", message, "Warning")
                self._api.set_status(_CLAIMS, claim, {**claim["status"], "phase": "Lost"})
            return
        volume = self._volume_for(claim)
        if volume is not None:
            self._bind(claim, volume)

    def _volumes(self, names: Iterable[str]) -> list[Object]:
        found = [self._api.read(_VOLUMES, "", name) for name in names]
        return [volume for volume in found if volume is not None]

    def _volume_for(self, claim: Object) -> Object | None:
        """Return the volume to bind to a claim, provisioned if needed; None if there is none yet."""
        named = claim["spec"].get("volumeName")
        key = (claim["metadata"]["namespace"], claim["metadata"]["name"])
        if named:
            volume = self._api.read(_VOLUMES, "", named)
            free = volume is not None and (not volume["spec"].get("claimRef") or _refers_to(volume, claim))
            return volume if free else None
        for volume in self._volumes(self._claim_volumes.get(key, ())):
            if _refers_to(volume, claim):
                return volume
        storage_class = self._class_of(claim)
        node = claim["metadata"].get("annotations", {}).get(_SELECTED_NODE)
        waits = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and not node:
            message = "waiting for first consumer to be created before binding"
            self._api.event(_COMPONENT, claim, "WaitForFirstConsumer", message)
            return None
        if not waits:
            candidates = self._volumes(self._free.get(_class_name(claim), ()))
            fitting = [volume for volume in candidates if _fits(volume, claim)]
            if fitting:
                return min(fitting, key=lambda one: quantity.nano(one["spec"]["capacity"]["storage"]))
        if storage_class is None:
            message = "no persistent volumes available for this claim and no storage class is set"
            if _class_name(claim):
                message = f'storageclass.storage.k8s.io "{_class_name(claim)}" not found'
            self._api.event(_COMPONENT, claim, "FailedBinding", message)
            return None
        if storage_class.get("provisioner") == _NO_PROVISIONER:
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
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self._node_affinity(node, storage_class)]}}
        annotations = {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]}
        name = f"pvc-{claim['metadata']['uid']}"
        volume = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
        message = f"Successfully provisioned volume {name}"
        self._api.event(storage_class["provisioner"], claim, "ProvisioningSucceeded", message)
        return self._api.create(_VOLUMES, "", volume).object()

    def _node_affinity(self, node: str, storage_class: Object) -> Object:
        """Return the node affinity of a new volume: the zone of the selected node, or the node itself."""
        record = self._store.get("nodes", "", node)
        zone = record.labels.get("topology.kubernetes.io/zone") if record is not None else None
        local = any("hostname" in str(one) for one in storage_class.get("allowedTopologies", ()))
        key, value = ("topology.kubernetes.io/zone", zone) if zone and not local else ("kubernetes.io/hostname", node)
        return {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}

    def _bind(self, claim: Object, volume: Object) -> None:
        name, metadata = volume["metadata"]["name"], claim["metadata"]
        if not _refers_to(volume, claim) or not volume["spec"]["claimRef"].get("uid"):
            self._api.update(_VOLUMES, "", name, lambda one: one["spec"].update(claimRef=_reference(claim)))

        def bound(one: Object) -> None:
            one["spec"]["volumeName"] = name
            one["metadata"].setdefault("annotations", {})[_BOUND] = "yes"

        current = self._api.update(_CLAIMS, metadata["namespace"], metadata["name"], bound).object()
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes", []),
            "capacity": volume["spec"].get("capacity", {}),
        }
        self._api.set_status(_CLAIMS, current, status)

    def _reconcile_volume(self, name: str) -> None:
        record = self._store.get(_VOLUMES, "", name)
        if record is None:
            return
        volume = record.object()
        reference = volume["spec"].get("claimRef")
        phase = "Available"
        if reference and reference.get("uid"):
            claim = self._store.get(_CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
            phase = "Bound" if claim is not None and claim.uid == reference["uid"] else "Released"
        self._api.set_status(_VOLUMES, volume, {**volume.get("status", {}), "phase": phase})
        reclaimed = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        if phase == "Released" and reclaimed and "deletionTimestamp" not in volume["metadata"]:
            self._api.delete(_VOLUMES, "", name)


def _class_name(obj: Object) -> str:
    name: str = obj["spec"].get("storageClassName", "")
    return name


def _claim_key(reference: Object) -> Key:
    return reference.get("namespace", ""), reference.get("name", "")


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
    """Return whether a free volume meets a claim: class, selector, volume mode, access modes and capacity."""
    spec, wanted = volume["spec"], claim["spec"]
    selector = from_object(wanted.get("selector"))
    return bool(
        not spec.get("claimRef")
        and "deletionTimestamp" not in volume["metadata"]
        and _class_name(volume) == _class_name(claim)
        and (selector is None or selector.matches(volume["metadata"].get("labels", {})))
        and spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
        and set(wanted.get("accessModes", ())) <= set(spec.get("accessModes", ()))
        and quantity.nano(spec["capacity"]["storage"]) >= quantity.nano(wanted["resources"]["requests"]["storage"])
    )


class EphemeralVolumes:
    """Creates the missing claims of pods with ephemeral volumes; keys are those of pods."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sources = {"pods": _with_ephemeral_volumes, _CLAIMS: owners_in(self._api.store, "pods")}

    def reconcile(self, key: Key) -> float | None:
        """Create the missing claims of one pod."""
        pod = self._api.read("pods", *key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return None
        for volume in pod["spec"].get("volumes", ()):
            template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
            if template is not None:
                try:
                    self._ensure(pod, volume["name"], template)
                except ApiError as error:
                    message = f"ephemeral volume {volume['name']}: {error.message}"
                    self._api.event(_EPHEMERAL, pod, "FailedCreate", message, "Warning")
                    raise
        return None

    def _ensure(self, pod: Object, volume: str, template: Object) -> None:
        namespace, name = pod["metadata"]["namespace"], f"{pod['metadata']['name']}-{volume}"
        record = self._api.store.get(_CLAIMS, namespace, name)
        if record is None:
            wanted = template.get("metadata", {})
            metadata = {"name": name, "ownerReferences": [reference(pod)]}
            metadata |= {part: wanted[part] for part in ("labels", "annotations") if wanted.get(part)}
            self._api.create(_CLAIMS, namespace, {"metadata": metadata, "spec": template.get("spec", {})})
        elif pod["metadata"]["uid"] not in record.owners:
            raise conflict("", _CLAIMS, name, f"PVC was not created for pod {namespace}/{pod['metadata']['name']}")


def _with_ephemeral_volumes(change: Change) -> Iterable[Key]:
    if change.type != "DELETED" and b'"ephemeral":{' in change.record.body:
        yield change.record.namespace, change.record.name
