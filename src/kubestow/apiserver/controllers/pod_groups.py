"""Pod groups: one that is to go goes once none of its pods runs any more."""

from collections.abc import Iterable

from kubestow.apiserver.admission.pod_groups import PROTECTION
from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.controllers.pods import DONE, PHASE
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_GROUPS = "podgroups.scheduling.k8s.io"
_MEMBER = b'"schedulingGroup":{'


class PodGroupProtection:
    """Takes the protection off groups that are being deleted and no longer used; keys are those of groups."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._users: dict[Key, dict[str, None]] = {}
        """By group, the uids of its pods that are not done."""
        for record in api.store.collection("pods").objects.values():
            self._track(record, gone=False)

    def sources(self) -> dict[str, KeysOf]:
        """Follows groups that are to go, and pods that are done."""
        return {"pods": self._of_pod, _GROUPS: self._of_group}

    def _of_pod(self, change: Change) -> Iterable[Key]:
        return self._track(change.record, gone=change.type == "DELETED")

    def _of_group(self, change: Change) -> Iterable[Key]:
        if change.type != "DELETED" and b'"deletionTimestamp":"' in change.record.body:
            yield change.record.namespace, change.record.name

    def _track(self, record: Record, *, gone: bool) -> list[Key]:
        """Keep account of a pod; returns the group that it is done with."""
        if _MEMBER not in record.body:
            return []
        name = record.object()["spec"]["schedulingGroup"].get("podGroupName")
        if not name:
            return []
        key = (record.namespace, name)
        if not gone and record.fields[PHASE] not in DONE:
            self._users.setdefault(key, {})[record.uid] = None
            return []
        users = self._users.get(key)
        if users is not None:
            users.pop(record.uid, None)
            if not users:
                del self._users[key]
        return [key]

    def visit(self, key: Key) -> float | None:
        """Lets a group go that is not used."""
        group = self._api.read(_GROUPS, *key)
        if group is not None and _is_protected_in_vain(group["metadata"]) and key not in self._users:
            self._api.update(_GROUPS, *key, _unprotect)
        return None


def _is_protected_in_vain(metadata: Object) -> bool:
    return "deletionTimestamp" in metadata and PROTECTION in metadata.get("finalizers", ())


def _unprotect(group: Object) -> None:
    group["metadata"]["finalizers"].remove(PROTECTION)
