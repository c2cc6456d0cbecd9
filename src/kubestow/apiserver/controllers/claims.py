"""Resource claims: created from the templates that pods and their groups refer to; their reservations end with these.

A claim that a pod and its group list in the same way is that of the group.

The scheduler reserves claims for the pods it binds; for pods bound without it, the reservation is made here.
"""

from collections.abc import Iterable, Iterator

from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.pods import DONE, PHASE
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record
from kubestow.apiserver.store.store import Store

_CLAIMS = "resourceclaims.resource.k8s.io"
_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
_COMPONENT = "resource_claim"
_FINALIZER = "resource.kubernetes.io/delete-protection"
_GROUPS = "podgroups.scheduling.k8s.io"
_CLAIM, _GROUP = "claim:", "group:"
_MAX_RESERVATIONS = 256
_CONSUMERS = {"pods": {}, "podgroups": {"apiGroup": "scheduling.k8s.io"}}
"""The kinds of consumers, with another field of their references."""


class ResourceClaims:
    """Creates, reserves and releases claims; keys are those of pods, or have a prefix for claims and pod groups."""

    def __init__(self, api: Api, *, for_groups: bool = False) -> None:
        """`for_groups`: whether pod groups have claims."""
        self._api = api
        self._for_groups = for_groups
        self._store = api.store
        self._waiting: dict[Key, dict[Key, None]] = {}
        """Pods and groups by the missing template; pods by the claim or the group that they wait for."""
        of_groups = {_GROUPS: self._group_keys} if for_groups else {}
        self.sources = {"pods": self._pod_keys, **of_groups, _CLAIMS: self._claim_keys, _TEMPLATES: self._template_keys}

    def _group_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        if change.type == "DELETED":
            group = record.object()
            for one in (*group["spec"].get("resourceClaims", ()), *_statuses(group)):
                if one.get("resourceClaimName"):
                    yield f"{_CLAIM}{record.namespace}", one["resourceClaimName"]
            return
        key = (f"{_GROUP}{record.namespace}", record.name)
        yield from self._waiting.pop(key, ())
        if b'"resourceClaims":[' in record.body:
            yield key

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        if b'"resourceClaims":[' not in record.body and b'"extendedResourceClaimStatus":{' not in record.body:
            return
        if change.type != "DELETED" and record.fields[PHASE] not in DONE:
            yield record.namespace, record.name
            return
        pod = record.object()
        status = pod.get("status", {})
        extended = status.get("extendedResourceClaimStatus", {})
        for one in (*pod["spec"].get("resourceClaims", ()), *status.get("resourceClaimStatuses", ()), extended):
            if one.get("resourceClaimName"):
                yield f"{_CLAIM}{record.namespace}", one["resourceClaimName"]

    def _claim_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        key = (f"{_CLAIM}{record.namespace}", record.name)
        if change.type == "DELETED":
            # The pod or group it was created for may need a new one.
            owner = _owner(record.object())
            if owner is None:
                return ()
            members = _members(self._store, record.namespace, owner["name"]) if owner["kind"] == "PodGroup" else ()
            return (_key(owner["kind"], record.namespace, owner["name"]), *members)
        waiting = self._waiting.pop(key, {}) if b'"allocation":{' in record.body else {}
        if b'"reservedFor":[' in record.body or b'"deletionTimestamp":"' in record.body:
            return (*waiting, key)
        return waiting

    def _template_keys(self, change: Change) -> Iterable[Key]:
        return self._waiting.pop((change.record.namespace, change.record.name), ())

    def reconcile(self, key: Key) -> float | None:
        """Create the missing claims of a pod or group, reserve those of a bound pod; or release a claim from others."""
        if key[0].startswith(_CLAIM):
            self._release(key[0].removeprefix(_CLAIM), key[1])
            return None
        if key[0].startswith(_GROUP):
            group = self._api.read(_GROUPS, key[0].removeprefix(_GROUP), key[1])
            if group is not None and "deletionTimestamp" not in group["metadata"]:
                self._create_claims(_GROUPS, group, None)
            return None
        pod = self._api.read("pods", *key)
        if pod is None or pod["status"].get("phase") in DONE or "deletionTimestamp" in pod["metadata"]:
            return None
        name = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "") if self._for_groups else ""
        group = self._api.read(_GROUPS, key[0], name) if name else None
        if name and group is None:
            self._waiting.setdefault(_key("PodGroup", key[0], name), {})[key] = None
            return None
        named = self._create_claims("pods", pod, group)
        if pod["spec"].get("nodeName"):
            shared = [one["name"] for one in pod["spec"].get("resourceClaims", ()) if _is_shared(one, group)]
            for one in (*pod["spec"].get("resourceClaims", ()), *named.values()):
                if one.get("resourceClaimName"):
                    consumer = group if group is not None and one["name"] in shared else pod
                    self._reserve(pod, consumer, one["resourceClaimName"])
        return None

    def _create_claims(self, storage: str, owner: Object, group: Object | None) -> dict[str, Object]:
        """Create the missing claims of a pod or group; return its claims by name. `group` is that of the pod."""
        metadata = owner["metadata"]
        statuses = {one["name"]: one for one in _statuses(owner)}
        named = dict(statuses)
        for wanted in owner["spec"].get("resourceClaims", ()):
            template, name = wanted.get("resourceClaimTemplateName"), wanted["name"]
            if not template or not self._is_missing(statuses.get(name), metadata["namespace"]):
                continue
            if group is not None and _is_shared(wanted, group):
                made = next((one for one in _statuses(group) if one["name"] == name), None)
                created = "" if made is None else made.get("resourceClaimName")
                if self._is_missing(made, metadata["namespace"]):
                    created, waited = "", _key("PodGroup", metadata["namespace"], group["metadata"]["name"])
                    self._waiting.setdefault(waited, {})[metadata["namespace"], metadata["name"]] = None
            else:
                created = self._ensure(owner, name, template)
            if created:
                named[name] = {"name": name, "resourceClaimName": created}
        if named != statuses:
            status = {**owner.get("status", {}), "resourceClaimStatuses": list(named.values())}
            self._api.set_status(storage, owner, status)
        return named

    def _is_missing(self, status: Object | None, namespace: str) -> bool:
        """Return whether a claim has to be created; a status without a name means that the pod needs none."""
        if status is None:
            return True
        name: str = status.get("resourceClaimName", "")
        return name != "" and self._store.get(_CLAIMS, namespace, name) is None

    def _reserve(self, pod: Object, consumer: Object, name: str) -> None:
        """Reserve a claim for a pod that was bound without the scheduler, or for its group, once it is allocated."""
        metadata, of = pod["metadata"], consumer["metadata"]
        namespace, uid = metadata["namespace"], of["uid"]
        claim = self._api.read(_CLAIMS, namespace, name)
        if claim is None or "allocation" not in claim.get("status", {}):
            waiting = self._waiting.setdefault((f"{_CLAIM}{namespace}", name), {})
            waiting[(namespace, metadata["name"])] = None
            return
        owner, reserved = _owner(claim), claim["status"].get("reservedFor", [])
        if owner is not None and owner["uid"] != uid:
            return
        if len(reserved) < _MAX_RESERVATIONS and all(one["uid"] != uid for one in reserved):
            plural = "pods" if consumer is pod else "podgroups"
            reserved = [*reserved, {**_CONSUMERS[plural], "resource": plural, "name": of["name"], "uid": uid}]
            self._api.set_status(_CLAIMS, claim, {**claim["status"], "reservedFor": reserved})

    def _ensure(self, owner: Object, name: str, template_name: str) -> str | None:
        """Return the name of the claim for an entry of its owner, created if missing; None if there is no template."""
        namespace, kind = owner["metadata"]["namespace"], owner["kind"]
        for record in self._api.owned(owner["metadata"]["uid"], _CLAIMS):
            if record.object()["metadata"].get("annotations", {}).get(_POD_CLAIM) == name:
                return record.name
        found = self._api.read(_TEMPLATES, namespace, template_name)
        if found is None:
            waiting = self._waiting.setdefault((namespace, template_name), {})
            waiting[_key(kind, namespace, owner["metadata"]["name"])] = None
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            message = f"{kind}ResourceClaim {name}: {missing}"
            self._api.event(_COMPONENT, owner, "FailedResourceClaimCreation", message, "Warning")
            return None
        template = found["spec"]
        metadata = template.get("metadata", {})
        claim: Object = {
            "metadata": {
                "generateName": f"{owner['metadata']['name']}-{name}-",
                "labels": dict(metadata.get("labels", {})),
                "annotations": {**metadata.get("annotations", {}), _POD_CLAIM: name},
                "ownerReferences": [reference(owner)],
            },
            "spec": template.get("spec", {}),
        }
        try:
            return self._api.create(_CLAIMS, namespace, claim).name
        except ApiError as error:
            message = f"{kind}ResourceClaim {name}: {error.message}"
            self._api.event(_COMPONENT, owner, "FailedResourceClaimCreation", message, "Warning")
            raise

    def _release(self, namespace: str, name: str) -> None:
        """Drop the reservations of finished pods and groups; without any, deallocate the claim, drop its finalizer.

        A claim that was created for a finished pod or group is deleted.
        """
        claim = self._api.read(_CLAIMS, namespace, name)
        if claim is None:
            return
        status = dict(claim.get("status", {}))
        reserved = status.pop("reservedFor", [])
        kept = [one for one in reserved if one.get("resource") not in _CONSUMERS or self._is_alive(one["uid"])]
        if kept:
            self._api.set_status(_CLAIMS, claim, {**status, "reservedFor": kept})
            return
        if reserved or "deletionTimestamp" in claim["metadata"]:
            status.pop("allocation", None)
            self._api.set_status(_CLAIMS, claim, status)
            self._api.remove_finalizer(_CLAIMS, namespace, name, _FINALIZER)
        owner = _owner(claim)
        if owner is not None and not self._is_alive(owner["uid"]):
            self._api.delete(_CLAIMS, namespace, name)

    def _is_alive(self, uid: str) -> bool:
        entry = self._store.by_uid.get(uid)
        return entry is not None and (entry[1].storage != "pods" or entry[1].fields[PHASE] not in DONE)


