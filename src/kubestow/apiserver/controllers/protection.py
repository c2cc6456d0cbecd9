"""Protection of objects in use: a finalizer delays their deletion.

Pod groups are in use while unfinished pods refer to them, volume claims while such pods have a node, volumes while they
are bound to a claim.
The controllers here set the finalizer of claims and volumes; admission sets that of groups.
"""

from collections.abc import Callable, Iterable

from kubestow.apiserver.admission.pod_groups import PROTECTION
from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.controllers.pods import DONE, NODE, PHASE
from kubestow.apiserver.controllers.queue import own_key
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_GROUPS = "podgroups.scheduling.k8s.io"
_CLAIMS, _CLAIM_PROTECTION = "persistentvolumeclaims", "kubernetes.io/pvc-protection"
_VOLUMES, _VOLUME_PROTECTION = "persistentvolumes", "kubernetes.io/pv-protection"


class Protection:
    """Protects the objects of one storage while pods use them."""

    def __init__(
        self,
        api: Api,
        storage: str,
        finalizer: str,
        marks: tuple[bytes, ...],
        names: Callable[[Object], Iterable[str]],
        *,
        by_scheduled_pods: bool = False,
    ) -> None:
        """`names` returns the names a pod uses; a pod whose encoded form contains none of the `marks` uses none.

        `by_scheduled_pods`: pods without a node use nothing.
        """
        self._api = api
        self._storage = storage
        self._finalizer = finalizer
        self._marks = marks
        self._names = names
        self._by_scheduled_pods = by_scheduled_pods
        self._users: dict[Key, dict[str, None]] = {}
        """For each object, the UIDs of the unfinished pods that use it."""
        for record in api.store.collection("pods").objects.values():
            self._track(record, deleted=False)
        self.sources = {"pods": self._pod_keys, self._storage: own_key}

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        return self._track(change.record, deleted=change.type == "DELETED")

    def _track(self, record: Record, *, deleted: bool) -> list[Key]:
        """Update the users of objects for a pod; return the keys of the objects it no longer uses."""
        if not any(mark in record.body for mark in self._marks):
            return []
        keys = [(record.namespace, name) for name in self._names(record.object())]
        if not deleted and record.fields[PHASE] not in DONE:
            if record.fields[NODE] or not self._by_scheduled_pods:
                for key in keys:
                    self._users.setdefault(key, {})[record.uid] = None
            return []
        for key in keys:
            users = self._users.get(key)
            if users is not None:
                users.pop(record.uid, None)
                if not users:
                    del self._users[key]
        return keys

    def reconcile(self, key: Key) -> float | None:
        """Add the finalizer of an object, or remove it from a deleted object that is not used."""
        _set_finalizer(self._api, self._storage, key, self._finalizer, used=key in self._users)
        return None


class VolumeProtection:
    """Protects volumes while they are bound."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sources = {_VOLUMES: own_key}

    def reconcile(self, key: Key) -> float | None:
        """Add the finalizer of a volume, or remove it from a deleted volume that is not bound."""
        volume = self._api.read(_VOLUMES, *key)
        used = volume is not None and volume.get("status", {}).get("phase") == "Bound"
        _set_finalizer(self._api, _VOLUMES, key, _VOLUME_PROTECTION, used=used)
        return None


def _set_finalizer(api: Api, storage: str, key: Key, finalizer: str, *, used: bool) -> None:
    obj = api.read(storage, *key)
    if obj is None:
        return
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        if not used:
            api.remove_finalizer(storage, *key, finalizer)
    elif finalizer not in metadata.get("finalizers", ()) and storage != _GROUPS:
        api.update(storage, *key, lambda one: one["metadata"].setdefault("finalizers", []).append(finalizer))


def pod_groups(api: Api) -> Protection:
    """Return the controller that protects the groups of pods."""
    return Protection(api, _GROUPS, PROTECTION, (b'"schedulingGroup":{',), _group)


def _group(pod: Object) -> Iterable[str]:
    name = pod["spec"]["schedulingGroup"].get("podGroupName")
    return (name,) if name else ()


def volume_claims(api: Api) -> Protection:
    """Return the controller that protects the volume claims of pods."""
    marks = (b'"persistentVolumeClaim":{', b'"ephemeral":{')
    return Protection(api, _CLAIMS, _CLAIM_PROTECTION, marks, _claims, by_scheduled_pods=True)


def _claims(pod: Object) -> Iterable[str]:
    for volume in pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"
