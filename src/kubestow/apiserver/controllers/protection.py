"""Protection of what is in use: a finalizer keeps it until nobody needs it any more.

Pod groups and volume claims wait for the pods that name them, volumes for the claim they are bound to. Claims and
volumes are given their finalizer here; groups have it from admission.
"""

from collections.abc import Callable, Iterable

from kubestow.apiserver.admission.pod_groups import PROTECTION
from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.controllers.pods import DONE, PHASE
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_GROUPS = "podgroups.scheduling.k8s.io"
_CLAIMS, _CLAIM_PROTECTION = "persistentvolumeclaims", "kubernetes.io/pvc-protection"
_VOLUMES, _VOLUME_PROTECTION = "persistentvolumes", "kubernetes.io/pv-protection"


class Protection:
    """Protects objects of one storage, whose keys these are, while pods use them."""

    def __init__(
        self, api: Api, storage: str, finalizer: str, marks: tuple[bytes, ...], names: Callable[[Object], Iterable[str]]
    ) -> None:
        """`names` tells what a pod uses; a pod without any of the `marks` uses nothing."""
        self._api = api
        self._storage = storage
        self._finalizer = finalizer
        self._marks = marks
        self._names = names
        self._users: dict[Key, dict[str, None]] = {}
        """By object, the uids of pods that use it and are not done."""
        for record in api.store.collection("pods").objects.values():
            self._track(record, gone=False)

    def sources(self) -> dict[str, KeysOf]:
        """Follows the objects, and pods that are done."""
        return {"pods": self._of_pod, self._storage: own_key}

    def _of_pod(self, change: Change) -> Iterable[Key]:
        return self._track(change.record, gone=change.type == "DELETED")

    def _track(self, record: Record, *, gone: bool) -> list[Key]:
        """Keep account of a pod; returns what it is done with."""
        if not any(mark in record.body for mark in self._marks):
            return []
        keys = [(record.namespace, name) for name in self._names(record.object())]
        if not gone and record.fields[PHASE] not in DONE:
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

    def visit(self, key: Key) -> float | None:
        """Protects an object, or lets one go that is not used."""
        _settle(self._api, self._storage, key, self._finalizer, used=key in self._users)
        return None


class VolumeProtection:
    """Protects volumes while they are bound."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def sources(self) -> dict[str, KeysOf]:
        """Follows volumes."""
        return {_VOLUMES: own_key}

    def visit(self, key: Key) -> float | None:
        """Protects a volume, or lets one go that is not bound."""
        volume = self._api.read(_VOLUMES, *key)
        used = volume is not None and volume.get("status", {}).get("phase") == "Bound"
        _settle(self._api, _VOLUMES, key, _VOLUME_PROTECTION, used=used)
        return None


def _settle(api: Api, storage: str, key: Key, finalizer: str, *, used: bool) -> None:
    obj = api.read(storage, *key)
    if obj is None:
        return
    metadata = obj["metadata"]
    has = finalizer in metadata.get("finalizers", ())
    if "deletionTimestamp" in metadata:
        if has and not used:
            api.update(storage, *key, lambda one: one["metadata"]["finalizers"].remove(finalizer))
    elif not has and storage != _GROUPS:
        api.update(storage, *key, lambda one: one["metadata"].setdefault("finalizers", []).append(finalizer))


def pod_groups(api: Api) -> Protection:
    """Groups that pods belong to."""
    return Protection(api, _GROUPS, PROTECTION, (b'"schedulingGroup":{',), _group)


def _group(pod: Object) -> Iterable[str]:
    name = pod["spec"]["schedulingGroup"].get("podGroupName")
    return (name,) if name else ()


def volume_claims(api: Api) -> Protection:
    """Claims whose volumes pods mount."""
    marks = (b'"persistentVolumeClaim":{', b'"ephemeral":{')
    return Protection(api, _CLAIMS, _CLAIM_PROTECTION, marks, _claims)


def _claims(pod: Object) -> Iterable[str]:
    for volume in pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"