def is_reserved_for(status: Object, pod: Object) -> bool:
    """Return whether a claim with this status is reserved for a pod, or for its group."""
    uid, group = pod["metadata"]["uid"], pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
    return any(
        one["uid"] == uid or (group and (one["resource"], one["name"]) == ("podgroups", group))
        for one in status.get("reservedFor", ())
    )


def consumers(store: Store, claim: Record) -> Iterator[Key]:
    """Yield the pods that a claim is reserved for, by themselves or with their group; a pod need not exist."""
    for one in claim.object()["status"]["reservedFor"]:
        if one["resource"] == "podgroups":
            yield from _members(store, claim.namespace, one["name"])
        else:
            yield claim.namespace, one["name"]


def _members(store: Store, namespace: str, group: str) -> Iterator[Key]:
    """Yield the pods of a pod group."""
    member = f'"podGroupName":"{group}"'.encode()
    for pod in store.collection("pods").objects.values():
        if pod.namespace == namespace and member in pod.body:
            yield pod.namespace, pod.name


def _key(kind: str, namespace: str, name: str) -> Key:
    """Return the key of a pod, or of a pod group."""
    return (f"{_GROUP}{namespace}" if kind == "PodGroup" else namespace), name


def _is_shared(wanted: Object, group: Object | None) -> bool:
    """Return whether a group lists a claim in the same way as a pod."""
    return group is not None and wanted in group["spec"].get("resourceClaims", ())


def _statuses(owner: Object) -> list[Object]:
    found: list[Object] = owner.get("status", {}).get("resourceClaimStatuses", [])
    return found


def _owner(claim: Object) -> Object | None:
    """Return the owner reference to the pod or group that a claim was created for; None if there is none."""
    owners = claim["metadata"].get("ownerReferences", ())
    return next((one for one in owners if one["kind"] in ("Pod", "PodGroup")), None)
